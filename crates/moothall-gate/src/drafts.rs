//! The draft state machine: proposed changes to workspace files and their life cycle.
//!
//! A draft is bound to one file when it is requested and is identified by an opaque [`DraftId`].
//! Drafts that are submitted together are applied atomically. [`decide`] turns a command into
//! events and [`DraftSet::evolve`] applies an event to the state; neither touches a file. The journal
//! of events is the source of truth.

mod decide;
mod event;
mod handoff;
mod identity;
mod import;
mod notifications;
mod path;
mod state;
mod steps;

pub use self::decide::{
    ApprovalRules, DraftLimits, DraftOperation, DraftRefusal, MAX_TEXT_CHARS, decide,
};
pub use self::event::{
    ApplyOutcome, AuditRecord, DraftEvent, FileState, FileStep, JournalFinding, ProposedChange,
    ReviewDecision,
};
pub use self::handoff::{HandoffFile, VIEW, handoff_files, transition};
pub use self::identity::{ClientInfo, DraftId, Principal, PrincipalAccount, PrincipalKind, TaskId};
pub use self::import::{
    DiffFault, DiffHunk, FileProposal, ImportFault, ProposedFile, apply_hunks, read_answer,
};
pub use self::notifications::{DraftNotification, DraftNotificationKind, notifications_for};
pub(crate) use self::path::folded_name;
pub use self::path::{PathFault, RelPath};
pub use self::state::{Draft, DraftSet, DraftState, DraftSubmission};
pub use self::steps::{BlobRetention, referenced_blobs, steps, undo_steps};

#[cfg(test)]
#[path = "drafts_tests.rs"]
mod tests;
