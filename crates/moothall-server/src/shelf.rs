//! Consultations that were read lately.
//!
//! What a run has written follows from its journal, and deriving it takes as long as replaying the
//! run. A page asks for several parts of the same run at once, and readers of one run ask for the same.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use moothall_core::ErrorCode;
use moothall_core::RunId;
use moothall_engine::{Consultation, RunRecord};
use moothall_store::RunRow;
use tokio::sync::Mutex as AsyncMutex;

use crate::{App, Problem};

/// How many stay. Each takes as much memory as its run has words.
const KEPT: usize = 8;

/// How long a reading waits for others of its team.
const READ_WAIT: Duration = Duration::from_secs(50);

/// A run, and what follows from it.
pub(crate) struct Reading {
    pub(crate) record: RunRecord,
    pub(crate) consultation: Consultation,
}

/// What a reading was made of. Whoever changes a run changes one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    run_id: RunId,
    events: u64,
    updated_at_ms: u64,
    approvals: usize,
}

/// Consultations that were read lately.
#[derive(Default)]
pub(crate) struct Shelf(ReadingCache<Reading>);

impl Shelf {
    /// The consultation of a run. Requests for the same run wait for one reading; those for other
    /// runs do not wait for it.
    pub(crate) async fn read(&self, app: &App, row: &RunRow) -> Result<Arc<Reading>, Problem> {
        let state = State {
            run_id: row.run_id.clone(),
            events: row.events,
            updated_at_ms: row.updated_at_ms,
            approvals: app.store.approvals(&row.run_id).await?.len(),
        };
        let read = async || {
            let _permit = app.readings.acquire(&row.owner.team, READ_WAIT).await?;
            derive(app, &row.run_id).await
        };
        self.0.get_or_read(state, read).await
    }
}

/// Reads the record of a run, and derives what follows from it.
async fn derive(app: &App, run_id: &RunId) -> Result<Reading, Problem> {
    let record = RunRecord::read(&*app.store, run_id).await?;
    let derive = move || {
        let consultation = Consultation::of(&record)?;
        Some(consultation.map(|consultation| Reading { record, consultation }))
    };
    let derived = tokio::task::spawn_blocking(derive).await;
    let derived = derived.map_err(|error| Problem::internal(&error))?;
    let none = || {
        Problem::conflict(
            ErrorCode::NoConsultation,
            "only consultations have documents of this kind",
        )
        .with_hint("what a program did is in its snapshot and its events")
    };
    derived.ok_or_else(none)?.map_err(|error| Problem::internal(&error))
}

/// The newest values of some runs. No lock is held while a value is made, except one that belongs to
/// its run.
struct ReadingCache<T> {
    /// The one that was asked for last is at the end.
    kept: Mutex<VecDeque<(State, Arc<T>)>>,
    /// Runs that are being read. Whoever holds the lock of a run reads it.
    reading: Mutex<BTreeMap<RunId, Weak<AsyncMutex<()>>>>,
}

impl<T> Default for ReadingCache<T> {
    fn default() -> Self {
        Self { kept: Mutex::default(), reading: Mutex::default() }
    }
}

impl<T> ReadingCache<T> {
    async fn get_or_read(
        &self,
        state: State,
        read: impl AsyncFnOnce() -> Result<T, Problem>,
    ) -> Result<Arc<T>, Problem> {
        if let Some(known) = self.get(&state) {
            return Ok(known);
        }
        let lock = self.lock_of(&state.run_id);
        let _turn = lock.lock().await;
        // Whoever had the turn before may have read it.
        if let Some(known) = self.get(&state) {
            return Ok(known);
        }
        let value = Arc::new(read().await?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known.run_id != state.run_id);
        kept.push_back((state, Arc::clone(&value)));
        while kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(value)
    }

    fn get(&self, state: &State) -> Option<Arc<T>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == state)?;
        let (state, value) = kept.remove(at)?;
        kept.push_back((state, Arc::clone(&value)));
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
#[path = "shelf_tests.rs"]
mod tests;
