//! The run loop: publish, perform, journal, resume. One loop serves a workflow and all its
//! children.
//!
//! ```text
//! workflow or child ─ step ─► journal writer: result and events in one transaction
//!                              │
//!        already in journal ◄──┼──► not in journal yet
//!        resumed immediately   │    performed, at most `at_once` across all machines
//!                              └──► a child: started, at most `parallel_children`
//! ```

mod children;
mod journal_writer;
mod pending_effect;
mod run_loop;

use std::fmt;
use std::sync::Arc;

use moothall_core::consult::MoveReview;
use moothall_core::model::{FailureKind, ModelFailure, ModelName};
use moothall_core::money::SpendTotals;
use moothall_core::{Outcome, RunEvent, RunEventBody, RunId, Workflow};
use moothall_store::{ControlRequest, RunCommit, RunRow, RunState, Store, StoredEvent, now_ms};
use tracing::Instrument as _;

use self::children::ChildScheduler;
use self::journal_writer::JournalWriter;
pub(crate) use self::journal_writer::state_after;
use self::run_loop::RunLoop;
use crate::error::EngineError;
use crate::guests::IsolationMode;
use crate::perform::EffectPerformer;
use crate::run_trace::{RunTrace, write_run_spans};

/// Default number of effects performed concurrently. The gateway enforces the providers' own
/// limits.
const DEFAULT_AT_ONCE: usize = 64;

/// Default number of concurrent children.
const DEFAULT_PARALLEL_CHILDREN: usize = 15;

/// Drives one run until it finishes, pauses or is cancelled.
///
/// Invariants:
/// - A result is in the journal before any effect that follows from it is performed. Model calls
///   are exempt: they have no side effects and may be repeated.
/// - A result and the events that follow from it are written in one transaction.
/// - An effect whose result is in the journal is not performed again, and a child whose end is in
///   the journal is not started again.
/// - The hash of each request is compared with the hash of the journaled request.
pub struct RunDriver {
    store: Arc<dyn Store>,
    performer: Arc<dyn EffectPerformer>,
    run_id: RunId,
    at_once: usize,
    parallel_children: usize,
    isolation: IsolationMode,
    person_review: Option<MoveReview>,
    honors_pause: bool,
    can_resume: bool,
    on_event: Box<dyn FnMut(&StoredEvent) + Send>,
}

impl fmt::Debug for RunDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunDriver").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

/// How a driver stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunExit {
    /// The workflow reached its outcome.
    Done(Outcome),
    /// The run is paused and can be resumed. All calls in progress have finished and are journaled.
    Paused(RunPause),
    /// The run was cancelled.
    Cancelled,
}

/// Why a run is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPause {
    /// The budget is used up.
    Budget(ModelFailure),
    /// The provider of this model is unavailable, or rejects the API key or the account.
    Failure(ModelName, ModelFailure),
    /// A person requested the pause.
    Person,
    /// The workflow has a question for a person.
    Question(String),
}

impl RunPause {
    /// A pause because of this model failure.
    fn after(model: ModelName, failure: ModelFailure) -> Self {
        match failure.kind {
            FailureKind::OverBudget => Self::Budget(failure),
            _ => Self::Failure(model, failure),
        }
    }
}

/// Detail text of the pause event when a provider gives no answer, shared by all runners.
pub(crate) fn pause_detail(model: &ModelName, failure: &ModelFailure) -> String {
    format!("{model}: {}: {}", failure.kind, failure.detail)
}

impl RunDriver {
    /// Creates a driver for a run that is in the store. The caller must hold the run's lock.
    /// Children run in this process unless [`Self::isolation`] is set.
    pub fn new(store: Arc<dyn Store>, performer: Arc<dyn EffectPerformer>, run_id: RunId) -> Self {
        Self {
            store,
            performer,
            run_id,
            at_once: DEFAULT_AT_ONCE,
            parallel_children: DEFAULT_PARALLEL_CHILDREN,
            isolation: IsolationMode::None,
            person_review: None,
            honors_pause: false,
            can_resume: true,
            on_event: Box::new(|_| {}),
        }
    }

    /// Sets the maximum number of effects performed concurrently, across the workflow and its
    /// children.
    #[must_use]
    pub fn at_once(self, at_once: usize) -> Self {
        Self { at_once: at_once.max(1), ..self }
    }

    /// Sets the maximum number of concurrent children. Further children are queued in request
    /// order.
    #[must_use]
    pub fn parallel_children(self, parallel_children: usize) -> Self {
        Self { parallel_children: parallel_children.max(1), ..self }
    }

    /// Sets where children run.
    #[must_use]
    pub fn isolation(self, isolation: IsolationMode) -> Self {
        Self { isolation, ..self }
    }

    /// Sets a person's answer to the question at which the run is paused. The first such question
    /// gets this answer, which is journaled; without it the run pauses.
    #[must_use]
    pub fn person_review(self, review: Option<MoveReview>) -> Self {
        Self { person_review: review, ..self }
    }

    /// Honors a pause that was requested before `drive` is called. By default `drive` clears such a
    /// request.
    ///
    /// Use this if you announce the resumption first: clear earlier requests, announce, then drive.
    /// A pause requested right after the announcement is then not lost.
    #[must_use]
    pub fn honor_pause(self) -> Self {
        Self { honors_pause: true, ..self }
    }

    /// Treats a missing answer as a result instead of pausing, for runs that are not stored and
    /// cannot be resumed.
    #[must_use]
    pub fn without_resume(self) -> Self {
        Self { can_resume: false, ..self }
    }

    /// Sets a callback for every event that is new to the store, in order.
    #[must_use]
    pub fn on_event(self, on_event: impl FnMut(&StoredEvent) + Send + 'static) -> Self {
        Self { on_event: Box::new(on_event), ..self }
    }

    /// Drives the workflow from the start or from the end of the journal. Dropping the future stops
    /// all work in progress; the run can be driven again.
    pub async fn drive(self, workflow: &mut (dyn Workflow + Send)) -> Result<RunExit, EngineError> {
        let row = self.store.run(&self.run_id).await?;
        let trace =
            row.as_ref().map_or_else(|| RunTrace::new(&self.run_id, None), RunTrace::of_row);
        self.drive_row(row, workflow).instrument(trace.context()).await
    }

    async fn drive_row(
        self,
        row: Option<RunRow>,
        workflow: &mut (dyn Workflow + Send),
    ) -> Result<RunExit, EngineError> {
        let events = match row {
            Some(row) if row.state == RunState::Cancelled => return Ok(RunExit::Cancelled),
            Some(row) => match row.outcome {
                // The run has already ended: perform and publish nothing.
                Some(outcome) => return Ok(RunExit::Done(outcome)),
                None => row.events,
            },
            None => 0,
        };
        if !self.honors_pause {
            self.store.clear_control(&self.run_id, ControlRequest::Pause).await?;
        }
        let journal = self.store.journal(&self.run_id).await?;
        let children =
            ChildScheduler::new(self.run_id.clone(), self.isolation, self.parallel_children);
        let (store, run_id) = (Arc::clone(&self.store), self.run_id.clone());
        let mut writer = JournalWriter::new(self.store, self.performer, self.run_id, self.on_event);
        if events > 0 {
            writer.read_events().await?;
        }
        let exit = RunLoop::new(writer, journal, children, self.at_once)
            .person_review(self.person_review)
            .can_resume(self.can_resume)
            .drive(workflow)
            .await?;
        if !matches!(exit, RunExit::Paused(_)) {
            write_run_spans(&*store, &run_id).await;
        }
        Ok(exit)
    }
}

/// Cancels a run that has no driver because the driver died or was just stopped. The caller must
/// hold the run's lock. Returns the new events.
pub async fn cancel(
    store: &dyn Store,
    run_id: &RunId,
    spent: Option<SpendTotals>,
) -> Result<Vec<StoredEvent>, EngineError> {
    let commit = RunCommit {
        events: vec![RunEvent::of_run(RunEventBody::RunCancelled)],
        state: Some(RunState::Cancelled),
        spent,
        at_ms: now_ms(),
        ..RunCommit::default()
    };
    let events = store.commit(run_id, commit).await?;
    write_run_spans(store, run_id).await;
    Ok(events)
}
