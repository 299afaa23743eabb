//! Drafts: what a worker proposes to do to the files of a workspace, and what becomes of it.
//!
//! A draft is bound to one file when it is requested, by an opaque [`DraftId`] that means nothing
//! but itself. Several drafts may be submitted together, and are then applied all or not at all.
//! [`decide`] says what a command leads to and [`Drafts::evolve`] what an event changes; neither
//! touches a file. The events are the journal, and the journal is the truth.

mod decide;
mod event;
mod import;
mod names;
mod news;
mod path;
mod state;
mod steps;
mod view;

pub use self::decide::{Command, Limits, MAX_TEXT_CHARS, Refusal, Reviewers, decide};
pub use self::event::{Change, End, Event, FileState, JudgedFinding, Record, Say, Step};
pub use self::import::{Hunk, ImportFault, Proposal, Proposed, apply_hunks, read_answer};
pub use self::names::{Account, Client, DraftId, Principal, PrincipalKind, TaskId};
pub use self::news::{News, NewsKind, news};
pub use self::path::{PathFault, RelPath};
pub use self::state::{Draft, Drafts, State, Submission};
pub use self::steps::{Retention, kept_blobs, steps, undo_steps};
pub use self::view::{VIEW, ViewFile, transition, view};

#[cfg(test)]
#[path = "drafts_tests.rs"]
mod tests;
