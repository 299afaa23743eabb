//! Cache of recently read consultations.
//!
//! The content of a run is derived by replaying its journal, which is slow. A page requests several
//! parts of the same run at once, and several clients often read the same run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use moothall_core::ErrorCode;
use moothall_core::RunId;
use moothall_engine::{Consultation, RunRecord};
use moothall_store::RunRow;
use tokio::sync::Mutex as AsyncMutex;

use crate::{ApiProblem, AppState};

/// Number of cached consultations. Each takes about as much memory as the text of its run.
const MAX_CACHED_RUNS: usize = 8;

/// How long a replay waits for other replays of its team.
const REPLAY_WAIT: Duration = Duration::from_secs(50);

/// A run record and the consultation derived from it.
pub(crate) struct CachedConsultation {
    pub(crate) record: RunRecord,
    pub(crate) consultation: Consultation,
}

/// Cache key. Every change to a run changes one of these fields.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ConsultationCacheKey {
    run_id: RunId,
    events: u64,
    updated_at_ms: u64,
    approvals: usize,
}

/// Cache of recently read consultations.
#[derive(Default)]
pub(crate) struct ConsultationCache(PerRunCache<CachedConsultation>);

impl ConsultationCache {
    /// Returns the consultation of a run. Concurrent requests for the same run share one replay;
    /// requests for other runs do not wait for it.
    pub(crate) async fn read(
        &self,
        app: &AppState,
        row: &RunRow,
    ) -> Result<Arc<CachedConsultation>, ApiProblem> {
        let state = ConsultationCacheKey {
            run_id: row.run_id.clone(),
            events: row.events,
            updated_at_ms: row.updated_at_ms,
            approvals: app.store.approvals(&row.run_id).await?.len(),
        };
        let read = async || {
            let _permit = app.replays.acquire(&row.owner.team, REPLAY_WAIT).await?;
            derive(app, &row.run_id).await
        };
        self.0.get_or_read(state, read).await
    }
}

/// Reads a run record and derives its consultation.
async fn derive(app: &AppState, run_id: &RunId) -> Result<CachedConsultation, ApiProblem> {
    let record = RunRecord::read(&*app.store, run_id).await?;
    let derive = move || {
        let consultation = Consultation::of(&record)?;
        Some(consultation.map(|consultation| CachedConsultation { record, consultation }))
    };
    let derived = tokio::task::spawn_blocking(derive).await;
    let derived = derived.map_err(|error| ApiProblem::internal(&error))?;
    let none = || {
        let message = "the run is not a consultation: it has no memo, moves or debates";
        ApiProblem::conflict(ErrorCode::NoConsultation, message)
            .with_hint("for a program, read the run and its events instead")
    };
    derived.ok_or_else(none)?.map_err(|error| ApiProblem::internal(&error))
}

/// Holds the latest value per run. While a value is computed, only the lock of its run is held.
struct PerRunCache<T> {
    /// Least recently used first.
    entries: Mutex<VecDeque<(ConsultationCacheKey, Arc<T>)>>,
    /// One lock per run that is being read; its holder does the read.
    reading: Mutex<BTreeMap<RunId, Weak<AsyncMutex<()>>>>,
}

impl<T> Default for PerRunCache<T> {
    fn default() -> Self {
        Self { entries: Mutex::default(), reading: Mutex::default() }
    }
}

impl<T> PerRunCache<T> {
    async fn get_or_read(
        &self,
        state: ConsultationCacheKey,
        read: impl AsyncFnOnce() -> Result<T, ApiProblem>,
    ) -> Result<Arc<T>, ApiProblem> {
        if let Some(cached) = self.get(&state) {
            return Ok(cached);
        }
        let lock = self.lock_of(&state.run_id);
        let _turn = lock.lock().await;
        // The previous lock holder may have read it.
        if let Some(cached) = self.get(&state) {
            return Ok(cached);
        }
        let value = Arc::new(read().await?);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(cached, _)| cached.run_id != state.run_id);
        entries.push_back((state, Arc::clone(&value)));
        while entries.len() > MAX_CACHED_RUNS {
            entries.pop_front();
        }
        Ok(value)
    }

    fn get(&self, state: &ConsultationCacheKey) -> Option<Arc<T>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let at = entries.iter().position(|(cached, _)| cached == state)?;
        let (state, value) = entries.remove(at)?;
        entries.push_back((state, Arc::clone(&value)));
        Some(value)
    }

    fn lock_of(&self, run_id: &RunId) -> Arc<AsyncMutex<()>> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = reading.get(run_id).and_then(Weak::upgrade) {
            return lock;
        }
        reading.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(AsyncMutex::new(()));
        reading.insert(run_id.clone(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
#[path = "consultation_cache_tests.rs"]
mod tests;
