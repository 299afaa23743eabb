//! Writes every step of every machine in one transaction with the result that caused it.
//!
//! Transactions are sequential. Steps that arrive during a flush are written together in the next
//! transaction, because a flush costs the same for fifteen debates as for one.

use std::collections::BTreeSet;
use std::sync::Arc;

use moothall_core::money::SpendTotals;
use moothall_core::{EffectId, Outcome, PauseReason, RunEvent, RunEventBody, RunId};
use moothall_store::{
    ControlRequest, JournalEntry, RunCommit, RunState, Store, StoreError, StoredEvent, now_ms,
};
use tokio::task::JoinSet;

use super::{RunPause, pause_detail};
use crate::error::EngineError;
use crate::perform::EffectPerformer;

/// Events read per page.
const PAGE: u32 = 1000;

/// Buffers and writes the results and events of one driver.
pub(crate) struct JournalWriter {
    store: Arc<dyn Store>,
    performer: Arc<dyn EffectPerformer>,
    run_id: RunId,
    on_event: Box<dyn FnMut(&StoredEvent) + Send>,
    /// The spending last written to the store.
    told_spent: Option<SpendTotals>,
    /// Keys of the events published before this driver started. A replay produces them all again;
    /// writing each one would be most of its work.
    published: BTreeSet<String>,
    /// Number of pauses so far.
    pauses: u32,
    /// Buffered and not yet written.
    noted: RunCommit,
    /// The transaction in progress, if any. Dropping the writer aborts it.
    writing: JoinSet<Result<Vec<StoredEvent>, StoreError>>,
}

impl JournalWriter {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        performer: Arc<dyn EffectPerformer>,
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
            noted: RunCommit::default(),
            writing: JoinSet::new(),
        }
    }

    /// Loads the keys of the events that are already published.
    pub(crate) async fn read_events(&mut self) -> Result<(), EngineError> {
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

    pub(crate) fn performer(&self) -> &Arc<dyn EffectPerformer> {
        &self.performer
    }

    /// Buffers a result and the events that follow from it for the next transaction.
    pub(crate) fn note(
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

    /// Whether everything buffered has been written. Effects that follow from a result and have
    /// side effects must wait for this.
    pub(crate) fn is_written(&self) -> bool {
        self.writing.is_empty() && self.noted == RunCommit::default()
    }

    /// Starts writing the buffer unless a transaction is in progress.
    pub(crate) fn begin_writing(&mut self) {
        if !self.writing.is_empty() || self.noted == RunCommit::default() {
            return;
        }
        let spent = self.performer.spent();
        let commit = RunCommit { spent, at_ms: now_ms(), ..std::mem::take(&mut self.noted) };
        self.told_spent = spent;
        let (store, run_id) = (Arc::clone(&self.store), self.run_id.clone());
        self.writing.spawn(async move { store.commit(&run_id, commit).await });
    }

    /// Waits for the transaction in progress; never returns if none exists.
    pub(crate) async fn written(&mut self) -> Result<(), EngineError> {
        let Some(written) = self.writing.join_next().await else {
            return std::future::pending().await;
        };
        for event in written.map_err(|_| EngineError::Lost)?? {
            (self.on_event)(&event);
        }
        Ok(())
    }

    /// Writes everything buffered.
    pub(crate) async fn write(&mut self) -> Result<(), EngineError> {
        while !self.is_written() {
            self.begin_writing();
            self.written().await?;
        }
        Ok(())
    }

    /// Stores the current spending. Calls take seconds or longer; if this process is killed during
    /// one, the next driver must know what the call may have cost.
    pub(crate) async fn tell_spent(&mut self) -> Result<(), EngineError> {
        let spent = self.performer.spent();
        // A transaction in progress already carries an earlier amount; the next tick updates it.
        if self.writing.is_empty() && spent != self.told_spent {
            self.told_spent = spent;
            let commit = RunCommit { spent, at_ms: now_ms(), ..RunCommit::default() };
            self.store.commit(&self.run_id, commit).await?;
        }
        Ok(())
    }

    /// Pending control requests for the run.
    pub(crate) async fn wishes(&mut self) -> Result<BTreeSet<ControlRequest>, EngineError> {
        Ok(self.store.wishes(&self.run_id).await?)
    }

    pub(crate) async fn pause(&mut self, why: &RunPause) -> Result<(), EngineError> {
        let (reason, detail) = match why {
            RunPause::Budget(failure) => (PauseReason::Budget, failure.detail.clone()),
            RunPause::Failure(model, failure) => {
                (PauseReason::Failure, pause_detail(model, failure))
            }
            RunPause::Question(words) => (PauseReason::Question, words.clone()),
            RunPause::Person => (PauseReason::Person, "paused on request".to_owned()),
        };
        let number = self.pauses.saturating_add(1);
        self.publish(RunEventBody::RunPaused { number, reason, detail }).await
    }

    pub(crate) async fn cancel(&mut self) -> Result<(), EngineError> {
        self.publish(RunEventBody::RunCancelled).await
    }

    async fn publish(&mut self, body: RunEventBody) -> Result<(), EngineError> {
        self.note(None, vec![RunEvent::of_run(body)], None);
        self.write().await
    }
}

/// The run state that an event leads to.
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
