//! Errors while driving a run. A run that fails is not an error but an outcome.

use moothall_core::model::ModelName;
use moothall_core::{CanonicalJsonError, EffectId, RunId, Sha256Hex, UnexpectedResult};
use moothall_store::StoreError;

/// An internal failure. See [`Self::is_retryable`] for whether the run can be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error("store operation failed")]
    Store(#[from] StoreError),
    #[error("run {0} is already running in another process")]
    Busy(RunId),
    #[error("cannot lock the run")]
    Lock(#[source] std::io::Error),
    /// The journaled result belongs to a different request. The effect was not performed again.
    #[error("journal mismatch for effect `{id}`: request hash is {asked}, journal has {answered}")]
    JournalMismatch {
        id: EffectId,
        /// Hash of the current request.
        asked: Sha256Hex,
        /// Hash of the journaled request.
        answered: Sha256Hex,
    },
    /// The journaled answer is by a model that the request does not name.
    #[error("the journaled answer to `{id}` is by `{model}`, which is not a model of the request")]
    OtherModel { id: EffectId, model: ModelName },
    /// The workflow did not expect this result.
    #[error(transparent)]
    Unexpected(#[from] UnexpectedResult),
    /// The effect cannot be hashed.
    #[error("cannot serialize an effect as canonical JSON")]
    NotCanonical(#[from] CanonicalJsonError),
    /// The workflow has no pending effect and no outcome.
    #[error("workflow is stalled: no pending effect and no outcome")]
    Stalled,
    /// The input of a child is missing or has changed.
    #[error("the stored input of debate `{0}` is missing or has changed")]
    Unreadable(EffectId),
    /// A task panicked.
    #[error("a task panicked while performing an effect")]
    Lost,
}

impl EngineError {
    /// Whether driving the run again may succeed, now or after a person has fixed the cause.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => !error.is_final(),
            Self::Busy(_) | Self::Lost | Self::Lock(_) => true,
            Self::Unreadable(_)
            | Self::JournalMismatch { .. }
            | Self::OtherModel { .. }
            | Self::Unexpected(_)
            | Self::NotCanonical(_)
            | Self::Stalled => false,
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
