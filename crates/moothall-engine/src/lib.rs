//! Drives workflows: performs the effects that `moothall-core` asks for, and survives being killed.
//!
//! The local engine runs in this process, with journal and events in the store. Kill it anywhere and
//! resume: what was answered is not asked again. It is not a cluster: one run has one driver, on one
//! machine, and a lock on a file says which.

mod children;
mod consultation;
mod debate_rooms;
mod draft_calls;
mod driver;
mod error;
mod execute;
mod gathering;
mod guest_machine;
mod lock;
mod perform;
mod record;
mod rooms;
mod sandboxes;
pub mod waves;

pub use crate::consultation::Consultation;
pub use crate::debate_rooms::DebateRooms;
pub use crate::draft_calls::DraftPerformer;
pub use crate::driver::{Driver, Ended, Pause, cancel};
pub use crate::error::EngineError;
pub use crate::execute::SandboxPerformer;
pub use crate::gathering::GatherPerformer;
pub use crate::lock::{RunLock, SlotLock};
pub use crate::perform::{ModelPerformer, PerformFuture, Performed, Performer};
pub use crate::record::{RunRecord, sequenced};
pub use crate::rooms::{Lobby, OnFailure, Room, RoomFuture, Rooms, Walls};
pub use crate::sandboxes::SandboxExecutor;
