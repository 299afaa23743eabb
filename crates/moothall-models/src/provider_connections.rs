//! Connections and limits of providers, shared by all gateways of a process, so that limits apply
//! to the process and not to each run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::model::{FailureKind, ModelName};

use crate::catalog::{ModelProvider, ProviderLimits};
use crate::http::HttpClients;
use crate::model_availability::ModelAvailability;
use crate::model_limiters::ModelLimiters;

/// Concurrent calls find the same outage. Their warnings within this time are one warning.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

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
    /// Calls whose last attempt was not answered and is repeated.
    failing: Mutex<BTreeMap<u64, FailingProvider>>,
    next_call: AtomicU64,
    /// When failed attempts were reported last, by address and number of the attempt.
    warned: Mutex<BTreeMap<(String, u32), Instant>>,
    availability: ModelAvailability,
}

#[derive(Debug)]
struct FailingProvider {
    address: String,
    model: ModelName,
    kind: FailureKind,
    since: Instant,
}

/// What the status says about one call that is repeated. Dropping it ends that, whether the call was
/// answered, given up or cancelled.
#[derive(Debug)]
pub(crate) struct CallOutage {
    shared: Arc<SharedLimits>,
    id: u64,
}

/// What the calls of this process wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// Calls that wait because the limit of concurrent calls is reached.
    pub queued: usize,
    /// The failure that has lasted longest and is being retried.
    pub outage: Option<ProviderOutage>,
}

/// A provider that does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderOutage {
    pub model: ModelName,
    pub kind: FailureKind,
    pub lasted: Duration,
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
        drop(answered);
        self.shared.failing().retain(|_, failing| failing.address != address);
    }

    /// For the failures of one call.
    pub(crate) fn call_outage(&self) -> CallOutage {
        let id = self.shared.next_call.fetch_add(1, Ordering::Relaxed);
        CallOutage { shared: Arc::clone(&self.shared), id }
    }

    /// What the calls of this process wait for.
    pub fn status(&self) -> ConnectionStatus {
        let limiters = self.shared.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        let queued = limiters.values().map(|limiters| limiters.queued()).sum();
        drop(limiters);
        let failing = self.shared.failing();
        let longest = failing.values().min_by_key(|failing| failing.since);
        let outage = longest.map(|failing| ProviderOutage {
            model: failing.model.clone(),
            kind: failing.kind,
            lasted: failing.since.elapsed(),
        });
        ConnectionStatus { queued, outage }
    }

    pub(crate) fn has_answered(&self, address: &str) -> bool {
        self.shared.answered.lock().unwrap_or_else(PoisonError::into_inner).contains(address)
    }

    /// Whether a failed attempt is reported as a warning.
    pub(crate) fn is_worth_a_warning(&self, address: &str, tries: u32, now: Instant) -> bool {
        let mut warned = self.shared.warned.lock().unwrap_or_else(PoisonError::into_inner);
        warned.retain(|_, last| now.saturating_duration_since(*last) < WARNING_INTERVAL);
        let key = (address.to_owned(), tries);
        let is_new = !warned.contains_key(&key);
        if is_new {
            warned.insert(key, now);
        }
        is_new
    }
}

impl SharedLimits {
    fn failing(&self) -> MutexGuard<'_, BTreeMap<u64, FailingProvider>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallOutage {
    /// An attempt of the call failed and is repeated.
    pub(crate) fn note_failing(&self, address: &str, model: &ModelName, kind: FailureKind) {
        let mut failing = self.shared.failing();
        let before = failing.remove(&self.id);
        // The provider answered, although the answer cannot be used.
        if !kind.pauses_run() {
            return;
        }
        let since = before.map_or_else(Instant::now, |before| before.since);
        let (address, model) = (address.to_owned(), model.clone());
        failing.insert(self.id, FailingProvider { address, model, kind, since });
    }
}

impl Drop for CallOutage {
    fn drop(&mut self) {
        self.shared.failing().remove(&self.id);
    }
}

#[cfg(test)]
#[path = "provider_connections_tests.rs"]
mod tests;
