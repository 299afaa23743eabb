//! The limiters of one provider, created when a model is first used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalog::ProviderLimits;
use crate::model_limiter::ModelLimiter;

/// Clients choose the model, so the number of names must be limited. Far more than a provider has.
const MAX_MODELS: usize = 1000;

#[derive(Debug)]
pub(crate) struct ModelLimiters {
    limits: ProviderLimits,
    by_model: Mutex<BTreeMap<String, Arc<ModelLimiter>>>,
}

impl ModelLimiters {
    pub(crate) fn new(limits: ProviderLimits) -> Self {
        Self { limits, by_model: Mutex::default() }
    }

    /// Calls that wait for a slot.
    pub(crate) fn queued(&self) -> usize {
        let by_model = self.by_model.lock().unwrap_or_else(PoisonError::into_inner);
        by_model.values().map(|limiter| limiter.queued()).sum()
    }

    pub(crate) fn of(&self, model: &str) -> Arc<ModelLimiter> {
        let mut by_model = self.by_model.lock().unwrap_or_else(PoisonError::into_inner);
        match by_model.get(model) {
            Some(limiter) => Arc::clone(limiter),
            None => {
                if by_model.len() >= MAX_MODELS {
                    by_model.retain(|_, limiter| Arc::strong_count(limiter) > 1);
                }
                let limiter = Arc::new(ModelLimiter::new(self.limits));
                by_model.insert(model.to_owned(), Arc::clone(&limiter));
                limiter
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limiters_of_unused_models_are_forgotten_before_they_fill_the_memory() {
        let limits = ProviderLimits {
            requests_per_minute: None,
            tokens_per_minute: None,
            concurrent: std::num::NonZeroU32::MIN,
        };
        let limiters = ModelLimiters::new(limits);
        let used = limiters.of("used");
        for number in 0..3 * MAX_MODELS {
            drop(limiters.of(&number.to_string()));
        }
        assert!(limiters.by_model.lock().unwrap().len() <= MAX_MODELS);
        assert!(Arc::ptr_eq(&used, &limiters.of("used")));
    }
}
