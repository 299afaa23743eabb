//! The draft state machine: proposed changes to workspace files and their life cycle.
//!
//! A draft is bound to one file when it is requested and is identified by an opaque [`DraftId`].
//! Drafts that are submitted together are applied atomically. [`decide`] turns a command into
//! events and [`DraftSet::evolve`] applies an event to the state; neither touches a file. The journal
//! of events is the source of truth.

mod decide;
mod event;
mod handoff;
mod hunks;
mod identity;
mod import;
mod notifications;
mod path;
mod state;
mod steps;

pub use self::decide::{
    ApprovalRules, DraftLimits, DraftOperation, DraftRefusal, MAX_COMMENTS, MAX_TEXT_CHARS, decide,
};
pub use self::event::{
    AmendedFile, ApplyOutcome, AuditRecord, CommentSide, DraftEvent, FileState, FileStep,
    HunkSelection, JournalFinding, LineComment, ProposedChange, ReviewDecision,
};
pub use self::handoff::{HandoffFile, VIEW, handoff_files, transition};
pub use self::hunks::{
    DraftProposal, FileVersion, HUNK_CONTEXT, HunkResult, ReviewHunk, ReviewHunkKind, UnknownHunk,
    lines_of,
};
pub use self::identity::{ClientInfo, DraftId, Principal, PrincipalAccount, PrincipalKind, TaskId};
pub use self::import::{
    DiffFault, DiffHunk, FileProposal, ImportFault, ProposedFile, apply_hunks, read_answer,
};
pub use self::notifications::{DraftNotification, DraftNotificationKind, notifications_for};
pub(crate) use self::path::folded_name;
pub use self::path::{PathFault, RelPath};
pub use self::state::{Draft, DraftSet, DraftState, DraftSubmission, ReviewComment};
pub use self::steps::{BlobRetention, referenced_blobs, steps, undo_steps};

#[cfg(test)]
#[path = "drafts_tests.rs"]
mod tests;
