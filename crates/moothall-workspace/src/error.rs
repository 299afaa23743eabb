//! Why something about drafts could not be done.

use std::io;

use moothall_core::drafts::{PathFault, Refusal};
use moothall_core::gate::PolicyFault;
use moothall_core::{ErrorCode, Sha256Hex};

/// A refusal is an answer; the rest means that the machinery broke.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// The state of the draft, the caller or a limit says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The path says no.
    #[error(transparent)]
    Path(#[from] PathFault),
    /// The file says no.
    #[error("{path}: {fault}")]
    File {
        /// Which.
        path: String,
        /// Why.
        fault: FileFault,
    },
    /// The text that an edit wants to replace.
    #[error(transparent)]
    OldText(#[from] OldTextFault),
    /// What the caller sent says no.
    #[error("{0}")]
    Input(String),
    /// Too many checks ran lately.
    #[error("checks and reviews within an hour: {most} are the most; nothing was handed in")]
    TooManyChecks {
        /// How often it may be.
        most: usize,
    },
    /// Others use the store, and did not finish in time. Nothing was done.
    #[error("the drafts of this workspace are busy; nothing was done, try again in a moment")]
    Busy,
    /// Whoever wanted it does not want it any more.
    #[error("it was stopped; nothing was handed in")]
    Stopped,
    /// The policy cannot be used; nothing is judged.
    #[error(transparent)]
    Policy(#[from] PolicyFault),
    /// A stored content is gone.
    #[error("content {0} is not kept any more")]
    ContentGone(Sha256Hex),
    /// A record inside the journal is not what was written. Nothing goes on.
    #[error("the journal is damaged at record {seq} of {file}: {why}")]
    JournalDamaged {
        /// Which record, from 1.
        seq: u64,
        /// In which file.
        file: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Writing the journal failed in this operation; the next one reads the disk and tries again.
    #[error("the journal could not be written: try again once the disk can be written")]
    JournalBroken,
    /// The disk.
    #[error("{what}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
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

    /// What it is, for programs.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(refusal) => match refusal {
                Refusal::Unknown => ErrorCode::DraftNotFound,
                Refusal::Seal { .. } => ErrorCode::SealDiffers,
                Refusal::Policy => ErrorCode::PolicyChanged,
                Refusal::State { .. } => ErrorCode::DraftState,
                Refusal::NotApprover { .. } | Refusal::WorkerName { .. } | Refusal::Author => {
                    ErrorCode::NotAReviewer
                }
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
            | Self::Io { .. } => ErrorCode::Internal,
        }
    }

    /// Whether the caller can mend it, in contrast to whoever keeps the machine.
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
            | Self::Io { .. } => false,
        }
    }
}

/// Why a file cannot be drafted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// It does not exist.
    #[error("there is no such file")]
    Missing,
    /// Something has this name already.
    #[error("it exists")]
    Exists,
    /// It is gone since the draft was opened.
    #[error("it was deleted, and a draft does not bring it back")]
    Deleted,
    /// It, or a folder above it, went away while it was used.
    #[error("it vanished")]
    Vanished,
    /// Only text can be drafted and merged.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It is larger than the policy allows.
    #[error("it is larger than the policy allows")]
    TooLarge,
    /// It is not a plain file, or the way to it leads through something else than folders.
    #[error("{0}")]
    NotPlain(&'static str),
    /// The policy lets workers neither read nor change it.
    #[error("the policy lets workers neither read nor change it")]
    Denied,
    /// It is in the way of a file that Moothall generates.
    #[error("it is not ours, and nothing is written over it")]
    NotOurs,
}

/// Why a text cannot be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OldTextFault {
    /// There is nothing to look for.
    #[error("the old text is empty")]
    Empty,
    /// It is not clear which one is meant.
    #[error("the old text stands there more than once: give more of it")]
    Repeated,
    /// It is not there.
    #[error("the old text does not stand in the draft")]
    Missing,
}
