//! One durable step: performs a batch of effects concurrently.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moothall_core::budget::{self, ReserveRequest, Settlement};
use moothall_core::debate::responding_event;
use moothall_core::model::{FailureKind, ModelFailure, ModelName};
use moothall_core::money::{MicroUsd, SpendTotals};
use moothall_core::{Effect, EffectId, EffectResult, Outcome, RunEvent, RunId};
use moothall_models::{Budget, CallCost, RunLedger};
use moothall_store::{
    BatchStart, ControlRequest, JournalEntry, RunCommit, Store, StoreError, now_ms,
};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::control_poller::ControlPoller;
use super::engine::{StepRecord, StopCause, Work};
use crate::driver::{pause_detail, state_after};
use crate::error::EngineError;
use crate::guests::IsolationMode;
use crate::perform::{EffectPerformer, TimedResult};
use crate::requested_effect::{PerformedEffect, RequestedEffect};
use crate::run_trace::{ParentKey, RunTrace};

/// Results that arrive within this window are journaled in one transaction.
const COALESCE_WINDOW: Duration = Duration::from_millis(10);

/// Delay before retrying a write that the store could not accept.
const WRITE_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Delay before asking again for a budget reservation.
const RESERVE_RETRY_DELAY: Duration = Duration::from_millis(250);

/// Factor by which the reserved number of attempts grows when a reservation was too small.
const RESERVE_GROWTH: u32 = 4;

/// Everything a worker needs to execute one run's effects.
#[derive(Debug)]
pub struct RunContext {
    /// The store, shared by all workers.
    pub store: Arc<dyn Store>,
    pub run_id: RunId,
    /// Creates the performers of effects.
    pub performers: Arc<dyn PerformerFactory>,
    /// The initial budget of the run.
    pub budget: Budget,
    /// Where children are executed.
    pub isolation: IsolationMode,
    /// Maximum number of concurrent children.
    pub parallel_children: usize,
    /// Results journaled by this process.
    pub recent: RecentResults,
    /// Polls for cancel and pause requests.
    pub control: Arc<ControlPoller>,
    /// The span that started the run, as a `traceparent`.
    pub trace_parent: Option<String>,
}

/// Results this process has just journaled; saves reading them back from the store.
#[derive(Debug, Default)]
pub struct RecentResults(Mutex<BTreeMap<EffectId, JournalEntry>>);

impl RecentResults {
    fn remember(&self, entries: Vec<Answer>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(entries);
    }

    /// Removes and returns the results of all these effects; `None` if any is missing.
    fn take(&self, pending: &[RequestedEffect]) -> Option<BTreeMap<EffectId, JournalEntry>> {
        let mut results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = BTreeMap::new();
        for RequestedEffect { id, .. } in pending {
            taken.extend(results.remove_entry(id));
        }
        (taken.len() == pending.len()).then_some(taken)
    }
}

/// Creates performers for the effects of a run on this worker.
pub trait PerformerFactory: Debug + Send + Sync {
    /// A performer that charges its calls to this ledger.
    fn performer(&self, ledger: Arc<RunLedger>) -> Arc<dyn EffectPerformer>;

    /// The maximum an effect can use in one attempt.
    fn max_cost(&self, effect: &Effect) -> CallCost;
}

impl RunContext {
    /// The results of these effects, in request order.
    pub(crate) async fn results_of(
        &self,
        pending: &[RequestedEffect],
    ) -> Result<Vec<(EffectId, EffectResult)>, EngineError> {
        let mut entries = match self.recent.take(pending) {
            Some(entries) => entries,
            None => {
                let ids: Vec<EffectId> = pending.iter().map(|pending| pending.id.clone()).collect();
                self.store.journal_entries(&self.run_id, &ids).await?
            }
        };
        let results = pending.iter().map(|pending| match entries.remove(&pending.id) {
            Some(entry) => Ok((pending.id.clone(), pending.result_from(entry)?)),
            None => Err(EngineError::Stalled),
        });
        results.collect()
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

/// The commit for these events and this outcome.
pub(crate) fn event_commit(events: Vec<RunEvent>, outcome: Option<Outcome>) -> RunCommit {
    let state = events.iter().rev().find_map(|event| state_after(&event.body));
    RunCommit { events, state, outcome, ..RunCommit::default() }
}

#[derive(Debug)]
pub(crate) struct EffectBatch {
    pub(crate) context: Arc<RunContext>,
    /// Unique within the run, and the same on every replay.
    pub(crate) name: String,
    pub(crate) effects: Vec<RequestedEffect>,
    /// Earlier events, published first.
    pub(crate) events: Vec<RunEvent>,
    /// The current budget of the run.
    pub(crate) budget: Budget,
    /// The span above the effects.
    pub(crate) span_above: ParentKey,
}

type Done = (RequestedEffect, TimedResult);

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
    fn add_failure(self, model: &ModelName, failure: ModelFailure) -> Self {
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
    Granted(Budget),
    /// All effects already have results.
    Answered,
    Stopped(StopCause),
}

impl EffectBatch {
    pub(crate) fn into_work(self) -> Work {
        Box::pin(self.perform())
    }

    pub(crate) async fn perform(self) -> Result<StepRecord, EngineError> {
        let RunContext { run_id, trace_parent, .. } = &*self.context;
        let context = RunTrace::new(run_id, trace_parent.clone()).context();
        self.perform_in_span().instrument(context).await
    }

    async fn perform_in_span(mut self) -> Result<StepRecord, EngineError> {
        let attempt = new_attempt();
        let mut open = self.effects.clone();
        for call in &open {
            self.events.extend(responding_event(&call.id, &call.effect));
        }
        self.events.dedup_by(|later, earlier| later.key == earlier.key);
        // Most calls succeed at the first attempt, so only one is reserved. A call that needs more
        // may use up the reservation; then reserve enough for all its attempts, so it can fail
        // like any other call.
        let mut tries = 1;
        loop {
            let allowed = match self.reserve(&attempt, &mut open, tries).await? {
                BatchDecision::Granted(allowed) => allowed,
                BatchDecision::Answered => return Ok(StepRecord::Done),
                BatchDecision::Stopped(stop) => return Ok(StepRecord::Stopped(stop)),
            };
            tries *= RESERVE_GROWTH;
            let ledger = Arc::new(RunLedger::new(allowed).of_run(&self.context.run_id));
            let mut fresh = Vec::new();
            let outcome = self.call(&open, &ledger, &mut fresh).await;
            // Settle in any case, because a remaining reservation blocks other batches. Dropped
            // calls have either reported their possible cost to the ledger or are counted in full.
            let used = ledger.spent_at_most();
            let (wave, attempt) = (self.name.clone(), attempt.clone());
            let stopped =
                self.journal(fresh, Some(Settlement::Settle { wave, attempt, used })).await?;
            let stopped = match outcome? {
                CallOutcome::Answered if stopped.is_none() => return Ok(StepRecord::Done),
                CallOutcome::Refused(detail) if used == SpendTotals::default() => {
                    Some(StopCause::Budget(detail))
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
    async fn reserve(
        &mut self,
        attempt: &str,
        open: &mut Vec<RequestedEffect>,
        tries: u32,
    ) -> Result<BatchDecision, EngineError> {
        loop {
            let (reserve, allowed) = self.reservation(attempt, open, tries);
            let commit = event_commit(self.events.clone(), None);
            let commit = RunCommit { at_ms: now_ms(), ..commit };
            let effects = open.iter().map(|pending| pending.id.clone()).collect();
            let start = BatchStart { commit, effects, reserve };
            let admission = match self.context.store.begin(&self.context.run_id, start).await {
                Err(StoreError::RunEnded { .. }) => {
                    return Ok(BatchDecision::Stopped(StopCause::Cancelled));
                }
                admission => admission?,
            };
            self.events.clear();
            if let Some(stop) = pending_stop(
                &admission.control_requests,
                &[ControlRequest::Cancel, ControlRequest::Pause],
            ) {
                return Ok(BatchDecision::Stopped(stop));
            }
            if !admission.entries.is_empty() {
                self.drop_answered(admission.entries, open)?;
                if !open.is_empty() {
                    continue;
                }
                // The worker that journaled the last result died before it settled its reservation.
                let (wave, attempt) = (self.name.clone(), attempt.to_owned());
                let stopped =
                    self.journal(Vec::new(), Some(Settlement::Forfeit { wave, attempt })).await?;
                return Ok(stopped.map_or(BatchDecision::Answered, BatchDecision::Stopped));
            }
            match admission.reservation {
                Some(budget::ReserveDecision::Granted) => {
                    return Ok(BatchDecision::Granted(allowed));
                }
                Some(budget::ReserveDecision::Refused(detail)) => {
                    return Ok(BatchDecision::Stopped(StopCause::Budget(detail)));
                }
                Some(budget::ReserveDecision::Wait) | None => {
                    tokio::time::sleep(RESERVE_RETRY_DELAY).await
                }
            }
        }
    }

    /// Removes effects that already have a result, for example from a worker that died halfway.
    fn drop_answered(
        &self,
        mut entries: BTreeMap<EffectId, JournalEntry>,
        open: &mut Vec<RequestedEffect>,
    ) -> Result<(), EngineError> {
        let mut left = Vec::new();
        for pending in std::mem::take(open) {
            match entries.remove(&pending.id) {
                Some(entry) => drop(pending.result_from(entry)?),
                None => left.push(pending),
            }
        }
        *open = left;
        Ok(())
    }

    /// The maximum the open effects can use, as a reservation and as the ledger's budget.
    fn reservation(
        &self,
        attempt: &str,
        open: &[RequestedEffect],
        tries: u32,
    ) -> (ReserveRequest, Budget) {
        let mut most = (MicroUsd::ZERO, 0_u64);
        for RequestedEffect { effect, .. } in open {
            let CallCost { usd, tokens } = self.context.performers.max_cost(effect);
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
        open: &[RequestedEffect],
        ledger: &Arc<RunLedger>,
        fresh: &mut Vec<Answer>,
    ) -> Result<CallOutcome, EngineError> {
        let performer = self.context.performers.performer(Arc::clone(ledger));
        let mut in_flight: JoinSet<Done> = JoinSet::new();
        for pending in open.iter().cloned() {
            let performer = Arc::clone(&performer);
            in_flight.spawn(pending.perform(performer, &self.span_above));
        }
        let RunContext { store, run_id, control, .. } = &*self.context;
        let mut cancelled =
            std::pin::pin!(control.requested(store, run_id, ControlRequest::Cancel));
        let mut paused = std::pin::pin!(control.requested(store, run_id, ControlRequest::Pause));
        let mut is_pausing = false;
        let mut outcome = CallOutcome::Answered;
        let mut write_at = Instant::now();
        while !in_flight.is_empty() {
            tokio::select! {
                Some(done) = in_flight.join_next() => {
                    let (pending, performed) = done.map_err(|_| EngineError::Lost)?;
                    if fresh.is_empty() {
                        write_at = Instant::now() + COALESCE_WINDOW;
                    }
                    match pending.performed(performed, FailureKind::pauses_run) {
                        PerformedEffect::Recorded(id, entry) => fresh.push((id, entry)),
                        PerformedEffect::Pauses(model, failure) => {
                            outcome = outcome.add_failure(&model, failure);
                        }
                    }
                }
                () = tokio::time::sleep_until(write_at), if !fresh.is_empty() => {
                    if let Some(stop) = self.journal(std::mem::take(fresh), None).await? {
                        in_flight.shutdown().await;
                        return Ok(CallOutcome::Stopped(stop));
                    }
                }
                () = &mut cancelled => {
                    in_flight.shutdown().await;
                    return Ok(CallOutcome::Stopped(StopCause::Cancelled));
                }
                () = &mut paused, if !is_pausing => {
                    is_pausing = true;
                    performer.end_outage_waits();
                }
            }
        }
        Ok(match outcome {
            // These calls failed because the pause ended their wait.
            CallOutcome::Stopped(StopCause::Failure(_)) if is_pausing => {
                CallOutcome::Stopped(StopCause::Person)
            }
            outcome => outcome,
        })
    }

    /// Writes results and the settlement of the reservation.
    async fn journal(
        &self,
        entries: Vec<Answer>,
        settlement: Option<Settlement>,
    ) -> Result<Option<StopCause>, EngineError> {
        match self.write_with_retry(entries.clone(), settlement.clone()).await {
            // Another worker, presumed dead, was faster. Its result is kept.
            Err(EngineError::Store(StoreError::JournalConflict { .. })) => {}
            Ok(None) => {
                self.context.recent.remember(entries);
                return Ok(None);
            }
            written => return written,
        }
        for one in entries {
            match self.write_with_retry(vec![one], None).await {
                Err(EngineError::Store(StoreError::JournalConflict { .. })) | Ok(None) => {}
                other => return other,
            }
        }
        self.write_with_retry(Vec::new(), settlement).await
    }

    /// Writes with retries for as long as the store may recover, because the results have been paid
    /// for.
    async fn write_with_retry(
        &self,
        results: Vec<Answer>,
        settlement: Option<Settlement>,
    ) -> Result<Option<StopCause>, EngineError> {
        loop {
            let (results, settlement) = (results.clone(), settlement.clone());
            match self
                .context
                .write(RunCommit { results, settlement, ..RunCommit::default() })
                .await
            {
                Err(error) if error.is_retryable() => {
                    let run_id = self.context.run_id.as_str();
                    tracing::warn!(target: "moothall::run", run_id, %error, "cannot journal results; retrying");
                    tokio::time::sleep(WRITE_RETRY_DELAY).await;
                }
                written => return written,
            }
        }
    }
}

/// The stop for the first of these requests that is pending.
fn pending_stop(
    requests: &BTreeSet<ControlRequest>,
    candidates: &[ControlRequest],
) -> Option<StopCause> {
    candidates.iter().find(|request| requests.contains(request)).map(|request| match request {
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
