//! Consultations that were read lately.
//!
//! What a run has written follows from its journal, and deriving it takes as long as replaying the
//! run. A page asks for several parts of the same run at once, and readers of one run ask for the same.

use std::collections::VecDeque;
use std::sync::Arc;

use moothall_core::RunId;
use moothall_engine::{Consultation, RunRecord};
use moothall_store::RunRow;
use tokio::sync::Mutex;

use crate::{App, Problem};

/// How many stay. Each takes as much memory as its run has words.
const KEPT: usize = 8;

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

/// The newest readings, the one that was asked for last at the end.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<VecDeque<(State, Arc<Reading>)>>);

impl Shelf {
    /// The consultation of a run. Those who ask at the same time wait for one reading.
    pub(crate) async fn read(&self, app: &App, row: &RunRow) -> Result<Arc<Reading>, Problem> {
        let state = State {
            run_id: row.run_id.clone(),
            events: row.events,
            updated_at_ms: row.updated_at_ms,
            approvals: app.store.approvals(&row.run_id).await?.len(),
        };
        let mut kept = self.0.lock().await;
        if let Some(at) = kept.iter().position(|(known, _)| *known == state)
            && let Some((state, reading)) = kept.remove(at)
        {
            kept.push_back((state, Arc::clone(&reading)));
            return Ok(reading);
        }
        let record = RunRecord::read(&*app.store, &row.run_id).await?;
        let derive = move || {
            let consultation = Consultation::of(&record)?;
            Some(consultation.map(|consultation| Reading { record, consultation }))
        };
        let derived = tokio::task::spawn_blocking(derive).await;
        let derived = derived.map_err(|error| Problem::internal(&error))?;
        let none = || {
            Problem::conflict("no-consultation", "only consultations have documents of this kind")
                .with_hint("what a program did is in its snapshot and its events")
        };
        let reading = derived.ok_or_else(none)?.map_err(|error| Problem::internal(&error))?;
        let reading = Arc::new(reading);
        kept.retain(|(known, _)| known.run_id != state.run_id);
        kept.push_back((state, Arc::clone(&reading)));
        while kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(reading)
    }
}
