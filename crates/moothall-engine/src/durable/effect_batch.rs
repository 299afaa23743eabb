//! One durable step: performs a batch of effects concurrently.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moothall_core::budget::{self, ReserveRequest, Settlement};
use moothall_core::model::{FailureKind, ModelFailure, ModelName};
use moothall_core::money::{MicroUsd, SpendTotals};
use moothall_core::{Effect, EffectId, EffectResult, Outcome, RunEvent, RunId, Sha256Hex};
use moothall_models::{Budget, CallCost, RunLedger};
use moothall_store::{
    BatchStart, ControlRequest, JournalEntry, RunCommit, Store, StoreError, now_ms,
};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::cancel_poller::CancelPoller;
use super::engine::{StepRecord, StopCause, Work};
use crate::driver::{pause_detail, state_after};
use crate::error::EngineError;
use crate::guests::IsolationMode;
use crate::perform::{EffectPerformer, TimedResult};

/// Results that arrive within this window are journaled in one transaction.
const GATHER: Duration = Duration::from_millis(10);

/// Delay before retrying a write that the store could not accept.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// Delay before asking again for a budget reservation.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// Factor by which the reserved number of attempts grows when a reservation was too small.
const MORE_TRIES: u32 = 4;

/// Everything a worker needs to execute one run's effects.
#[derive(Debug)]
pub struct RunContext {
    /// The store, shared by all workers.
    pub store: Arc<dyn Store>,
    pub run_id: RunId,
    /// Creates the performers of effects.
    pub hands: Arc<dyn PerformerFactory>,
    /// The initial budget of the run.
    pub budget: Budget,
    /// Where children are executed.
    pub walls: IsolationMode,
    /// Maximum number of concurrent children.
    pub parallel_children: usize,
    /// Results journaled by this process.
    pub heard: RecentResults,
    /// Polls for cancel requests.
    pub lookout: Arc<CancelPoller>,
}

/// Results this process has just journaled; saves reading them back from the store.
#[derive(Debug, Default)]
pub struct RecentResults(Mutex<BTreeMap<EffectId, JournalEntry>>);

impl RecentResults {
    fn remember(&self, answers: Vec<Answer>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(answers);
    }

    /// Removes and returns the results of all these effects; `None` if any is missing.
    fn take(&self, asked: &[CallRequest]) -> Option<BTreeMap<EffectId, JournalEntry>> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = BTreeMap::new();
        for CallRequest { id, .. } in asked {
            taken.extend(heard.remove_entry(id));
        }
        (taken.len() == asked.len()).then_some(taken)
    }
}

/// Creates performers for the effects of a run on this worker.
pub trait PerformerFactory: Debug + Send + Sync {
    /// A performer that charges its calls to this ledger.
    fn performer(&self, ledger: Arc<RunLedger>) -> Arc<dyn EffectPerformer>;

    /// The maximum an effect can use in one attempt.
    fn most_of(&self, effect: &Effect) -> CallCost;
}

impl RunContext {
    /// The results of these effects, in request order.
    pub(crate) async fn told(
        &self,
        asked: &[CallRequest],
    ) -> Result<Vec<(EffectId, EffectResult)>, EngineError> {
        let mut answers = match self.heard.take(asked) {
            Some(answers) => answers,
            None => {
                let ids: Vec<EffectId> = asked.iter().map(|asked| asked.id.clone()).collect();
                self.store.answers(&self.run_id, &ids).await?
            }
        };
        let told = asked.iter().map(|asked| match answers.remove(&asked.id) {
            Some(entry) => Ok((asked.id.clone(), asked.answered_by(entry)?)),
            None => Err(EngineError::Stalled),
        });
        told.collect()
    }

    /// Commits events and results. Returns [`StopCause::Cancelled`] if the run has already ended.
    pub(crate) async fn write(&self, commit: RunCommit) -> Result<Option<StopCause>, EngineError> {
        match self.store.commit(&self.run_id, RunCommit { at_ms: now_ms(), ..commit }).await {
            Ok(_) => Ok(None),
            Err(StoreError::RunEnded { .. }) => Ok(Some(StopCause::Cancelled)),
            Err(error) => Err(error.into()),
        }
    }
}

/// A requested effect.
#[derive(Debug, Clone)]
pub(crate) struct CallRequest {
    pub(crate) id: EffectId,
    pub(crate) request_sha256: Sha256Hex,
    pub(crate) effect: Effect,
}

impl CallRequest {
    pub(crate) fn new((id, effect): (EffectId, Effect)) -> Result<Self, EngineError> {
        Ok(Self { request_sha256: effect.request_hash()?, id, effect })
    }

    fn answered_by(&self, entry: JournalEntry) -> Result<EffectResult, EngineError> {
        if entry.request_sha256 == self.request_sha256 {
            return Ok(entry.result);
        }
        let (id, asked) = (self.id.clone(), self.request_sha256);
        Err(EngineError::JournalMismatch { id, asked, answered: entry.request_sha256 })
    }
}

/// The commit for these events and this outcome.
pub(crate) fn what_happened(events: Vec<RunEvent>, outcome: Option<Outcome>) -> RunCommit {
    let state = events.iter().rev().find_map(|event| state_after(&event.body));
    RunCommit { events, state, outcome, ..RunCommit::default() }
}

#[derive(Debug)]
pub(crate) struct EffectBatch {
    pub(crate) stage: Arc<RunContext>,
    /// Unique within the run, and the same on every replay.
    pub(crate) name: String,
    pub(crate) effects: Vec<CallRequest>,
    /// Earlier events, published first.
    pub(crate) events: Vec<RunEvent>,
    /// The current budget of the run.
    pub(crate) budget: Budget,
}

type Done = (CallRequest, TimedResult);

type Answer = (EffectId, JournalEntry);

/// The outcome of a batch's calls.
enum CallOutcome {
    Answered,
    /// At least one call exceeded the reserved part of the budget; contains the detail text.
    Refused(String),
    Stopped(StopCause),
}

impl CallOutcome {
    /// Adds a call without an answer. Failures other than an exhausted reservation take precedence,
    /// because a larger reservation does not help there.
    fn and(self, model: &ModelName, failure: ModelFailure) -> Self {
        match (self, failure.kind) {
            (Self::Stopped(stop), _) => Self::Stopped(stop),
            (_, FailureKind::OverBudget) => Self::Refused(failure.detail),
            _ => Self::Stopped(StopCause::Failure(pause_detail(model, &failure))),
        }
    }
}

/// Whether calls may be made.
enum BatchDecision {
    /// Yes, within this part of the budget.
    For(Budget),
    /// All effects already have results.
    Answered,
    Stopped(StopCause),
}

impl EffectBatch {
    pub(crate) fn into_work(self) -> Work {
        Box::pin(self.perform())
    }

    pub(crate) async fn perform(mut self) -> Result<StepRecord, EngineError> {
        let attempt = new_attempt();
        let mut open = self.effects.clone();
        // Most calls succeed at the first attempt, so only one is reserved. A call that needs more
        // may use up the reservation; then reserve enough for all its attempts, so it can fail
        // like any other call.
        let mut tries = 1;
        loop {
            let allowed = match self.begin(&attempt, &mut open, tries).await? {
                BatchDecision::For(allowed) => allowed,
                BatchDecision::Answered => return Ok(StepRecord::Done),
                BatchDecision::Stopped(stop) => return Ok(StepRecord::Stopped(stop)),
            };
            tries *= MORE_TRIES;
            let ledger = Arc::new(RunLedger::new(allowed).of_run(&self.stage.run_id));
            let mut fresh = Vec::new();
            let called = self.call(&open, &ledger, &mut fresh).await;
            // Settle in any case, because a remaining reservation blocks other batches. Dropped
            // calls have either reported their possible cost to the ledger or are counted in full.
            let used = ledger.spent_at_most();
            let (wave, attempt) = (self.name.clone(), attempt.clone());
            let stopped =
                self.keep(fresh, Some(Settlement::Settle { wave, attempt, used })).await?;
            let stopped = match called? {
                CallOutcome::Answered if stopped.is_none() => return Ok(StepRecord::Done),
                CallOutcome::Refused(words) if used == SpendTotals::default() => {
                    Some(StopCause::Budget(words))
                }
                CallOutcome::Refused(_) | CallOutcome::Answered => stopped,
                CallOutcome::Stopped(stop) => Some(stop),
            };
            if let Some(stop) = stopped {
                return Ok(StepRecord::Stopped(stop));
            }
        }
    }

    /// Publishes earlier events, finds the effects without a result and reserves budget for them.
    /// Waits while only other batches' reservations are in the way.
    async fn begin(
        &mut self,
        attempt: &str,
        open: &mut Vec<CallRequest>,
        tries: u32,
    ) -> Result<BatchDecision, EngineError> {
        loop {
            let (reserve, allowed) = self.wish(attempt, open, tries);
            let commit = what_happened(self.events.clone(), None);
            let commit = RunCommit { at_ms: now_ms(), ..commit };
            let effects = open.iter().map(|asked| asked.id.clone()).collect();
            let beginning = BatchStart { commit, effects, reserve };
            let begun = match self.stage.store.begin(&self.stage.run_id, beginning).await {
                Err(StoreError::RunEnded { .. }) => {
                    return Ok(BatchDecision::Stopped(StopCause::Cancelled));
                }
                begun => begun?,
            };
            self.events.clear();
            if let Some(stop) =
                heard(&begun.wishes, &[ControlRequest::Cancel, ControlRequest::Pause])
            {
                return Ok(BatchDecision::Stopped(stop));
            }
            if !begun.answers.is_empty() {
                self.hear(begun.answers, open)?;
                if !open.is_empty() {
                    continue;
                }
                // The worker that journaled the last result died before it settled its reservation.
                let (wave, attempt) = (self.name.clone(), attempt.to_owned());
                let stopped =
                    self.keep(Vec::new(), Some(Settlement::Forfeit { wave, attempt })).await?;
                return Ok(stopped.map_or(BatchDecision::Answered, BatchDecision::Stopped));
            }
            match begun.room {
                Some(budget::Room::Granted) => return Ok(BatchDecision::For(allowed)),
                Some(budget::Room::Refused(words)) => {
                    return Ok(BatchDecision::Stopped(StopCause::Budget(words)));
                }
                Some(budget::Room::Wait) | None => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }

    /// Removes effects that already have a result, for example from a worker that died halfway.
    fn hear(
        &self,
        mut answers: BTreeMap<EffectId, JournalEntry>,
        open: &mut Vec<CallRequest>,
    ) -> Result<(), EngineError> {
        let mut left = Vec::new();
        for asked in std::mem::take(open) {
            match answers.remove(&asked.id) {
                Some(entry) => drop(asked.answered_by(entry)?),
                None => left.push(asked),
            }
        }
        *open = left;
        Ok(())
    }

    /// The maximum the open effects can use, as a reservation and as the ledger's budget.
    fn wish(&self, attempt: &str, open: &[CallRequest], tries: u32) -> (ReserveRequest, Budget) {
        let mut most = (MicroUsd::ZERO, 0_u64);
        for CallRequest { effect, .. } in open {
            let CallCost { usd, tokens } = self.stage.hands.most_of(effect);
            most.0 = most.0.saturating_add(usd.unwrap_or_default());
            most.1 = most.1.saturating_add(tokens);
        }
        let usd = MicroUsd::new(most.0.micros().saturating_mul(tries.into()));
        let tokens = most.1.saturating_mul(tries.into());
        let (wave, attempt, budget) = (self.name.clone(), attempt.to_owned(), self.budget);
        let allowed =
            Budget { usd: budget.usd.map(|_| usd), tokens: budget.tokens.map(|_| tokens) };
        (ReserveRequest { wave, attempt, usd, tokens, budget }, allowed)
    }

    /// Performs effects and journals results in small groups. Results left in `fresh` on return are
    /// not journaled yet.
    async fn call(
        &self,
        open: &[CallRequest],
        ledger: &Arc<RunLedger>,
        fresh: &mut Vec<Answer>,
    ) -> Result<CallOutcome, EngineError> {
        let performer = self.stage.hands.performer(Arc::clone(ledger));
        let mut under_way: JoinSet<Done> = JoinSet::new();
        for asked in open.iter().cloned() {
            let performer = Arc::clone(&performer);
            let (run_id, name) = (self.stage.run_id.as_str(), asked.id.as_str());
            tracing::debug!(target: "moothall::run", run_id, effect = name, "effect started");
            let span = tracing::info_span!(target: "moothall::run", "effect", effect_id = name);
            let performing = async move {
                let performed = performer.perform(&asked.id, &asked.effect).await;
                (asked, performed)
            };
            under_way.spawn(performing.instrument(span));
        }
        let RunContext { store, run_id, lookout, .. } = &*self.stage;
        let mut cancelled = std::pin::pin!(lookout.cancelled(store, run_id));
        let mut called = CallOutcome::Answered;
        let mut keep_at = Instant::now();
        while !under_way.is_empty() {
            tokio::select! {
                Some(done) = under_way.join_next() => {
                    let (asked, performed) = done.map_err(|_| EngineError::Lost)?;
                    let CallRequest { id, request_sha256, effect } = asked;
                    let TimedResult { result, timing } = performed;
                    if fresh.is_empty() {
                        keep_at = Instant::now() + GATHER;
                    }
                    match (effect, result) {
                        (Effect::CallModel(request), EffectResult::ModelFailed(failure))
                            if failure.kind.pauses_run() =>
                        {
                            called = called.and(&request.model, failure);
                        }
                        (_, result) => fresh.push((id, JournalEntry { request_sha256, result, timing })),
                    }
                }
                () = tokio::time::sleep_until(keep_at), if !fresh.is_empty() => {
                    if let Some(stop) = self.keep(std::mem::take(fresh), None).await? {
                        under_way.shutdown().await;
                        return Ok(CallOutcome::Stopped(stop));
                    }
                }
                () = &mut cancelled => {
                    under_way.shutdown().await;
                    return Ok(CallOutcome::Stopped(StopCause::Cancelled));
                }
            }
        }
        Ok(called)
    }

    /// Writes results and the settlement of the reservation.
    async fn keep(
        &self,
        answers: Vec<Answer>,
        word: Option<Settlement>,
    ) -> Result<Option<StopCause>, EngineError> {
        match self.insist(answers.clone(), word.clone()).await {
            // Another worker, presumed dead, was faster. Its result is kept.
            Err(EngineError::Store(StoreError::JournalConflict { .. })) => {}
            Ok(None) => {
                self.stage.heard.remember(answers);
                return Ok(None);
            }
            written => return written,
        }
        for one in answers {
            match self.insist(vec![one], None).await {
                Err(EngineError::Store(StoreError::JournalConflict { .. })) | Ok(None) => {}
                other => return other,
            }
        }
        self.insist(Vec::new(), word).await
    }

    /// Writes with retries for as long as the store may recover, because the results have been paid
    /// for.
    async fn insist(
        &self,
        results: Vec<Answer>,
        purse: Option<Settlement>,
    ) -> Result<Option<StopCause>, EngineError> {
        loop {
            let (results, purse) = (results.clone(), purse.clone());
            match self.stage.write(RunCommit { results, purse, ..RunCommit::default() }).await {
                Err(error) if error.is_retryable() => {
                    let run_id = self.stage.run_id.as_str();
                    tracing::warn!(target: "moothall::run", run_id, %error, "cannot journal results; retrying");
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                written => return written,
            }
        }
    }
}

/// The stop for the first of these requests that is pending.
fn heard(wishes: &BTreeSet<ControlRequest>, wanted: &[ControlRequest]) -> Option<StopCause> {
    wanted.iter().find(|wish| wishes.contains(wish)).map(|wish| match wish {
        ControlRequest::Cancel => StopCause::Cancelled,
        ControlRequest::Pause => StopCause::Person,
    })
}

/// An attempt name that is unique across all machines.
fn new_attempt() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{count}", now.as_nanos(), std::process::id())
}
