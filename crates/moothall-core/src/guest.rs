//! What a host and the agent inside a sandbox say to each other.
//!
//! One byte channel (a virtio-serial port in a microVM, a pipe in a container) carries frames in both
//! directions. The host starts every exchange; the agent answers. Both ends treat what they read as
//! hostile: a frame is bounded, its bytes are kept only as they arrive, and a frame that does not
//! fit where it stands ends the conversation.
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
//! host → agent   Start               agent → host   Step
//! host → agent   Result              agent → host   Step | Refused
//! ```

mod frame;
mod message;
mod workflow;

pub use self::frame::{
    Channel, Frame, FrameFault, FrameReader, MAX_DATA_BYTES, MAX_FRAME_BYTES, write_data,
    write_message,
};
pub use self::message::{
    Ended, FoundFile, FromGuest, PROTOCOL, Place, RunRequest, SaidStep, ToGuest, WayToEnd,
};
pub use self::workflow::{GuestMachine, GuestWorkflow, UnknownWorkflow};
