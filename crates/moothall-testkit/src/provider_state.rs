//! The script and the records of the server. Both share one lock, which keeps the order of calls,
//! call numbers and script entries the same.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    behaviour::ProviderBehaviour,
    call::ProviderCall,
    stats::{CallBill, ProviderStats},
};

#[derive(Debug, Default)]
pub(crate) struct ProviderState {
    inner: Mutex<ProviderStateInner>,
}

#[derive(Debug, Default)]
struct ProviderStateInner {
    script: VecDeque<Arc<ProviderBehaviour>>,
    fallback: BehaviourSource,
    memory: RecordDetail,
    calls: Vec<Arc<ProviderCall>>,
    stats: ProviderStats,
}

/// How the behaviour for a call is determined.
#[derive(Clone)]
pub(crate) enum BehaviourSource {
    Fixed(Arc<ProviderBehaviour>),
    Function(Arc<dyn Fn(&ProviderCall) -> ProviderBehaviour + Send + Sync>),
}

impl BehaviourSource {
    pub(crate) fn behaviour(self, call: &ProviderCall) -> Arc<ProviderBehaviour> {
        match self {
            Self::Fixed(behaviour) => behaviour,
            Self::Function(function) => Arc::new(function(call)),
        }
    }
}

impl Default for BehaviourSource {
    fn default() -> Self {
        Self::Fixed(Arc::default())
    }
}

impl fmt::Debug for BehaviourSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(behaviour) => formatter.debug_tuple("Fixed").field(behaviour).finish(),
            Self::Function(_) => formatter.debug_tuple("Function").finish_non_exhaustive(),
        }
    }
}

/// Which records are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum RecordDetail {
    #[default]
    Everything,
    Totals,
}

impl ProviderState {
    pub(crate) fn extend_script(&self, behaviours: impl Iterator<Item = ProviderBehaviour>) {
        self.lock().script.extend(behaviours.map(Arc::new));
    }

    pub(crate) fn script_length(&self) -> usize {
        self.lock().script.len()
    }

    pub(crate) fn set_fallback(&self, choice: BehaviourSource) {
        self.lock().fallback = choice;
    }

    pub(crate) fn keep_only_totals(&self) {
        let mut inner = self.lock();
        inner.memory = RecordDetail::Totals;
        inner.calls = Vec::new();
        inner.stats.bills = Vec::new();
    }

    pub(crate) fn calls(&self) -> Vec<Arc<ProviderCall>> {
        self.lock().calls.clone()
    }

    pub(crate) fn stats(&self) -> ProviderStats {
        let mut stats = self.lock().stats.clone();
        stats.bills.sort_unstable_by_key(|bill| bill.call);
        stats
    }

    /// Counts a request that is not a model call.
    pub(crate) fn reject(&self) {
        self.lock().stats.rejected += 1;
    }

    /// Numbers and records a call, and returns how its behaviour is determined. The function of a
    /// [`BehaviourSource`] runs outside the lock.
    pub(crate) fn open(&self, mut call: ProviderCall) -> (ActiveCall<'_>, BehaviourSource) {
        let mut inner = self.lock();
        call.number = inner.stats.received;
        let call = Arc::new(call);
        inner.stats.received += 1;
        inner.stats.in_flight += 1;
        inner.stats.max_concurrent = inner.stats.max_concurrent.max(inner.stats.in_flight);
        if inner.memory == RecordDetail::Everything {
            inner.calls.push(Arc::clone(&call));
        }
        let choice = match inner.script.pop_front() {
            Some(behaviour) => BehaviourSource::Fixed(behaviour),
            None => inner.fallback.clone(),
        };
        drop(inner);
        (ActiveCall { state: self, call, ended: false }, choice)
    }

    fn lock(&self) -> MutexGuard<'_, ProviderStateInner> {
        // Every update is complete before anything can panic, so the data behind a poisoned lock is
        // still consistent.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in progress. Counts as abandoned if it is dropped before [`ActiveCall::end`].
#[derive(Debug)]
pub(crate) struct ActiveCall<'a> {
    state: &'a ProviderState,
    pub(crate) call: Arc<ProviderCall>,
    ended: bool,
}

impl ActiveCall<'_> {
    /// Records the bill; called when the response starts.
    pub(crate) fn bill(&self, bill: CallBill) {
        let mut inner = self.state.lock();
        inner.stats.billed = inner.stats.billed.plus(bill.usage);
        if inner.memory == RecordDetail::Everything {
            inner.stats.bills.push(bill);
        }
    }

    /// Called just before the last bytes are sent. Afterwards would be too late: the client may
    /// already have made its next call, which would then raise the measured concurrency.
    pub(crate) fn end(&mut self) {
        if !self.ended {
            self.ended = true;
            let mut inner = self.state.lock();
            inner.stats.in_flight -= 1;
            inner.stats.answered += 1;
        }
    }
}

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let mut inner = self.state.lock();
            inner.stats.in_flight -= 1;
            inner.stats.abandoned += 1;
        }
    }
}
