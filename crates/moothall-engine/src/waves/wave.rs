//! One step: effects that were asked for together, performed together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moothall_core::model::{FailureKind, ModelFailure, ModelName};
use moothall_core::money::{MicroUsd, Spent};
use moothall_core::purse::{self, Reserve, Word};
use moothall_core::{Effect, EffectId, EffectResult, Outcome, RunEvent, RunId, Sha256Hex};
use moothall_models::{Amount, Budget, Ledger};
use moothall_store::{Beginning, Commit, JournalEntry, Store, StoreError, Wish, now_ms};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::lookout::Lookout;
use super::port::{Noted, Stop, Work};
use crate::driver::{state_after, words_of_refusal};
use crate::error::EngineError;
use crate::perform::{Performed, Performer};
use crate::rooms::Walls;

/// How long an answer waits for others of its wave, to be written with them.
const GATHER: Duration = Duration::from_millis(10);

/// How long a wave waits before it offers its answers again to a store that cannot take them.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// How long a wave waits before it asks again for room in the budget.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// How many more tries a wave is given room for when what was reserved did not do.
const MORE_TRIES: u32 = 4;

/// What a worker has for a run, whichever of its machines it drives.
#[derive(Debug)]
pub struct Stage {
    /// Where the run is kept. All workers see the same.
    pub store: Arc<dyn Store>,
    /// The run.
    pub run_id: RunId,
    /// Who performs effects.
    pub hands: Arc<dyn Hands>,
    /// The budget with which the run began.
    pub budget: Budget,
    /// Where children live.
    pub walls: Walls,
    /// Children that live at once, at most.
    pub parallel_children: usize,
    /// What this very process was answered.
    pub heard: Heard,
    /// Who looks whether somebody wants the run to end.
    pub lookout: Arc<Lookout>,
}

/// Answers that this process kept in the store a moment ago and need not be read from there.
#[derive(Debug, Default)]
pub struct Heard(Mutex<BTreeMap<EffectId, JournalEntry>>);

impl Heard {
    fn remember(&self, answers: Vec<Answer>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(answers);
    }

    /// All of these answers; nothing where one is not here.
    fn take(&self, asked: &[Asked]) -> Option<BTreeMap<EffectId, JournalEntry>> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = BTreeMap::new();
        for Asked { id, .. } in asked {
            taken.extend(heard.remove_entry(id));
        }
        (taken.len() == asked.len()).then_some(taken)
    }
}

/// Performs the effects of a run on this worker.
pub trait Hands: Debug + Send + Sync {
    /// A performer whose calls are paid from this ledger.
    fn performer(&self, ledger: Arc<Ledger>) -> Arc<dyn Performer>;

    /// The most that an effect can use, if it is not tried twice.
    fn most_of(&self, effect: &Effect) -> Amount;
}

impl Stage {
    /// What was answered to these effects, told in the order in which they were asked.
    pub(super) async fn told(
        &self,
        asked: &[Asked],
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

    /// Writes what happened and what was answered. A run that somebody ended takes nothing more.
    pub(super) async fn write(&self, commit: Commit) -> Result<Option<Stop>, EngineError> {
        match self.store.commit(&self.run_id, Commit { at_ms: now_ms(), ..commit }).await {
            Ok(_) => Ok(None),
            Err(StoreError::RunEnded { .. }) => Ok(Some(Stop::Cancelled)),
            Err(error) => Err(error.into()),
        }
    }
}

/// An effect that a machine asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) id: EffectId,
    pub(super) request_sha256: Sha256Hex,
    pub(super) effect: Effect,
}

impl Asked {
    pub(super) fn new((id, effect): (EffectId, Effect)) -> Result<Self, EngineError> {
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

/// What happened, as one transaction.
pub(super) fn what_happened(events: Vec<RunEvent>, outcome: Option<Outcome>) -> Commit {
    let state = events.iter().rev().find_map(|event| state_after(&event.body));
    Commit { events, state, outcome, ..Commit::default() }
}

/// The work of one step.
#[derive(Debug)]
pub(super) struct Wave {
    pub(super) stage: Arc<Stage>,
    /// Unique within the run, and the same on every replay.
    pub(super) name: String,
    pub(super) effects: Vec<Asked>,
    /// What happened before; it is published first.
    pub(super) events: Vec<RunEvent>,
    /// The budget of the run as it stands.
    pub(super) budget: Budget,
}

/// A call that was performed, and what came of it.
type Done = (Asked, Performed);

/// An answer as it is kept.
type Answer = (EffectId, JournalEntry);

/// What came of the calls of a wave.
enum Called {
    Answered,
    /// At least one was refused by the part of the budget that was reserved, in these words.
    Refused(String),
    Stopped(Stop),
}

impl Called {
    /// And this call waits for a cure. More room in the budget does not help where a key is refused.
    fn and(self, model: &ModelName, failure: ModelFailure) -> Self {
        match (self, failure.kind) {
            (Self::Stopped(stop), _) => Self::Stopped(stop),
            (_, FailureKind::OverBudget) => Self::Refused(failure.detail),
            _ => Self::Stopped(Stop::Failure(words_of_refusal(model, &failure))),
        }
    }
}

/// Whether calls may be made.
enum Room {
    /// With so much of the budget.
    For(Budget),
    /// There is nothing left to ask.
    Answered,
    Stopped(Stop),
}

impl Wave {
    pub(super) fn into_work(self) -> Work {
        Box::pin(self.perform())
    }

    pub(super) async fn perform(mut self) -> Result<Noted, EngineError> {
        let attempt = new_attempt();
        let mut open = self.effects.clone();
        // Most calls are answered at the first try. One that is not may have used all that was reserved,
        // and then it is given room for its tries, so that it fails in the end like any other.
        let mut tries = 1;
        loop {
            let allowed = match self.begin(&attempt, &mut open, tries).await? {
                Room::For(allowed) => allowed,
                Room::Answered => return Ok(Noted::Done),
                Room::Stopped(stop) => return Ok(Noted::Stopped(stop)),
            };
            tries *= MORE_TRIES;
            let ledger = Arc::new(Ledger::new(allowed));
            let mut fresh = Vec::new();
            let called = self.call(&open, &ledger, &mut fresh).await;
            // However it went: what stays reserved is in the way of everyone else. Calls that were
            // dropped have told the ledger what they may have cost, or are counted in full.
            let used = ledger.spent_at_most();
            let (wave, attempt) = (self.name.clone(), attempt.clone());
            let stopped = self.keep(fresh, Some(Word::Settle { wave, attempt, used })).await?;
            let stopped = match called? {
                Called::Answered if stopped.is_none() => return Ok(Noted::Done),
                Called::Refused(words) if used == Spent::default() => Some(Stop::Budget(words)),
                Called::Refused(_) | Called::Answered => stopped,
                Called::Stopped(stop) => Some(stop),
            };
            if let Some(stop) = stopped {
                return Ok(Noted::Stopped(stop));
            }
        }
    }

    /// Publishes what happened before, finds out what nobody answered yet, and takes room in the
    /// budget for that. Waits while only reservations of others are in the way.
    async fn begin(
        &mut self,
        attempt: &str,
        open: &mut Vec<Asked>,
        tries: u32,
    ) -> Result<Room, EngineError> {
        loop {
            let (reserve, allowed) = self.wish(attempt, open, tries);
            let commit = what_happened(self.events.clone(), None);
            let commit = Commit { at_ms: now_ms(), ..commit };
            let effects = open.iter().map(|asked| asked.id.clone()).collect();
            let beginning = Beginning { commit, effects, reserve };
            let begun = match self.stage.store.begin(&self.stage.run_id, beginning).await {
                Err(StoreError::RunEnded { .. }) => return Ok(Room::Stopped(Stop::Cancelled)),
                begun => begun?,
            };
            self.events.clear();
            if let Some(stop) = heard(&begun.wishes, &[Wish::Cancel, Wish::Pause]) {
                return Ok(Room::Stopped(stop));
            }
            if !begun.answers.is_empty() {
                self.hear(begun.answers, open)?;
                if !open.is_empty() {
                    continue;
                }
                // Whoever brought the last answer died before it could say what the wave has used.
                let (wave, attempt) = (self.name.clone(), attempt.to_owned());
                let stopped = self.keep(Vec::new(), Some(Word::Forfeit { wave, attempt })).await?;
                return Ok(stopped.map_or(Room::Answered, Room::Stopped));
            }
            match begun.room {
                Some(purse::Room::Granted) => return Ok(Room::For(allowed)),
                Some(purse::Room::Refused(words)) => return Ok(Room::Stopped(Stop::Budget(words))),
                Some(purse::Room::Wait) | None => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }

    /// Takes answers that are there already: a worker that died may have come half through.
    fn hear(
        &self,
        mut answers: BTreeMap<EffectId, JournalEntry>,
        open: &mut Vec<Asked>,
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

    /// The most that the open effects can use, and the part of the budget that this is.
    fn wish(&self, attempt: &str, open: &[Asked], tries: u32) -> (Reserve, Budget) {
        let mut most = (MicroUsd::ZERO, 0_u64);
        for Asked { effect, .. } in open {
            let Amount { usd, tokens } = self.stage.hands.most_of(effect);
            most.0 = most.0.saturating_add(usd.unwrap_or_default());
            most.1 = most.1.saturating_add(tokens);
        }
        let usd = MicroUsd::new(most.0.micros().saturating_mul(tries.into()));
        let tokens = most.1.saturating_mul(tries.into());
        let (wave, attempt, budget) = (self.name.clone(), attempt.to_owned(), self.budget);
        let allowed =
            Budget { usd: budget.usd.map(|_| usd), tokens: budget.tokens.map(|_| tokens) };
        (Reserve { wave, attempt, usd, tokens, budget }, allowed)
    }

    /// Performs effects. Answers are kept a moment after they came; those that are left in `fresh` at
    /// the end are not yet.
    async fn call(
        &self,
        open: &[Asked],
        ledger: &Arc<Ledger>,
        fresh: &mut Vec<Answer>,
    ) -> Result<Called, EngineError> {
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
        let Stage { store, run_id, lookout, .. } = &*self.stage;
        let mut cancelled = std::pin::pin!(lookout.cancelled(store, run_id));
        let mut called = Called::Answered;
        let mut keep_at = Instant::now();
        while !under_way.is_empty() {
            tokio::select! {
                Some(done) = under_way.join_next() => {
                    let (asked, performed) = done.map_err(|_| EngineError::Lost)?;
                    let Asked { id, request_sha256, effect } = asked;
                    let Performed { result, timing } = performed;
                    if fresh.is_empty() {
                        keep_at = Instant::now() + GATHER;
                    }
                    match (effect, result) {
                        (Effect::CallModel(request), EffectResult::ModelFailed(failure))
                            if failure.kind.waits_for_cure() =>
                        {
                            called = called.and(&request.model, failure);
                        }
                        (_, result) => fresh.push((id, JournalEntry { request_sha256, result, timing })),
                    }
                }
                () = tokio::time::sleep_until(keep_at), if !fresh.is_empty() => {
                    if let Some(stop) = self.keep(std::mem::take(fresh), None).await? {
                        under_way.shutdown().await;
                        return Ok(Called::Stopped(stop));
                    }
                }
                () = &mut cancelled => {
                    under_way.shutdown().await;
                    return Ok(Called::Stopped(Stop::Cancelled));
                }
            }
        }
        Ok(called)
    }

    /// Writes answers, and what became of the reservation.
    async fn keep(
        &self,
        answers: Vec<Answer>,
        word: Option<Word>,
    ) -> Result<Option<Stop>, EngineError> {
        match self.insist(answers.clone(), word.clone()).await {
            // Another worker, which was taken for dead, was faster. Its answer stays.
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

    /// Writes them, for as long as the store may take them some day: they are paid for.
    async fn insist(
        &self,
        results: Vec<Answer>,
        purse: Option<Word>,
    ) -> Result<Option<Stop>, EngineError> {
        loop {
            let (results, purse) = (results.clone(), purse.clone());
            match self.stage.write(Commit { results, purse, ..Commit::default() }).await {
                Err(error) if error.is_retryable() => {
                    let run_id = self.stage.run_id.as_str();
                    tracing::warn!(target: "moothall::run", run_id, %error, "answers wait");
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                written => return written,
            }
        }
    }
}

/// The first of these wishes that somebody has.
fn heard(wishes: &BTreeSet<Wish>, wanted: &[Wish]) -> Option<Stop> {
    wanted.iter().find(|wish| wishes.contains(wish)).map(|wish| match wish {
        Wish::Cancel => Stop::Cancelled,
        Wish::Pause => Stop::Person,
    })
}

/// A name that no other attempt has, on no machine of ours.
fn new_attempt() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{count}", now.as_nanos(), std::process::id())
}
