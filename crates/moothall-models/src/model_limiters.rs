//! The limiters of one provider, created when a model is first used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalog::ProviderLimits;
use crate::model_limiter::ModelLimiter;

#[derive(Debug)]
pub(crate) struct ModelLimiters {
    limits: ProviderLimits,
    by_model: Mutex<BTreeMap<String, Arc<ModelLimiter>>>,
}

impl ModelLimiters {
    pub(crate) fn new(limits: ProviderLimits) -> Self {
        Self { limits, by_model: Mutex::default() }
    }

    pub(crate) fn of(&self, model: &str) -> Arc<ModelLimiter> {
        let mut by_model = self.by_model.lock().unwrap_or_else(PoisonError::into_inner);
        match by_model.get(model) {
            Some(limiter) => Arc::clone(limiter),
            None => Arc::clone(
                by_model
                    .entry(model.to_owned())
                    .or_insert_with(|| Arc::new(ModelLimiter::new(self.limits))),
            ),
        }
    }
}
