//! The loop over one run: queued effects, calls in progress and the delivery of results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use moothall_core::consult::MoveReview;
use moothall_core::model::FailureKind;
use moothall_core::receipt::EffectTiming;
use moothall_core::{Effect, EffectId, EffectResult, Outcome, Step, Workflow};
use moothall_store::{ControlRequest, JournalEntry};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::children::{ChildScheduler, ChildStart, ChildUpdate, QueuedChild};
use super::journal_writer::JournalWriter;
use super::pending_effect::{EffectCompletion, EffectOrigin, PendingEffect};
use super::{RunExit, RunPause};
use crate::error::EngineError;
use crate::perform::TimedResult;

/// How often the driver checks for a pause or cancel request from another process.
const LOOK_AROUND: Duration = Duration::from_millis(500);

type Done = (PendingEffect, TimedResult);

/// Tracks the first call of a child. Children share a prompt prefix, and concurrent calls would
/// each pay to write it to the provider's cache. So the first call runs alone and the others read
/// what it cached.
#[derive(Debug, PartialEq, Eq)]
enum CacheWarmup {
    Nobody,
    /// This call is in progress; other calls of children wait.
    Goes(EffectId),
    Arrived,
}

pub(crate) struct RunLoop {
    desk: JournalWriter,
    /// Results from before this driver started that have not been delivered yet.
    journal: BTreeMap<EffectId, JournalEntry>,
    answers: VecDeque<EffectCompletion>,
    /// In request order.
    waiting: VecDeque<PendingEffect>,
    under_way: JoinSet<Done>,
    children: ChildScheduler,
    ahead: CacheWarmup,
    at_once: usize,
    pause: Option<RunPause>,
    /// Whether the run can be resumed after a pause.
    can_go_on: bool,
    /// A person's answer to the next question.
    person_says: Option<MoveReview>,
    /// A question to a person that has no answer.
    question: Option<String>,
}

impl RunLoop {
    pub(crate) fn new(
        desk: JournalWriter,
        journal: BTreeMap<EffectId, JournalEntry>,
        children: ChildScheduler,
        at_once: usize,
    ) -> Self {
        Self {
            desk,
            journal,
            answers: VecDeque::new(),
            waiting: VecDeque::new(),
            under_way: JoinSet::new(),
            children,
            ahead: CacheWarmup::Nobody,
            at_once,
            pause: None,
            can_go_on: true,
            person_says: None,
            question: None,
        }
    }

    pub(crate) fn person_says(self, person_says: Option<MoveReview>) -> Self {
        Self { person_says, ..self }
    }

    pub(crate) fn can_go_on(self, can_go_on: bool) -> Self {
        Self { can_go_on, ..self }
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
        self.desk.write().await?;
        let mut look = tokio::time::interval(LOOK_AROUND);
        loop {
            // Deliver available results first, so a replay performs nothing, whatever the
            // order in which calls finished originally.
            while let Some(answer) = self.answers.pop_front() {
                let is_new = answer.entry.is_some();
                if let Some(outcome) = self.tell(root, answer).await? {
                    return Ok(RunExit::Done(outcome));
                }
                // Start this debate's next call before delivering the results of the others.
                if is_new {
                    self.start_calls();
                }
            }
            if self.pause.is_none() {
                self.start_children()?;
                if !self.answers.is_empty() {
                    continue;
                }
            }
            self.start_calls();
            self.desk.begin_writing();
            let is_written = self.desk.is_written();
            if self.pause.is_none() && is_written {
                self.start_effects(|_| true);
            }
            match (self.under_way.is_empty(), &self.pause) {
                (true, Some(why)) => {
                    self.desk.pause(why).await?;
                    return Ok(RunExit::Paused(why.clone()));
                }
                // No other work is left.
                (true, None) if is_written && !self.children.are_busy() => {
                    let Some(words) = self.question.take() else {
                        return Err(EngineError::Stalled);
                    };
                    let why = RunPause::Question(words);
                    self.desk.pause(&why).await?;
                    return Ok(RunExit::Paused(why));
                }
                _ => {}
            }
            tokio::select! {
                Some(done) = self.under_way.join_next() => {
                    self.performed(done.map_err(|_| EngineError::Lost)?);
                    // Take all other finished effects too, so they share a transaction.
                    while let Some(done) = self.under_way.try_join_next() {
                        self.performed(done.map_err(|_| EngineError::Lost)?);
                    }
                }
                told = self.children.hear() => self.heard(told.ok_or(EngineError::Lost)?),
                written = self.desk.written() => written?,
                _ = look.tick() => {
                    let wishes = self.desk.wishes().await?;
                    if wishes.contains(&ControlRequest::Cancel) {
                        // Dropping the tasks aborts their calls and ends the guests.
                        drop((self.under_way, self.children));
                        self.desk.cancel().await?;
                        return Ok(RunExit::Cancelled);
                    }
                    if wishes.contains(&ControlRequest::Pause) {
                        self.pause.get_or_insert(RunPause::Person);
                    }
                    self.desk.tell_spent().await?;
                }
            }
        }
    }

    /// Resumes a machine with a result and buffers what follows.
    async fn tell(
        &mut self,
        root: &mut (dyn Workflow + Send),
        answer: EffectCompletion,
    ) -> Result<Option<Outcome>, EngineError> {
        let EffectCompletion { to, id, result, entry } = answer;
        let entry = entry.map(|entry| (id.clone(), entry));
        match to {
            EffectOrigin::Root => {
                let step = root.resume(&id, result)?;
                self.root_stepped(entry, step).await
            }
            EffectOrigin::Child(child) => {
                match self.children.resume(&child, &id, result)? {
                    Some(Step { perform, publish, outcome }) => {
                        self.desk.note(entry, publish, None);
                        self.child_stepped(child, perform, outcome)?;
                    }
                    // The child ended while its call was in progress. Journal the result anyway,
                    // since it has been paid for.
                    None => self.desk.note(entry, Vec::new(), None),
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
        self.desk.note(entry, publish, outcome.as_ref());
        if outcome.is_some() {
            self.desk.write().await?;
        } else {
            let asked = self.unanswered(&EffectOrigin::Root, perform)?;
            self.release(asked);
        }
        Ok(outcome)
    }

    fn child_stepped(
        &mut self,
        child: EffectId,
        perform: Vec<(EffectId, Effect)>,
        outcome: Option<Outcome>,
    ) -> Result<(), EngineError> {
        let asked = self.unanswered(&EffectOrigin::Child(child.clone()), perform)?;
        let told = self.children.stepped(&child, asked, outcome);
        self.heard(told);
        Ok(())
    }

    /// Queues the results that the journal has and returns the other effects.
    fn unanswered(
        &mut self,
        by: &EffectOrigin,
        perform: Vec<(EffectId, Effect)>,
    ) -> Result<Vec<PendingEffect>, EngineError> {
        let mut open = Vec::new();
        for (id, effect) in perform {
            let asked = effect.request_hash()?;
            match self.journal.remove(&id) {
                None => {
                    open.push(PendingEffect { by: by.clone(), id, request_sha256: asked, effect })
                }
                Some(entry) if entry.request_sha256 == asked => {
                    self.answers.push_back(EffectCompletion {
                        to: by.clone(),
                        id,
                        result: entry.result,
                        entry: None,
                    })
                }
                Some(entry) => {
                    let answered = entry.request_sha256;
                    return Err(EngineError::JournalMismatch { id, asked, answered });
                }
            }
        }
        Ok(open)
    }

    /// Queues effects that may be performed.
    fn release(&mut self, asked: Vec<PendingEffect>) {
        for PendingEffect { by, id, request_sha256, effect } in asked {
            match effect {
                Effect::StartChild(request) => {
                    self.children.want(QueuedChild { by, id, request_sha256, request });
                }
                Effect::AskPerson(question) => match self.person_says.take() {
                    Some(review) => {
                        let result = EffectResult::PersonSaid(Box::new(review));
                        // No call waited for the person, so the latency is 0.
                        let timing = EffectTiming { latency_ms: 0, tries: 1 };
                        let entry = JournalEntry { request_sha256, result: result.clone(), timing };
                        self.answers.push_back(EffectCompletion {
                            to: by,
                            id,
                            result,
                            entry: Some(entry),
                        });
                    }
                    None => self.question = Some(question.words()),
                },
                effect => self.waiting.push_back(PendingEffect { by, id, request_sha256, effect }),
            }
        }
    }

    fn start_children(&mut self) -> Result<(), EngineError> {
        while let Some(started) = self.children.start_next() {
            match started {
                ChildStart::Lives(child, Step { perform, publish, outcome }) => {
                    self.desk.note(None, publish, None);
                    self.child_stepped(child, perform, outcome)?;
                }
                ChildStart::Ended(answer) => self.answers.push_back(answer),
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
        while self.under_way.len() < self.at_once
            && let Some(asked) = self.next_to_start(may_start)
        {
            let performer = Arc::clone(self.desk.performer());
            let name = asked.id.as_str();
            tracing::debug!(target: "moothall::run", effect = name, "effect started");
            let span = tracing::info_span!(target: "moothall::run", "effect", effect_id = name);
            let performing = async move {
                let performed = performer.perform(&asked.id, &asked.effect).await;
                (asked, performed)
            };
            self.under_way.spawn(performing.instrument(span));
        }
    }

    fn next_to_start(&mut self, may_start: fn(&Effect) -> bool) -> Option<PendingEffect> {
        let waits = matches!(self.ahead, CacheWarmup::Goes(_));
        let mut waiting = self.waiting.iter();
        let next = waiting.position(|PendingEffect { by, effect, .. }| {
            may_start(effect) && (*by == EffectOrigin::Root || !waits)
        })?;
        let asked = self.waiting.remove(next)?;
        if asked.by != EffectOrigin::Root && self.ahead == CacheWarmup::Nobody {
            self.ahead = CacheWarmup::Goes(asked.id.clone());
        }
        Some(asked)
    }

    fn performed(&mut self, (asked, performed): Done) {
        let PendingEffect { by: to, id, request_sha256, effect } = asked;
        if matches!(&self.ahead, CacheWarmup::Goes(first) if *first == id) {
            self.ahead = CacheWarmup::Arrived;
        }
        let TimedResult { result, timing } = performed;
        match (effect, result) {
            (Effect::CallModel(request), EffectResult::ModelFailed(failure))
                if self.pauses_for(failure.kind) =>
            {
                self.pause = Some(RunPause::after(request.model, failure));
            }
            (_, result) => {
                let entry = Some(JournalEntry { request_sha256, result: result.clone(), timing });
                self.answers.push_back(EffectCompletion { to, id, result, entry });
            }
        }
    }

    /// Whether a failure pauses the run. Such a failure is not journaled and not delivered to the
    /// workflow; when the run is resumed the same request is sent again.
    fn pauses_for(&self, kind: FailureKind) -> bool {
        kind.pauses_run() && (self.can_go_on || kind == FailureKind::OverBudget)
    }

    fn heard(&mut self, told: ChildUpdate) {
        let ChildUpdate { released, ended } = told;
        self.release(released);
        self.answers.extend(ended);
    }
}
