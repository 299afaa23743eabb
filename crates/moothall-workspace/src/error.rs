//! Errors of the draft store.

use std::io;

use moothall_core::drafts::{DraftRefusal, PathFault};
use moothall_core::gate::PolicyFault;
use moothall_core::{ErrorCode, Sha256Hex};

/// An error of the draft store. See [`Self::is_refusal`] for those that the caller can fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// The draft's state, the caller or a limit does not allow it.
    #[error(transparent)]
    Refused(#[from] DraftRefusal),
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] PathFault),
    /// The file cannot be drafted.
    #[error("{path}: {fault}")]
    File { path: String, fault: FileFault },
    /// The text to replace was not found exactly once.
    #[error(transparent)]
    OldText(#[from] OldTextFault),
    /// The caller's input is invalid.
    #[error("{0}")]
    Input(String),
    /// The hourly limit on checks is reached.
    #[error("too many checks and reviews in one hour (limit: {most}); nothing was submitted")]
    TooManyChecks { most: usize },
    /// Other processes hold the store lock. Nothing was done.
    #[error("the draft store is busy; nothing was done, try again in a moment")]
    Busy,
    /// The caller cancelled the operation.
    #[error("cancelled; nothing was submitted")]
    Stopped,
    /// The policy is invalid; nothing is judged.
    #[error(transparent)]
    Policy(#[from] PolicyFault),
    /// A stored content was removed or is damaged.
    #[error("content {0} is no longer stored")]
    ContentGone(Sha256Hex),
    /// A journal record differs from what was written. The store stops.
    #[error("journal is damaged at record {seq} of {file}: {why}")]
    JournalDamaged {
        /// Sequence number of the record, from 1.
        seq: u64,
        file: String,
        why: &'static str,
    },
    /// Writing the journal failed in this operation. The next operation rereads the disk and tries
    /// again.
    #[error("cannot write the journal: try again once the disk is writable")]
    JournalBroken,
    /// The content of a file is not valid. The store works without the file.
    #[error("{}", .file.cannot_read())]
    InvalidFile {
        file: DraftStateFile,
        /// Names the path and what is wrong.
        #[source]
        source: io::Error,
    },
    /// A file system operation failed.
    #[error("{what}")]
    Io {
        /// The failed operation, such as `cannot read the journal`.
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

impl DraftError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }

    pub(crate) fn file(path: impl ToString, fault: FileFault) -> Self {
        Self::File { path: path.to_string(), fault }
    }

    /// The error code for programs.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(refusal) => match refusal {
                DraftRefusal::Unknown => ErrorCode::DraftNotFound,
                DraftRefusal::Seal { .. } => ErrorCode::SealDiffers,
                DraftRefusal::Policy => ErrorCode::PolicyChanged,
                DraftRefusal::State { .. } => ErrorCode::DraftState,
                DraftRefusal::NotApprover { .. }
                | DraftRefusal::WorkerName { .. }
                | DraftRefusal::Author => ErrorCode::NotAReviewer,
                _ => ErrorCode::Refused,
            },
            Self::Path(_) => ErrorCode::PathRefused,
            Self::File { fault, .. } => match fault {
                FileFault::Missing | FileFault::Deleted => ErrorCode::FileNotFound,
                FileFault::Exists => ErrorCode::FileExists,
                _ => ErrorCode::FileUnusable,
            },
            Self::OldText(_) => ErrorCode::OldText,
            Self::Input(_) => ErrorCode::Refused,
            Self::TooManyChecks { .. } => ErrorCode::TooManyRequests,
            Self::Busy => ErrorCode::Busy,
            Self::ContentGone(_) => ErrorCode::ContentGone,
            Self::Stopped
            | Self::Policy(_)
            | Self::JournalDamaged { .. }
            | Self::JournalBroken
            | Self::InvalidFile { .. }
            | Self::Io { .. } => ErrorCode::Internal,
        }
    }

    /// Whether the caller can fix it, as opposed to the operator of the machine.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Path(_)
            | Self::File { .. }
            | Self::OldText(_)
            | Self::Input(_)
            | Self::TooManyChecks { .. } => true,
            Self::Busy
            | Self::Stopped
            | Self::Policy(_)
            | Self::ContentGone(_)
            | Self::JournalDamaged { .. }
            | Self::JournalBroken
            | Self::InvalidFile { .. }
            | Self::Io { .. } => false,
        }
    }
}

/// A file that the store can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftStateFile {
    /// Remembers that `_handoff` is kept, and which files in it are ours.
    Handoff,
    /// The newest record of the audit log, stored outside of the store's directory.
    Anchor,
}

impl DraftStateFile {
    pub(crate) const fn cannot_read(self) -> &'static str {
        match self {
            Self::Handoff => "cannot read the state of the `_handoff` directory",
            Self::Anchor => "cannot read the anchor of the audit log",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    #[error("file not found")]
    Missing,
    #[error("already exists")]
    Exists,
    /// The file was deleted after the draft was opened.
    #[error("deleted after the draft was opened; a draft cannot restore it")]
    Deleted,
    /// The file or a parent directory disappeared while in use.
    #[error("disappeared while in use")]
    Vanished,
    /// Only text can be drafted and merged.
    #[error("not UTF-8 text")]
    NotText,
    #[error("larger than the policy allows")]
    TooLarge,
    /// Not a regular file, or a component of its path is not a directory.
    #[error("{0}")]
    NotPlain(&'static str),
    #[error("the policy does not allow workers to read or change it")]
    Denied,
    /// Blocks a file that Moothall generates.
    #[error("not created by Moothall; refusing to overwrite it")]
    NotOurs,
}

/// Why the old text of an edit cannot be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OldTextFault {
    #[error("old text is empty")]
    Empty,
    #[error("old text occurs more than once: include more of the surrounding text")]
    Repeated,
    #[error("old text not found in the draft")]
    Missing,
}
