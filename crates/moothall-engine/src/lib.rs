//! Drives workflows: performs the effects that `moothall-core` requests, and recovers after being
//! killed.
//!
//! The local engine runs in this process and keeps journal and events in the store. After a kill at
//! any point the run can be resumed, and journaled effects are not repeated. It is not a cluster:
//! each run has one driver on one machine, guarded by a file lock.

mod call_log;
mod children;
mod consultation;
mod debate_sandboxes;
mod draft_calls;
mod driver;
pub mod durable;
mod error;
mod execute;
mod gather_performer;
mod guest_runner;
mod guests;
mod lock;
mod perform;
mod record;
mod requested_effect;
mod run_trace;
mod sandboxes;

pub use crate::call_log::{InvalidRunSpec, update_calls, workflow_of};
pub use crate::consultation::Consultation;
pub use crate::debate_sandboxes::DebateSandboxes;
pub use crate::draft_calls::DraftPerformer;
pub use crate::driver::{RunDriver, RunExit, RunPause, cancel};
pub use crate::error::EngineError;
pub use crate::execute::SandboxPerformer;
pub use crate::gather_performer::GatherPerformer;
pub use crate::guests::{
    GuestFailurePolicy, GuestFuture, GuestPool, GuestProvider, GuestSession, IsolationMode,
};
pub use crate::lock::{RunLock, SlotLock};
pub use crate::perform::{EffectPerformer, ModelPerformer, PerformFuture, TimedResult};
pub use crate::record::{RunRecord, sequenced};
pub use crate::run_trace::write_run_spans;
pub use crate::sandboxes::SandboxExecutor;
