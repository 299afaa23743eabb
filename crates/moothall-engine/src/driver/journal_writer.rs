//! Writes every step of every machine in one transaction with the result that caused it.
//!
//! Transactions are sequential. Steps that arrive during a flush are written together in the next
//! transaction, because a flush costs the same for fifteen debates as for one.

use std::collections::BTreeSet;
use std::sync::Arc;

use moothall_core::debate::responding_event;
use moothall_core::money::SpendTotals;
use moothall_core::{Effect, EffectId, Outcome, PauseReason, RunEvent, RunEventBody, RunId};
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
    written_spend: Option<SpendTotals>,
    /// Keys of the events published before this driver started, and of announced calls. A replay
    /// produces them all again; writing each one would be most of its work.
    published: BTreeSet<String>,
    /// Number of pauses so far.
    pauses: u32,
    /// Buffered and not yet written.
    buffer: RunCommit,
    /// The transaction in progress, if any. Dropping the writer aborts it.
    in_progress: JoinSet<Result<Vec<StoredEvent>, StoreError>>,
}

impl JournalWriter {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        performer: Arc<dyn EffectPerformer>,
        run_id: RunId,
        on_event: Box<dyn FnMut(&StoredEvent) + Send>,
    ) -> Self {
        let (written_spend, published) = (None, BTreeSet::new());
        Self {
            store,
            performer,
            run_id,
            on_event,
            written_spend,
            published,
            pauses: 0,
            buffer: RunCommit::default(),
            in_progress: JoinSet::new(),
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
    pub(crate) fn buffer_step(
        &mut self,
        result: Option<(EffectId, JournalEntry)>,
        events: Vec<RunEvent>,
        outcome: Option<&Outcome>,
    ) {
        let state = events.iter().rev().find_map(|event| state_after(&event.body));
        let has_changes = result.is_some()
            || outcome.is_some()
            || state.is_some()
            || events.iter().any(|event| !self.published.contains(&event.key));
        if has_changes {
            self.buffer.results.extend(result);
            self.buffer.events.extend(events);
            self.buffer.state = state.or(self.buffer.state);
            self.buffer.outcome = outcome.cloned().or_else(|| self.buffer.outcome.take());
        }
    }

    /// Buffers the event that a side of a debate starts to answer, with its first call.
    pub(crate) fn announce_call(&mut self, id: &EffectId, effect: &Effect) {
        if let Some(event) = responding_event(id, effect)
            && self.published.insert(event.key.clone())
        {
            self.buffer.events.push(event);
        }
    }

    /// Whether everything buffered has been written. Effects that follow from a result and have
    /// side effects must wait for this.
    pub(crate) fn is_flushed(&self) -> bool {
        self.in_progress.is_empty() && self.buffer == RunCommit::default()
    }

    /// Starts writing the buffer unless a transaction is in progress.
    pub(crate) fn start_flush(&mut self) {
        if !self.in_progress.is_empty() || self.buffer == RunCommit::default() {
            return;
        }
        let spent = self.performer.spent();
        let commit = RunCommit { spent, at_ms: now_ms(), ..std::mem::take(&mut self.buffer) };
        self.written_spend = spent;
        let (store, run_id) = (Arc::clone(&self.store), self.run_id.clone());
        self.in_progress.spawn(async move { store.commit(&run_id, commit).await });
    }

    /// Waits for the transaction in progress; never returns if none exists.
    pub(crate) async fn wait_flushed(&mut self) -> Result<(), EngineError> {
        let Some(written) = self.in_progress.join_next().await else {
            return std::future::pending().await;
        };
        for event in written.map_err(|_| EngineError::Lost)?? {
            (self.on_event)(&event);
        }
        Ok(())
    }

    /// Writes everything buffered.
    pub(crate) async fn flush(&mut self) -> Result<(), EngineError> {
        while !self.is_flushed() {
            self.start_flush();
            self.wait_flushed().await?;
        }
        Ok(())
    }

    /// Stores the current spending. Calls take seconds or longer; if this process is killed during
    /// one, the next driver must know what the call may have cost.
    pub(crate) async fn write_spend(&mut self) -> Result<(), EngineError> {
        let spent = self.performer.spent();
        // A transaction in progress already carries an earlier amount; the next tick updates it.
        if self.in_progress.is_empty() && spent != self.written_spend {
            self.written_spend = spent;
            let commit = RunCommit { spent, at_ms: now_ms(), ..RunCommit::default() };
            self.store.commit(&self.run_id, commit).await?;
        }
        Ok(())
    }

    /// Pending control requests for the run.
    pub(crate) async fn control_requests(
        &mut self,
    ) -> Result<BTreeSet<ControlRequest>, EngineError> {
        Ok(self.store.control_requests(&self.run_id).await?)
    }

    pub(crate) async fn pause(&mut self, why: &RunPause) -> Result<(), EngineError> {
        let (reason, detail) = match why {
            RunPause::Budget(failure) => (PauseReason::Budget, failure.detail.clone()),
            RunPause::Failure(model, failure) => {
                (PauseReason::Failure, pause_detail(model, failure))
            }
            RunPause::Question(detail) => (PauseReason::Question, detail.clone()),
            RunPause::Person => (PauseReason::Person, "paused on request".to_owned()),
        };
        let number = self.pauses.saturating_add(1);
        self.publish(RunEventBody::RunPaused { number, reason, detail }).await
    }

    pub(crate) async fn cancel(&mut self) -> Result<(), EngineError> {
        self.publish(RunEventBody::RunCancelled).await
    }

    async fn publish(&mut self, body: RunEventBody) -> Result<(), EngineError> {
        self.buffer_step(None, vec![RunEvent::of_run(body)], None);
        self.flush().await
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
