//! One step: effects that were asked for together, performed together.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::money::{MicroUsd, Spent};
use moothall_core::{Effect, EffectId, EffectResult, Outcome, RunEvent, RunId, Sha256Hex};
use moothall_models::{Amount, Budget, Ledger};
use moothall_store::{Commit, JournalEntry, Store, StoreError, Wish};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::port::{Noted, Stop, Work};
use super::purse::{Purse, Reserve};
use crate::driver::{is_refusal, now_ms, state_after};
use crate::error::EngineError;
use crate::perform::{Performed, Performer};
use crate::rooms::Walls;

/// How often a wave looks whether somebody wants the run to end.
const LOOK_AROUND: Duration = Duration::from_millis(500);

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
    /// Who owns the budget.
    pub purse: Arc<dyn Purse>,
    /// The budget with which the run began.
    pub budget: Budget,
    /// Where children live.
    pub walls: Walls,
    /// Children that live at once, at most.
    pub parallel_children: usize,
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
        let ids: Vec<EffectId> = asked.iter().map(|asked| asked.id.clone()).collect();
        let mut answers = self.store.answers(&self.run_id, &ids).await?;
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

/// A call that was performed.
type Done = (EffectId, Sha256Hex, Performed);

/// What came of the calls of a wave.
enum Called {
    Answered,
    /// At least one was refused by the part of the budget that was reserved, in these words.
    Refused(String),
    Stopped(Stop),
}

impl Wave {
    pub(super) fn into_work(self) -> Work {
        Box::pin(self.perform())
    }

    pub(super) async fn perform(mut self) -> Result<Noted, EngineError> {
        let events = std::mem::take(&mut self.events);
        let stopped = match events.is_empty() {
            true => None,
            false => self.stage.write(what_happened(events, None)).await?,
        };
        if let Some(stop) = stopped.or(self.wished(&[Wish::Cancel, Wish::Pause]).await?) {
            return Ok(Noted::Stopped(stop));
        }
        let mut open = self.unanswered().await?;
        if open.is_empty() {
            // Whoever brought the last answer died before it could say what the wave has used.
            self.stage.purse.forfeit(&self.name).await?;
            return Ok(Noted::Done);
        }
        // Most calls are answered at the first try. One that is not may have used all that was reserved,
        // and then it is given room for its tries, so that it fails in the end like any other.
        let mut tries = 1;
        while !open.is_empty() {
            let (wish, allowed) = self.wish(&open, tries);
            tries *= MORE_TRIES;
            let reserved = tokio::select! {
                reserved = self.stage.purse.reserve(wish) => reserved?,
                stop = self.cancelled() => {
                    // The answer may have been on its way.
                    self.stage.purse.settle(&self.name, Spent::default()).await?;
                    return Ok(Noted::Stopped(stop?));
                }
            };
            if let Err(refusal) = reserved {
                return Ok(Noted::Stopped(Stop::Budget(refusal.detail)));
            }
            let ledger = Arc::new(Ledger::new(allowed));
            let called = self.call(open, &ledger).await;
            // However it went: what stays reserved is in the way of everyone else. Calls that were
            // dropped have told the ledger what they may have cost, or are counted in full.
            let used = ledger.spent_at_most();
            let spent = self.stage.purse.settle(&self.name, used).await?;
            let spent = Commit { spent: Some(spent), ..Commit::default() };
            let stopped = match called? {
                Called::Refused(words) if used == Spent::default() => Some(Stop::Budget(words)),
                Called::Refused(_) | Called::Answered => None,
                Called::Stopped(stop) => Some(stop),
            };
            if let Some(stop) = stopped.or(self.stage.write(spent).await?) {
                return Ok(Noted::Stopped(stop));
            }
            open = self.unanswered().await?;
        }
        Ok(Noted::Done)
    }

    /// What nobody answered yet: a worker that died may have come half through.
    async fn unanswered(&self) -> Result<Vec<Asked>, EngineError> {
        let ids: Vec<EffectId> = self.effects.iter().map(|asked| asked.id.clone()).collect();
        let mut answers: BTreeMap<_, _> =
            self.stage.store.answers(&self.stage.run_id, &ids).await?;
        let mut open = Vec::new();
        for asked in &self.effects {
            match answers.remove(&asked.id) {
                Some(entry) => drop(asked.answered_by(entry)?),
                None => open.push(asked.clone()),
            }
        }
        Ok(open)
    }

    /// The most that the open effects can use, and the part of the budget that this is.
    fn wish(&self, open: &[Asked], tries: u32) -> (Reserve, Budget) {
        let mut most = (MicroUsd::ZERO, 0_u64);
        for Asked { effect, .. } in open {
            let Amount { usd, tokens } = self.stage.hands.most_of(effect);
            most.0 = most.0.saturating_add(usd.unwrap_or_default());
            most.1 = most.1.saturating_add(tokens);
        }
        let usd = MicroUsd::new(most.0.micros().saturating_mul(tries.into()));
        let tokens = most.1.saturating_mul(tries.into());
        let (wave, budget) = (self.name.clone(), self.budget);
        let allowed =
            Budget { usd: budget.usd.map(|_| usd), tokens: budget.tokens.map(|_| tokens) };
        (Reserve { wave, usd, tokens, budget }, allowed)
    }

    /// Performs effects, and keeps every answer as it comes.
    async fn call(&self, open: Vec<Asked>, ledger: &Arc<Ledger>) -> Result<Called, EngineError> {
        let performer = self.stage.hands.performer(Arc::clone(ledger));
        let mut under_way: JoinSet<Done> = JoinSet::new();
        for Asked { id, request_sha256, effect } in open {
            let performer = Arc::clone(&performer);
            let (run_id, name) = (self.stage.run_id.as_str(), id.as_str());
            tracing::debug!(target: "moothall::run", run_id, effect = name, "effect started");
            let span =
                tracing::info_span!(target: "moothall::run", "effect", effect_id = id.as_str());
            let performing = async move {
                let performed = performer.perform(&id, &effect).await;
                (id, request_sha256, performed)
            };
            under_way.spawn(performing.instrument(span));
        }
        let mut cancelled = std::pin::pin!(self.cancelled());
        let mut called = Called::Answered;
        while !under_way.is_empty() {
            tokio::select! {
                Some(done) = under_way.join_next() => {
                    let mut done = Some(done);
                    let mut kept = Vec::new();
                    while let Some(result) = done {
                        let (id, request_sha256, performed) =
                            result.map_err(|_| EngineError::Lost)?;
                        let Performed { result, timing } = performed;
                        match result {
                            EffectResult::ModelFailed(failure) if is_refusal(&failure) => {
                                called = Called::Refused(failure.detail);
                            }
                            result => {
                                kept.push((id, JournalEntry { request_sha256, result, timing }));
                            }
                        }
                        done = under_way.try_join_next();
                    }
                    if let Some(stop) = self.keep(kept).await? {
                        return Ok(Called::Stopped(stop));
                    }
                }
                stop = &mut cancelled => {
                    under_way.shutdown().await;
                    return Ok(Called::Stopped(stop?));
                }
            }
        }
        Ok(called)
    }

    async fn keep(&self, kept: Vec<(EffectId, JournalEntry)>) -> Result<Option<Stop>, EngineError> {
        match self.insist(kept.clone()).await {
            // Another worker, which was taken for dead, was faster. Its answer stays.
            Err(EngineError::Store(StoreError::JournalConflict { .. })) => {}
            written => return written,
        }
        for one in kept {
            match self.insist(vec![one]).await {
                Err(EngineError::Store(StoreError::JournalConflict { .. })) | Ok(None) => {}
                other => return other,
            }
        }
        Ok(None)
    }

    /// Writes answers, for as long as the store may take them some day: they are paid for.
    async fn insist(
        &self,
        results: Vec<(EffectId, JournalEntry)>,
    ) -> Result<Option<Stop>, EngineError> {
        loop {
            let commit = Commit { results: results.clone(), ..Commit::default() };
            match self.stage.write(commit).await {
                Err(error) if error.is_retryable() => {
                    let run_id = self.stage.run_id.as_str();
                    tracing::warn!(target: "moothall::run", run_id, %error, "answers wait");
                    tokio::time::sleep(LOOK_AROUND).await;
                }
                written => return written,
            }
        }
    }

    /// Returns when somebody wants the run to end. A store that cannot be asked is asked again: calls
    /// under way are worth more than a look.
    async fn cancelled(&self) -> Result<Stop, EngineError> {
        loop {
            tokio::time::sleep(LOOK_AROUND).await;
            match self.wished(&[Wish::Cancel]).await {
                Ok(Some(stop)) => return Ok(stop),
                Err(error) if !error.is_retryable() => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
    }

    async fn wished(&self, heard: &[Wish]) -> Result<Option<Stop>, EngineError> {
        let wishes = self.stage.store.wishes(&self.stage.run_id).await?;
        let first = heard.iter().find(|wish| wishes.contains(wish));
        Ok(first.map(|wish| match wish {
            Wish::Cancel => Stop::Cancelled,
            Wish::Pause => Stop::Person,
        }))
    }
}
