//! Why something about drafts could not be done.

use std::io;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{PathFault, Refusal};
use moothall_core::gate::PolicyFault;

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
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: String,
        /// Why.
        why: &'static str,
    },
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

    /// Whether the caller can mend it, in contrast to whoever keeps the machine.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Path(_)
            | Self::File { .. }
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
