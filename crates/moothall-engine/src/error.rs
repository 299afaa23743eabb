//! Why a run could not be driven. A run that fails is not an error: that is an outcome.

use moothall_core::{EffectId, NotCanonical, RunId, Sha256Hex, UnexpectedResult};
use moothall_store::StoreError;

/// The machinery broke. The run can be resumed unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// Another process drives the run.
    #[error("run {0} is being driven by another process")]
    Busy(RunId),
    /// The lock file could not be used.
    #[error("the lock of the run cannot be taken")]
    Lock(#[source] std::io::Error),
    /// The journal holds an answer to another question. Nothing was asked again.
    #[error("effect `{id}` asks {asked}, but the journal answered {answered}")]
    JournalMismatch {
        /// The effect.
        id: EffectId,
        /// The hash of what the workflow asks now.
        asked: Sha256Hex,
        /// The hash of what was answered.
        answered: Sha256Hex,
    },
    /// The workflow and the driver disagree.
    #[error(transparent)]
    Unexpected(#[from] UnexpectedResult),
    /// An effect has no hash.
    #[error("an effect cannot be written canonically")]
    NotCanonical(#[from] NotCanonical),
    /// The workflow waits for nothing and has no outcome.
    #[error("the workflow waits for nothing")]
    Stalled,
    /// What a child starts with is not there, or is not what it was.
    #[error("what `{0}` starts with cannot be read")]
    Unreadable(EffectId),
    /// A task of ours panicked.
    #[error("an effect could not be performed to its end")]
    Lost,
}

impl EngineError {
    /// Whether driving the run again may succeed, now or after somebody has cured what is broken.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => !error.is_final(),
            Self::Busy(_) | Self::Lost | Self::Lock(_) => true,
            Self::Unreadable(_)
            | Self::JournalMismatch { .. }
            | Self::Unexpected(_)
            | Self::NotCanonical(_)
            | Self::Stalled => false,
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
