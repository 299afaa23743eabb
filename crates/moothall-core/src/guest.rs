//! The protocol between the host and the agent inside a sandbox.
//!
//! One byte channel (a virtio-serial port in a microVM, a pipe in a container) carries frames in
//! both directions. The host starts every exchange; the agent replies. Both ends treat input as
//! hostile: frame sizes are limited, memory is only allocated for bytes that have arrived, and an
//! unexpected frame ends the connection.
//!
//! ```text
//! agent → host   Ready
//! host → agent   Reseed              agent → host   Done
//! host → agent   Put, data…, End     agent → host   Done | Refused
//! host → agent   Park                agent → host   Done | Refused
//! host → agent   Run, data…, End     agent → host   data…, Ended
//!                (Kill at any time)
//! host → agent   List                agent → host   Listing
//! host → agent   Get                 agent → host   data…, End | Refused
//! host → agent   Probe               agent → host   Probed
//! host → agent   Start               agent → host   Step
//! host → agent   Result              agent → host   Step | Refused
//! ```

mod frame;
mod message;
mod workflow;

pub use self::frame::{
    FrameFault, FrameReader, GuestFrame, GuestStream, MAX_DATA_BYTES, MAX_FRAME_BYTES, write_data,
    write_message,
};
pub use self::message::{
    ExitCause, GuestFile, GuestMessage, GuestRunRequest, HostMessage, PROTOCOL, Place, ProgramExit,
    StepSummary,
};
pub use self::workflow::{GuestStateMachine, GuestWorkflow, UnknownWorkflow};
