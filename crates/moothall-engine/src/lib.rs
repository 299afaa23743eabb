//! Drives workflows: performs the effects that `moothall-core` asks for, and survives being killed.
//!
//! The local engine runs in this process, with journal and events in the store. Kill it anywhere and
//! resume: what was answered is not asked again. It is not a cluster: one run has one driver, on one
//! machine, and a lock on a file says which.

mod beneath;
mod children;
mod consultation;
mod debate_rooms;
mod documents;
mod draft_calls;
pub mod drafts;
mod driver;
pub mod edgar;
mod error;
mod execute;
mod gather;
mod gathering;
mod guest_machine;
mod lock;
mod news;
mod perform;
mod record;
mod rooms;
mod sandboxes;
mod sources;
pub mod waves;

pub use crate::consultation::Consultation;
pub use crate::debate_rooms::DebateRooms;
pub use crate::documents::{DocumentFolder, Documents};
pub use crate::draft_calls::DraftPerformer;
pub use crate::driver::{Driver, Ended, Pause, cancel};
pub use crate::error::EngineError;
pub use crate::execute::{ExecuteFuture, Executor, Job, Ran, SandboxPerformer};
pub use crate::gather::{GatherError, Gatherer, Origin};
pub use crate::gathering::{GatherFuture, GatherPerformer, Gathering};
pub use crate::lock::{RunLock, SlotLock};
pub use crate::news::{News, NewsSource};
pub use crate::perform::{ModelPerformer, PerformFuture, Performed, Performer};
pub use crate::record::{RunRecord, sequenced};
pub use crate::rooms::{Lobby, OnFailure, Room, RoomFuture, Rooms, Walls};
pub use crate::sandboxes::SandboxExecutor;
pub use crate::sources::Sources;
