//! Remembers which models are unavailable, so that calls with fallbacks do not wait for them.
//!
//! Only calls that have a fallback use this. Once per interval, one of them tries the unavailable
//! model again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::model::FailureKind;

/// The unavailable models of a process, by server and model.
#[derive(Debug, Default)]
pub(crate) struct ModelAvailability {
    outages: Mutex<BTreeMap<String, ModelOutage>>,
}

#[derive(Debug, Clone, Copy)]
struct ModelOutage {
    reason: FailureKind,
    try_again_at: Instant,
}

/// Whether to call a model now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelState {
    Available,
    /// It failed before; this call finds out whether it is available again.
    Recheck,
    /// It failed recently, for this reason.
    Unavailable(FailureKind),
}

impl ModelAvailability {
    /// The state of a model. Only one caller per `interval` gets [`ModelState::Recheck`].
    pub(crate) fn state(&self, model: &str, now: Instant, interval: Duration) -> ModelState {
        match self.outages().get_mut(model) {
            None => ModelState::Available,
            Some(outage) if now >= outage.try_again_at => {
                outage.try_again_at = now + interval;
                ModelState::Recheck
            }
            Some(outage) => ModelState::Unavailable(outage.reason),
        }
    }

    /// Whether another call found the model unavailable.
    pub(crate) fn is_unavailable(&self, model: &str) -> bool {
        self.outages().contains_key(model)
    }

    pub(crate) fn note_failed(
        &self,
        model: &str,
        reason: FailureKind,
        now: Instant,
        interval: Duration,
    ) {
        let outage = ModelOutage { reason, try_again_at: now + interval };
        self.outages().insert(model.to_owned(), outage);
    }

    pub(crate) fn note_answered(&self, model: &str) {
        self.outages().remove(model);
    }

    fn outages(&self) -> MutexGuard<'_, BTreeMap<String, ModelOutage>> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "model_availability_tests.rs"]
mod tests;
