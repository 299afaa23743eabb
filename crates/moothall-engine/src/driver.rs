//! The loop: publish, perform, journal, resume. One loop for a workflow and all its children.
//!
//! ```text
//! workflow or child ─ step ─► desk: result and events, one transaction (desk.rs)
//!                              │
//!         answered before ◄────┼────► not answered yet
//!         told at once         │      performed, at most `at_once` of all machines together
//!                              └────► a child: started, at most `parallel_children` (children.rs)
//! ```

mod asked;
mod children;
mod desk;
mod running;

use std::fmt;
use std::sync::Arc;

use moothall_core::consult::Review;
use moothall_core::model::{FailureKind, ModelFailure, ModelName};
use moothall_core::money::Spent;
use moothall_core::{Outcome, RunEvent, RunEventBody, RunId, Workflow};
use moothall_store::{Commit, RunState, Store, StoredEvent, Wish, now_ms};

use self::children::Children;
use self::desk::Desk;
pub(crate) use self::desk::state_after;
use self::running::Running;
use crate::error::EngineError;
use crate::perform::Performer;
use crate::rooms::Walls;

/// Effects performed at once, where nothing else is said. Providers have limits of their own, which
/// the gateway keeps.
const USUAL_AT_ONCE: usize = 64;

/// Children that live at once, where nothing else is said.
const USUAL_PARALLEL_CHILDREN: usize = 15;

/// Drives one run to its end, or to where it must stop.
///
/// Invariants: a result is in the journal before an effect that follows from it is performed, except
/// for model calls, which change nothing and may be repeated; a result and the events that follow from
/// it are one transaction; an effect whose result is in the journal is not performed again; the hash of
/// a request is compared with the hash of the request that was answered. A child whose end is in the
/// journal is not started again.
pub struct Driver {
    store: Arc<dyn Store>,
    performer: Arc<dyn Performer>,
    run_id: RunId,
    at_once: usize,
    parallel_children: usize,
    walls: Walls,
    person_says: Option<Review>,
    heeds_pause: bool,
    can_go_on: bool,
    on_event: Box<dyn FnMut(&StoredEvent) + Send>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

/// Where a run stands when its driver lets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The workflow came to its outcome.
    Done(Outcome),
    /// It stands still and can go on. Everything that was under way is answered and kept.
    Paused(Pause),
    /// Somebody cancelled the run.
    Cancelled,
}

/// Why a run stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pause {
    /// The budget is used up.
    Budget(ModelFailure),
    /// The provider of this model refuses the key, or the account behind it.
    Failure(ModelName, ModelFailure),
    /// Somebody asked for it.
    Person,
    /// The workflow asks a person something, in these words.
    Question(String),
}

impl Pause {
    /// A pause until somebody has cured why this model did not answer.
    fn for_cure_of(model: ModelName, failure: ModelFailure) -> Self {
        match failure.kind {
            FailureKind::OverBudget => Self::Budget(failure),
            _ => Self::Failure(model, failure),
        }
    }
}

/// What the event of a pause says of a provider that refuses a key, whichever engine pauses.
pub(crate) fn words_of_refusal(model: &ModelName, failure: &ModelFailure) -> String {
    format!("{model}: {}", failure.detail)
}

impl Driver {
    /// A driver for a run that the store knows. The caller holds the run's lock. Children run in
    /// this process.
    pub fn new(store: Arc<dyn Store>, performer: Arc<dyn Performer>, run_id: RunId) -> Self {
        Self {
            store,
            performer,
            run_id,
            at_once: USUAL_AT_ONCE,
            parallel_children: USUAL_PARALLEL_CHILDREN,
            walls: Walls::None,
            person_says: None,
            heeds_pause: false,
            can_go_on: true,
            on_event: Box::new(|_| {}),
        }
    }

    /// Effects performed at once, at most, whoever asked for them.
    #[must_use]
    pub fn at_once(self, at_once: usize) -> Self {
        Self { at_once: at_once.max(1), ..self }
    }

    /// Children that live at once, at most; the others wait in the order in which they were asked
    /// for.
    #[must_use]
    pub fn parallel_children(self, parallel_children: usize) -> Self {
        Self { parallel_children: parallel_children.max(1), ..self }
    }

    /// Where children run.
    #[must_use]
    pub fn walls(self, walls: Walls) -> Self {
        Self { walls, ..self }
    }

    /// What a person says to the question at which the run stands still. Without it a run that asks
    /// a person pauses; with it the first such question is answered, and the answer is kept.
    #[must_use]
    pub fn person_says(self, review: Option<Review>) -> Self {
        Self { person_says: review, ..self }
    }

    /// Heeds a pause that somebody asks for before driving begins. For those who say that a run goes on
    /// first, withdraw what was wished before, and drive it then: whoever hears that it goes on may
    /// ask for a pause at once. Otherwise to drive is to want it to go on.
    #[must_use]
    pub fn heed_pause(self) -> Self {
        Self { heeds_pause: true, ..self }
    }

    /// Nobody keeps this run, so nobody can let it go on later: a refused key is its answer.
    #[must_use]
    pub fn without_return(self) -> Self {
        Self { can_go_on: false, ..self }
    }

    /// Hears every event that is new to the store, in order.
    #[must_use]
    pub fn on_event(self, on_event: impl FnMut(&StoredEvent) + Send + 'static) -> Self {
        Self { on_event: Box::new(on_event), ..self }
    }

    /// Drives the workflow, from the beginning or from where the journal ends. Dropping the future
    /// stops everything under way; the run can be driven again.
    #[tracing::instrument(target = "moothall::run", name = "run", skip_all, fields(run_id = %self.run_id))]
    pub async fn drive(self, workflow: &mut (dyn Workflow + Send)) -> Result<Ended, EngineError> {
        let row = self.store.run(&self.run_id).await?;
        let events = match row {
            Some(row) if row.state == RunState::Cancelled => return Ok(Ended::Cancelled),
            Some(row) => match row.outcome {
                // It ended before; nothing is asked and nothing is said again.
                Some(outcome) => return Ok(Ended::Done(outcome)),
                None => row.events,
            },
            None => 0,
        };
        if !self.heeds_pause {
            self.store.withdraw(&self.run_id, Wish::Pause).await?;
        }
        let journal = self.store.journal(&self.run_id).await?;
        let children = Children::new(self.run_id.clone(), self.walls, self.parallel_children);
        let mut desk = Desk::new(self.store, self.performer, self.run_id, self.on_event);
        if events > 0 {
            desk.read_events().await?;
        }
        Running::new(desk, journal, children, self.at_once)
            .person_says(self.person_says)
            .can_go_on(self.can_go_on)
            .drive(workflow)
            .await
    }
}

/// Ends a run that nobody drives: its driver died, or was just stopped. The caller holds the run's
/// lock. Returns the events that were new.
pub async fn cancel(
    store: &dyn Store,
    run_id: &RunId,
    spent: Option<Spent>,
) -> Result<Vec<StoredEvent>, EngineError> {
    let commit = Commit {
        events: vec![RunEvent::of_run(RunEventBody::RunCancelled)],
        state: Some(RunState::Cancelled),
        spent,
        at_ms: now_ms(),
        ..Commit::default()
    };
    Ok(store.commit(run_id, commit).await?)
}
