//! The loop: publish, perform, journal, resume.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moothall_core::model::ModelFailure;
use moothall_core::money::Spent;
use moothall_core::{
    Effect, EffectId, EffectResult, Outcome, PauseReason, RunEvent, RunEventBody, RunId, Sha256Hex,
    Step, Workflow,
};
use moothall_store::{Commit, JournalEntry, RunState, Store, StoredEvent, Wish};
use tokio::task::JoinSet;

use crate::error::EngineError;
use crate::perform::{Performed, Performer};

/// How often the driver looks whether another process wants the run to stop.
const LOOK_AROUND: Duration = Duration::from_millis(500);

/// Effects performed at once, where nothing else is said.
const USUAL_AT_ONCE: usize = 16;

/// Drives one run to its end, or to where it must stop.
///
/// Invariants: a result is in the journal before the workflow acts on it; a result and the events
/// that follow from it are one transaction; an effect whose answer is in the journal is not
/// performed again; the hash of what is asked is compared with the hash of what was answered.
pub struct Driver {
    store: Arc<dyn Store>,
    performer: Arc<dyn Performer>,
    run_id: RunId,
    at_once: usize,
    on_event: Box<dyn FnMut(&StoredEvent) + Send>,
    /// What the store was last told that the run has spent.
    told_spent: Option<Spent>,
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
    /// Somebody asked for it.
    Person,
}

/// An effect under way: its id, the hash of its request, and what came of it.
type UnderWay = JoinSet<(EffectId, Sha256Hex, Performed)>;

impl Driver {
    /// A driver for a run that the store knows. The caller holds the run's lock.
    pub fn new(store: Arc<dyn Store>, performer: Arc<dyn Performer>, run_id: RunId) -> Self {
        Self {
            store,
            performer,
            run_id,
            at_once: USUAL_AT_ONCE,
            on_event: Box::new(|_| {}),
            told_spent: None,
        }
    }

    /// Effects performed at once, at most.
    #[must_use]
    pub fn at_once(self, at_once: usize) -> Self {
        Self { at_once: at_once.max(1), ..self }
    }

    /// Hears every event that is new to the store, in order.
    #[must_use]
    pub fn on_event(self, on_event: impl FnMut(&StoredEvent) + Send + 'static) -> Self {
        Self { on_event: Box::new(on_event), ..self }
    }

    /// Drives the workflow, from the beginning or from where the journal ends. Dropping the future
    /// stops everything under way; the run can be driven again.
    pub async fn drive(mut self, workflow: &mut dyn Workflow) -> Result<Ended, EngineError> {
        let row = self.store.run(&self.run_id).await?;
        match row.map(|row| (row.state, row.outcome)) {
            Some((RunState::Cancelled, _)) => return Ok(Ended::Cancelled),
            // It ended before; nothing is asked and nothing is said again.
            Some((_, Some(outcome))) => return Ok(Ended::Done(outcome)),
            Some((_, None)) | None => {}
        }
        // Whoever drives the run again wants it to go on.
        self.store.withdraw(&self.run_id, Wish::Pause).await?;
        let journal = self.store.journal(&self.run_id).await?;
        let mut waiting: BTreeMap<EffectId, Effect> = BTreeMap::new();
        let mut under_way = UnderWay::new();
        let mut pause: Option<Pause> = None;
        let mut look = tokio::time::interval(LOOK_AROUND);
        let mut answered = None;
        let mut step = workflow.start();
        loop {
            if let Some(outcome) = self.commit(answered.take(), &step).await? {
                return Ok(Ended::Done(outcome));
            }
            waiting.extend(step.perform);
            // Answers from the journal come first: a replay asks nobody, whatever was quick the
            // last time.
            if let Some((id, result)) = from_journal(&mut waiting, &journal)? {
                step = workflow.resume(&id, result)?;
                continue;
            }
            if pause.is_none() {
                self.start(&mut waiting, &mut under_way)?;
            }
            let (id, request_sha256, performed) = loop {
                tokio::select! {
                    done = under_way.join_next() => match (done, pause.take()) {
                        (Some(Ok((_, _, Performed { result: EffectResult::ModelFailed(failure), .. }))), _)
                            if is_refusal(&failure) => pause = Some(Pause::Budget(failure)),
                        (Some(Ok(done)), before) => {
                            pause = before;
                            break done;
                        }
                        (Some(Err(_)), _) => return Err(EngineError::Lost),
                        (None, Some(why)) => return self.pause(why).await,
                        (None, None) => return Err(EngineError::Stalled),
                    },
                    _ = look.tick() => {
                        let wishes = self.store.wishes(&self.run_id).await?;
                        if wishes.contains(&Wish::Cancel) {
                            // Dropping the tasks stops their calls.
                            drop(under_way);
                            self.publish(RunEventBody::RunCancelled).await?;
                            return Ok(Ended::Cancelled);
                        }
                        if wishes.contains(&Wish::Pause) {
                            pause.get_or_insert(Pause::Person);
                        }
                        self.tell_spent().await?;
                    }
                }
            };
            let Performed { result, timing } = performed;
            let entry = JournalEntry { request_sha256, result: result.clone(), timing };
            answered = Some((id.clone(), entry));
            step = workflow.resume(&id, result)?;
        }
    }

    fn start(
        &self,
        waiting: &mut BTreeMap<EffectId, Effect>,
        under_way: &mut UnderWay,
    ) -> Result<(), EngineError> {
        while under_way.len() < self.at_once
            && let Some((id, effect)) = waiting.pop_first()
        {
            let request_sha256 = effect.request_hash()?;
            let performer = Arc::clone(&self.performer);
            under_way.spawn(async move {
                let performed = performer.perform(&id, &effect).await;
                (id, request_sha256, performed)
            });
        }
        Ok(())
    }

    /// Writes a result and what follows from it in one transaction.
    async fn commit(
        &mut self,
        result: Option<(EffectId, JournalEntry)>,
        step: &Step,
    ) -> Result<Option<Outcome>, EngineError> {
        let state = step.publish.iter().rev().find_map(|event| state_after(&event.body));
        let commit = Commit {
            result,
            events: step.publish.clone(),
            state,
            outcome: step.outcome.clone(),
            spent: self.performer.spent(),
            at_ms: now_ms(),
        };
        self.told_spent = commit.spent;
        for event in self.store.commit(&self.run_id, commit).await? {
            (self.on_event)(&event);
        }
        Ok(step.outcome.clone())
    }

    /// Calls take seconds and longer. Should we be killed in one, the next driver must know what it
    /// may have cost.
    async fn tell_spent(&mut self) -> Result<(), EngineError> {
        let spent = self.performer.spent();
        if spent != self.told_spent {
            self.told_spent = spent;
            let commit = Commit { spent, at_ms: now_ms(), ..Commit::default() };
            self.store.commit(&self.run_id, commit).await?;
        }
        Ok(())
    }

    async fn pause(&mut self, why: Pause) -> Result<Ended, EngineError> {
        let before = self.store.events(&self.run_id, 0, u32::MAX).await?;
        let pauses = before.iter().filter_map(|stored| match stored.event.body {
            RunEventBody::RunPaused { number, .. } => Some(number),
            _ => None,
        });
        let number = pauses.max().unwrap_or(0).saturating_add(1);
        let (reason, detail) = match &why {
            Pause::Budget(failure) => (PauseReason::Budget, failure.detail.clone()),
            Pause::Person => (PauseReason::Person, "somebody asked for a pause".to_owned()),
        };
        self.publish(RunEventBody::RunPaused { number, reason, detail }).await?;
        Ok(Ended::Paused(why))
    }

    async fn publish(&mut self, body: RunEventBody) -> Result<(), EngineError> {
        let publish = vec![RunEvent::of_run(body)];
        self.commit(None, &Step { publish, ..Step::default() }).await?;
        Ok(())
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

/// A refusal by the budget is not an answer: it is not kept, and the workflow never hears of it.
/// With more money the same question is asked.
fn is_refusal(failure: &ModelFailure) -> bool {
    failure.kind == moothall_core::model::FailureKind::OverBudget
}

/// The first waiting effect that the journal answers, taken from those that wait.
fn from_journal(
    waiting: &mut BTreeMap<EffectId, Effect>,
    journal: &BTreeMap<EffectId, JournalEntry>,
) -> Result<Option<(EffectId, EffectResult)>, EngineError> {
    let answered = waiting.keys().find_map(|id| Some((id.clone(), journal.get(id)?)));
    let Some((id, entry)) = answered else { return Ok(None) };
    let Some(effect) = waiting.remove(&id) else { return Ok(None) };
    let asked = effect.request_hash()?;
    if asked != entry.request_sha256 {
        return Err(EngineError::JournalMismatch { id, asked, answered: entry.request_sha256 });
    }
    Ok(Some((id, entry.result.clone())))
}

/// The state that an event puts its run into.
fn state_after(body: &RunEventBody) -> Option<RunState> {
    match body {
        RunEventBody::RunStarted { .. } => Some(RunState::Running),
        RunEventBody::RunPaused { .. } => Some(RunState::Paused),
        RunEventBody::RunFinished { .. } => Some(RunState::Finished),
        RunEventBody::RunFailed { .. } => Some(RunState::Failed),
        RunEventBody::RunCancelled => Some(RunState::Cancelled),
        _ => None,
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
