//! What a driver writes down: every step of every machine, in one transaction with the result that
//! caused it. Transactions follow one another. Steps that come while one is flushed to the disk are
//! written together in the next: a flush costs the same for fifteen debates as for one.

use std::collections::BTreeSet;
use std::sync::Arc;

use moothall_core::money::Spent;
use moothall_core::{EffectId, Outcome, PauseReason, RunEvent, RunEventBody, RunId};
use moothall_store::{
    Commit, JournalEntry, RunState, Store, StoreError, StoredEvent, Wish, now_ms,
};
use tokio::task::JoinSet;

use super::{Pause, words_of_refusal};
use crate::error::EngineError;
use crate::perform::Performer;

/// How many events are read at once.
const PAGE: u32 = 1000;

/// The store as one driver uses it.
pub(super) struct Desk {
    store: Arc<dyn Store>,
    performer: Arc<dyn Performer>,
    run_id: RunId,
    on_event: Box<dyn FnMut(&StoredEvent) + Send>,
    /// What the store was last told that the run has spent.
    told_spent: Option<Spent>,
    /// The keys of what was published before this driver came. A replay says all of it again, and
    /// a transaction for each time would be most of its work.
    published: BTreeSet<String>,
    /// How often the run has paused.
    pauses: u32,
    /// What was noted and is not written yet.
    noted: Commit,
    /// The transaction under way, if there is one. It ends with this desk.
    writing: JoinSet<Result<Vec<StoredEvent>, StoreError>>,
}

impl Desk {
    pub(super) fn new(
        store: Arc<dyn Store>,
        performer: Arc<dyn Performer>,
        run_id: RunId,
        on_event: Box<dyn FnMut(&StoredEvent) + Send>,
    ) -> Self {
        let (told_spent, published) = (None, BTreeSet::new());
        Self {
            store,
            performer,
            run_id,
            on_event,
            told_spent,
            published,
            pauses: 0,
            noted: Commit::default(),
            writing: JoinSet::new(),
        }
    }

    /// Finds out what was published before.
    pub(super) async fn read_events(&mut self) -> Result<(), EngineError> {
        let mut after = 0;
        loop {
            let page = self.store.events(&self.run_id, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq;
            for StoredEvent { event, .. } in page {
                if let RunEventBody::RunPaused { number, .. } = event.body {
                    self.pauses = self.pauses.max(number);
                }
                self.published.insert(event.key);
            }
        }
    }

    pub(super) fn performer(&self) -> &Arc<dyn Performer> {
        &self.performer
    }

    /// Notes a result and what follows from it; both are written with the next transaction.
    pub(super) fn note(
        &mut self,
        result: Option<(EffectId, JournalEntry)>,
        events: Vec<RunEvent>,
        outcome: Option<&Outcome>,
    ) {
        let state = events.iter().rev().find_map(|event| state_after(&event.body));
        let is_news = result.is_some()
            || outcome.is_some()
            || state.is_some()
            || events.iter().any(|event| !self.published.contains(&event.key));
        if is_news {
            self.noted.results.extend(result);
            self.noted.events.extend(events);
            self.noted.state = state.or(self.noted.state);
            self.noted.outcome = outcome.cloned().or_else(|| self.noted.outcome.take());
        }
    }

    /// Whether everything that was noted is written. Nothing that follows from a result and changes
    /// the world may be performed before.
    pub(super) fn is_written(&self) -> bool {
        self.writing.is_empty() && self.noted == Commit::default()
    }

    /// Begins to write what was noted, unless a transaction is under way.
    pub(super) fn begin_writing(&mut self) {
        if !self.writing.is_empty() || self.noted == Commit::default() {
            return;
        }
        let spent = self.performer.spent();
        let commit = Commit { spent, at_ms: now_ms(), ..std::mem::take(&mut self.noted) };
        self.told_spent = spent;
        let (store, run_id) = (Arc::clone(&self.store), self.run_id.clone());
        self.writing.spawn(async move { store.commit(&run_id, commit).await });
    }

    /// Waits for the end of the transaction under way; for ever, if there is none.
    pub(super) async fn written(&mut self) -> Result<(), EngineError> {
        let Some(written) = self.writing.join_next().await else {
            return std::future::pending().await;
        };
        for event in written.map_err(|_| EngineError::Lost)?? {
            (self.on_event)(&event);
        }
        Ok(())
    }

    /// Writes everything that was noted.
    pub(super) async fn write(&mut self) -> Result<(), EngineError> {
        while !self.is_written() {
            self.begin_writing();
            self.written().await?;
        }
        Ok(())
    }

    /// Calls take seconds and longer. Should we be killed in one, the next driver must know what it
    /// may have cost.
    pub(super) async fn tell_spent(&mut self) -> Result<(), EngineError> {
        let spent = self.performer.spent();
        // A transaction under way tells what was spent before; the next look will do.
        if self.writing.is_empty() && spent != self.told_spent {
            self.told_spent = spent;
            let commit = Commit { spent, at_ms: now_ms(), ..Commit::default() };
            self.store.commit(&self.run_id, commit).await?;
        }
        Ok(())
    }

    /// What others want of the run.
    pub(super) async fn wishes(&mut self) -> Result<BTreeSet<Wish>, EngineError> {
        Ok(self.store.wishes(&self.run_id).await?)
    }

    /// The run stands still.
    pub(super) async fn pause(&mut self, why: &Pause) -> Result<(), EngineError> {
        let (reason, detail) = match why {
            Pause::Budget(failure) => (PauseReason::Budget, failure.detail.clone()),
            Pause::Failure(model, failure) => {
                (PauseReason::Failure, words_of_refusal(model, failure))
            }
            Pause::Question(words) => (PauseReason::Question, words.clone()),
            Pause::Person => (PauseReason::Person, "somebody asked for a pause".to_owned()),
        };
        let number = self.pauses.saturating_add(1);
        self.publish(RunEventBody::RunPaused { number, reason, detail }).await
    }

    /// The run ends here.
    pub(super) async fn cancel(&mut self) -> Result<(), EngineError> {
        self.publish(RunEventBody::RunCancelled).await
    }

    async fn publish(&mut self, body: RunEventBody) -> Result<(), EngineError> {
        self.note(None, vec![RunEvent::of_run(body)], None);
        self.write().await
    }
}

/// The state that an event puts its run into.
pub(crate) fn state_after(body: &RunEventBody) -> Option<RunState> {
    match body {
        RunEventBody::RunStarted { .. } | RunEventBody::ConsultStarted { .. } => {
            Some(RunState::Running)
        }
        RunEventBody::RunPaused { .. } => Some(RunState::Paused),
        RunEventBody::RunFinished { .. } | RunEventBody::PipelineComplete { .. } => {
            Some(RunState::Finished)
        }
        RunEventBody::RunFailed { .. } => Some(RunState::Failed),
        RunEventBody::RunCancelled => Some(RunState::Cancelled),
        _ => None,
    }
}
