//! Connections and limits of providers, shared by all gateways of a process, so that limits apply
//! to the process and not to each run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalog::{ModelProvider, ProviderLimits};
use crate::http::HttpClients;
use crate::model_availability::ModelAvailability;
use crate::model_limiters::ModelLimiters;

/// Cheap to clone; clones share everything.
#[derive(Debug, Clone, Default)]
pub struct ProviderConnections {
    clients: Arc<HttpClients>,
    shared: Arc<SharedLimits>,
}

#[derive(Debug, Default)]
struct SharedLimits {
    limiters: Mutex<BTreeMap<LimiterKey, Arc<ModelLimiters>>>,
    /// Addresses that have answered a call, so that their failures are outages and not mistakes in
    /// the configuration.
    answered: Mutex<BTreeSet<String>>,
    availability: ModelAvailability,
}

/// Runs share limits if they use the same server with the same limits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LimiterKey {
    provider: String,
    address: String,
    limits: ProviderLimits,
}

impl ProviderConnections {
    /// Shares the limits, but not the connections: those end with the runtime that opened them, so a
    /// temporary runtime needs its own.
    #[must_use]
    pub fn with_own_clients(&self) -> Self {
        Self { clients: Arc::default(), shared: Arc::clone(&self.shared) }
    }

    pub(crate) fn clients(&self) -> Arc<HttpClients> {
        Arc::clone(&self.clients)
    }

    pub(crate) fn limiters(&self, provider: &ModelProvider) -> Arc<ModelLimiters> {
        let key = LimiterKey {
            provider: provider.name.clone(),
            address: provider.base_url.clone(),
            limits: provider.limits,
        };
        let mut limiters = self.shared.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        let limiter = || Arc::new(ModelLimiters::new(provider.limits));
        Arc::clone(limiters.entry(key).or_insert_with(limiter))
    }

    /// Which models with fallbacks are unavailable.
    pub(crate) fn availability(&self) -> &ModelAvailability {
        &self.shared.availability
    }

    pub(crate) fn note_answered(&self, address: &str) {
        let mut answered = self.shared.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if !answered.contains(address) {
            answered.insert(address.to_owned());
        }
    }

    pub(crate) fn has_answered(&self, address: &str) -> bool {
        self.shared.answered.lock().unwrap_or_else(PoisonError::into_inner).contains(address)
    }
}
