//! The loop over one run: queued effects, calls in progress and the delivery of results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use moothall_core::consult::MoveReview;
use moothall_core::model::FailureKind;
use moothall_core::{Effect, EffectId, Outcome, Step, Workflow};
use moothall_store::{ControlRequest, JournalEntry};
use tokio::task::JoinSet;

use super::children::{ChildScheduler, ChildStart, ChildUpdate, QueuedChild};
use super::journal_writer::JournalWriter;
use super::pending_effect::{EffectCompletion, EffectOrigin, PendingEffect};
use super::{RunExit, RunPause};
use crate::error::EngineError;
use crate::perform::TimedResult;
use crate::requested_effect::{PerformedEffect, RequestedEffect, person_entry};
use crate::run_trace::ParentKey;

/// How often the driver checks for a pause or cancel request from another process.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

type Done = (PendingEffect, TimedResult);

/// Tracks the first call of a child. Children share a prompt prefix, and concurrent calls would
/// each pay to write it to the provider's cache. So the first call runs alone and the others read
/// what it cached.
#[derive(Debug, PartialEq, Eq)]
enum CacheWarmup {
    NotStarted,
    /// This call is in progress; other calls of children wait.
    InProgress(EffectId),
    Finished,
}

pub(crate) struct RunLoop {
    writer: JournalWriter,
    /// Results from before this driver started that have not been delivered yet.
    journal: BTreeMap<EffectId, JournalEntry>,
    completions: VecDeque<EffectCompletion>,
    /// In request order.
    waiting: VecDeque<PendingEffect>,
    in_flight: JoinSet<Done>,
    children: ChildScheduler,
    cache_warmup: CacheWarmup,
    /// The span of the current stage.
    stage: ParentKey,
    at_once: usize,
    pause: Option<RunPause>,
    /// Whether the run can be resumed after a pause.
    can_resume: bool,
    /// A person's answer to the next question.
    person_review: Option<MoveReview>,
    /// A question to a person that has no answer.
    question: Option<String>,
}

impl RunLoop {
    pub(crate) fn new(
        writer: JournalWriter,
        journal: BTreeMap<EffectId, JournalEntry>,
        children: ChildScheduler,
        at_once: usize,
    ) -> Self {
        Self {
            writer,
            journal,
            completions: VecDeque::new(),
            waiting: VecDeque::new(),
            in_flight: JoinSet::new(),
            children,
            cache_warmup: CacheWarmup::NotStarted,
            stage: ParentKey::default(),
            at_once,
            pause: None,
            can_resume: true,
            person_review: None,
            question: None,
        }
    }

    pub(crate) fn person_review(self, person_review: Option<MoveReview>) -> Self {
        Self { person_review, ..self }
    }

    pub(crate) fn can_resume(self, can_resume: bool) -> Self {
        Self { can_resume, ..self }
    }

    pub(crate) async fn drive(
        mut self,
        root: &mut (dyn Workflow + Send),
    ) -> Result<RunExit, EngineError> {
        let first = root.start();
        if let Some(outcome) = self.root_stepped(None, first).await? {
            return Ok(RunExit::Done(outcome));
        }
        // Record the start before performing any effect.
        self.writer.flush().await?;
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        loop {
            // Deliver available results first, so a replay performs nothing, whatever the
            // order in which calls finished originally.
            while let Some(completion) = self.completions.pop_front() {
                let is_new = completion.entry.is_some();
                if let Some(outcome) = self.deliver(root, completion).await? {
                    return Ok(RunExit::Done(outcome));
                }
                // Start this debate's next call before delivering the results of the others.
                if is_new {
                    self.start_calls();
                }
            }
            if self.pause.is_none() {
                self.start_children()?;
                if !self.completions.is_empty() {
                    continue;
                }
            }
            self.start_calls();
            self.writer.start_flush();
            let is_flushed = self.writer.is_flushed();
            if self.pause.is_none() && is_flushed {
                self.start_effects(|_| true);
            }
            match (self.in_flight.is_empty(), &self.pause) {
                (true, Some(why)) => {
                    self.writer.pause(why).await?;
                    return Ok(RunExit::Paused(why.clone()));
                }
                // No other work is left.
                (true, None) if is_flushed && !self.children.has_pending_reports() => {
                    let Some(detail) = self.question.take() else {
                        return Err(EngineError::Stalled);
                    };
                    let why = RunPause::Question(detail);
                    self.writer.pause(&why).await?;
                    return Ok(RunExit::Paused(why));
                }
                _ => {}
            }
            tokio::select! {
                Some(done) = self.in_flight.join_next() => {
                    self.on_performed(done.map_err(|_| EngineError::Lost)?);
                    // Take all other finished effects too, so they share a transaction.
                    while let Some(done) = self.in_flight.try_join_next() {
                        self.on_performed(done.map_err(|_| EngineError::Lost)?);
                    }
                }
                update = self.children.next_update() => self.apply_update(update.ok_or(EngineError::Lost)?),
                written = self.writer.wait_flushed() => written?,
                _ = poll.tick() => {
                    let requests = self.writer.control_requests().await?;
                    if requests.contains(&ControlRequest::Cancel) {
                        // Dropping the tasks aborts their calls and ends the guests.
                        drop((self.in_flight, self.children));
                        self.writer.cancel().await?;
                        return Ok(RunExit::Cancelled);
                    }
                    if requests.contains(&ControlRequest::Pause) {
                        self.pause_after_calls(RunPause::Person);
                    }
                    self.writer.write_spend().await?;
                }
            }
        }
    }

    /// Resumes a machine with a result and buffers what follows.
    async fn deliver(
        &mut self,
        root: &mut (dyn Workflow + Send),
        completion: EffectCompletion,
    ) -> Result<Option<Outcome>, EngineError> {
        let EffectCompletion { to, id, result, entry } = completion;
        let entry = entry.map(|entry| (id.clone(), entry));
        match to {
            EffectOrigin::Root => {
                let step = root.resume(&id, result)?;
                self.root_stepped(entry, step).await
            }
            EffectOrigin::Child(child) => {
                match self.children.resume(&child, &id, result)? {
                    Some(Step { perform, publish, outcome }) => {
                        self.writer.buffer_step(entry, publish, None);
                        self.child_stepped(child, perform, outcome)?;
                    }
                    // The child ended while its call was in progress. Journal the result anyway,
                    // since it has been paid for.
                    None => self.writer.buffer_step(entry, Vec::new(), None),
                }
                Ok(None)
            }
        }
    }

    async fn root_stepped(
        &mut self,
        entry: Option<(EffectId, JournalEntry)>,
        step: Step,
    ) -> Result<Option<Outcome>, EngineError> {
        let Step { perform, publish, outcome } = step;
        self.stage.follow(&publish);
        self.writer.buffer_step(entry, publish, outcome.as_ref());
        if outcome.is_some() {
            self.writer.flush().await?;
        } else {
            let pending = self.take_unjournaled(&EffectOrigin::Root, perform)?;
            self.release(pending);
        }
        Ok(outcome)
    }

    fn child_stepped(
        &mut self,
        child: EffectId,
        perform: Vec<(EffectId, Effect)>,
        outcome: Option<Outcome>,
    ) -> Result<(), EngineError> {
        let pending = self.take_unjournaled(&EffectOrigin::Child(child.clone()), perform)?;
        let update = self.children.stepped(&child, pending, outcome);
        self.apply_update(update);
        Ok(())
    }

    /// Queues the results that the journal has and returns the other effects.
    fn take_unjournaled(
        &mut self,
        by: &EffectOrigin,
        perform: Vec<(EffectId, Effect)>,
    ) -> Result<Vec<PendingEffect>, EngineError> {
        let mut open = Vec::new();
        for effect in perform {
            let request = RequestedEffect::new(effect)?;
            match self.journal.remove(&request.id) {
                None => open.push(PendingEffect { by: by.clone(), request }),
                Some(entry) => {
                    let result = request.result_from(entry)?;
                    let (to, id) = (by.clone(), request.id);
                    self.completions.push_back(EffectCompletion { to, id, result, entry: None });
                }
            }
        }
        Ok(open)
    }

    /// Queues effects that may be performed.
    fn release(&mut self, pending: Vec<PendingEffect>) {
        for PendingEffect { by, request } in pending {
            let RequestedEffect { id, request_sha256, effect } = request;
            match effect {
                Effect::StartChild(request) => {
                    self.children.enqueue(QueuedChild { by, id, request_sha256, request });
                }
                Effect::AskPerson(question) => match self.person_review.take() {
                    Some(review) => self.complete(by, id, person_entry(request_sha256, review)),
                    None => self.question = Some(question.describe()),
                },
                effect => {
                    let request = RequestedEffect { id, request_sha256, effect };
                    self.waiting.push_back(PendingEffect { by, request });
                }
            }
        }
    }

    fn start_children(&mut self) -> Result<(), EngineError> {
        while let Some(started) = self.children.start_next() {
            match started {
                ChildStart::Started(child, Step { perform, publish, outcome }) => {
                    self.writer.buffer_step(None, publish, None);
                    self.child_stepped(child, perform, outcome)?;
                }
                ChildStart::Ended(completion) => self.completions.push_back(completion),
            }
        }
        Ok(())
    }

    /// Starts model calls while the results that led to them are still being written. If this
    /// process is killed in between, both calls are repeated, which is safe because model calls
    /// have no side effects.
    fn start_calls(&mut self) {
        if self.pause.is_none() {
            self.start_effects(|effect| matches!(effect, Effect::CallModel(_)));
        }
    }

    /// Starts permitted effects in request order.
    fn start_effects(&mut self, may_start: fn(&Effect) -> bool) {
        while self.in_flight.len() < self.at_once
            && let Some(pending) = self.next_to_start(may_start)
        {
            self.writer.announce_call(&pending.request.id, &pending.request.effect);
            let performer = Arc::clone(self.writer.performer());
            let PendingEffect { by, request } = pending;
            let performing = match &by {
                EffectOrigin::Root => request.perform(performer, &self.stage),
                EffectOrigin::Child(child) => {
                    request.perform(performer, &ParentKey::of_child(child))
                }
            };
            self.in_flight.spawn(async move {
                let (request, performed) = performing.await;
                (PendingEffect { by, request }, performed)
            });
        }
    }

    fn next_to_start(&mut self, may_start: fn(&Effect) -> bool) -> Option<PendingEffect> {
        let waits = matches!(self.cache_warmup, CacheWarmup::InProgress(_));
        let mut waiting = self.waiting.iter();
        let next = waiting.position(|PendingEffect { by, request }| {
            may_start(&request.effect) && (*by == EffectOrigin::Root || !waits)
        })?;
        let pending = self.waiting.remove(next)?;
        if pending.by != EffectOrigin::Root && self.cache_warmup == CacheWarmup::NotStarted {
            self.cache_warmup = CacheWarmup::InProgress(pending.request.id.clone());
        }
        Some(pending)
    }

    fn on_performed(&mut self, (pending, performed): Done) {
        let PendingEffect { by, request } = pending;
        if matches!(&self.cache_warmup, CacheWarmup::InProgress(first) if *first == request.id) {
            self.cache_warmup = CacheWarmup::Finished;
        }
        match request.performed(performed, |kind| self.pauses_for(kind)) {
            PerformedEffect::Recorded(id, entry) => self.complete(by, id, entry),
            PerformedEffect::Pauses(model, failure) => {
                self.pause_after_calls(RunPause::after(model, failure));
            }
        }
    }

    /// Queues a new result for delivery.
    fn complete(&mut self, to: EffectOrigin, id: EffectId, entry: JournalEntry) {
        let result = entry.result.clone();
        self.completions.push_back(EffectCompletion { to, id, result, entry: Some(entry) });
    }

    /// Pauses the run as soon as its calls in progress have finished.
    fn pause_after_calls(&mut self, why: RunPause) {
        if self.pause.is_none() {
            self.pause = Some(why);
            self.writer.performer().end_outage_waits();
        }
    }

    /// Whether a failure pauses the run.
    fn pauses_for(&self, kind: FailureKind) -> bool {
        kind.pauses_run() && (self.can_resume || kind == FailureKind::OverBudget)
    }

    fn apply_update(&mut self, update: ChildUpdate) {
        let ChildUpdate { released, ended } = update;
        self.release(released);
        self.completions.extend(ended);
    }
}
