//! Drives the workflow of a run: its own effects in batches, its children on any worker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use moothall_core::child::{ChildEnd, ChildIsolation};
use moothall_core::consult::MoveReview;
use moothall_core::receipt::EffectTiming;
use moothall_core::{
    Effect, EffectId, EffectResult, Outcome, PauseReason, RunEvent, RunEventBody, Sha256Hex, Step,
    Workflow,
};
use moothall_models::Budget;
use moothall_store::{ControlRequest, JournalEntry, RunCommit, RunState, StoreError};

use super::effect_batch::{CallRequest, EffectBatch, RunContext, what_happened};
use super::engine::{ChildCall, ChildExit, DurableEngine, StepRecord, StopCause, Work};
use crate::children::{entry_of, not_tried};
use crate::error::EngineError;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DurableRunExit {
    /// The workflow reached its outcome.
    Done,
    /// The run was cancelled.
    Cancelled,
}

/// Drives a run to its end. During a pause it waits for as long as necessary.
pub async fn drive_run<D: DurableEngine>(
    engine: &mut D,
    stage: &Arc<RunContext>,
    workflow: &mut (dyn Workflow + Send),
) -> Result<DurableRunExit, D::Halt> {
    let mut root = DurableRun {
        stage: Arc::clone(stage),
        budget: stage.budget,
        events: Vec::new(),
        outcome: None,
        waiting: Vec::new(),
        wanted: VecDeque::new(),
        live: BTreeMap::new(),
        question: None,
        stop: None,
        pauses: 0,
        steps: 0,
    };
    let first = workflow.start();
    root.stepped(first)?;
    loop {
        if root.outcome.is_some() {
            return root.end(engine).await;
        }
        if root.stop.is_none() && !root.waiting.is_empty() {
            root.call(engine, workflow).await?;
        } else if root.stop.is_none() && root.has_room_for_child() {
            root.start_children(engine).await?;
        } else if !root.live.is_empty() {
            root.hear_of_child(engine, workflow).await?;
        } else if root.stop == Some(StopCause::Cancelled) {
            return root.cancel(engine).await;
        } else {
            root.pause(engine, workflow).await?;
        }
    }
}

struct DurableRun {
    stage: Arc<RunContext>,
    budget: Budget,
    /// Events not yet published.
    events: Vec<RunEvent>,
    outcome: Option<Outcome>,
    waiting: Vec<CallRequest>,
    /// Children not yet started, in request order.
    wanted: VecDeque<CallRequest>,
    live: BTreeMap<EffectId, CallRequest>,
    /// A pending question to a person.
    question: Option<CallRequest>,
    stop: Option<StopCause>,
    pauses: u32,
    /// Number of steps so far; part of each step's name.
    steps: u32,
}

impl DurableRun {
    fn stepped(&mut self, step: Step) -> Result<(), EngineError> {
        let Step { perform, publish, outcome } = step;
        self.events.extend(publish);
        self.outcome = outcome.or_else(|| self.outcome.take());
        for effect in perform {
            let asked = CallRequest::new(effect)?;
            match &asked.effect {
                Effect::StartChild(_) => self.wanted.push_back(asked),
                Effect::AskPerson(_) => self.question = Some(asked),
                Effect::CallModel(_)
                | Effect::Execute(_)
                | Effect::Gather(_)
                | Effect::Draft(_) => {
                    self.waiting.push(asked);
                }
            }
        }
        Ok(())
    }

    /// Resumes the workflow with the results of these effects.
    async fn tell(
        &mut self,
        workflow: &mut (dyn Workflow + Send),
        asked: &[CallRequest],
    ) -> Result<(), EngineError> {
        for (id, result) in self.stage.told(asked).await? {
            let step = workflow.resume(&id, result)?;
            self.stepped(step)?;
        }
        Ok(())
    }

    /// Performs a step. Returns false and records the reason if it was stopped.
    async fn step<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        what: &str,
        work: Work,
    ) -> Result<bool, D::Halt> {
        self.steps += 1;
        match engine.step(format!("{} {what}", self.steps), work).await? {
            StepRecord::Stopped(stop) => {
                self.stop = Some(stop);
                Ok(false)
            }
            StepRecord::Done | StepRecord::WithoutWalls(_) | StepRecord::NoRoom(_) => Ok(true),
        }
    }

    async fn call<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        workflow: &mut (dyn Workflow + Send),
    ) -> Result<(), D::Halt> {
        let asked = self.waiting.clone();
        let name = asked.first().map(|first| first.id.to_string()).unwrap_or_default();
        let wave = EffectBatch {
            stage: Arc::clone(&self.stage),
            name: name.clone(),
            effects: asked.clone(),
            events: std::mem::take(&mut self.events),
            budget: self.budget,
        };
        if self.step(engine, &name, wave.into_work()).await? {
            self.waiting.clear();
            self.tell(workflow, &asked).await?;
        }
        Ok(())
    }

    fn has_room_for_child(&self) -> bool {
        !self.wanted.is_empty() && self.live.len() < self.stage.parallel_children.max(1)
    }

    /// Starts as many children as the limit allows, after storing their requests.
    async fn start_children<D: DurableEngine>(&mut self, engine: &mut D) -> Result<(), D::Halt> {
        let mut calls = Vec::new();
        let mut requests = Vec::new();
        while self.has_room_for_child()
            && let Some(asked) = self.wanted.pop_front()
        {
            if let Effect::StartChild(request) = &asked.effect {
                let bytes = serde_json::to_vec(request)
                    .map_err(|_| EngineError::Unreadable(asked.id.clone()))?;
                let (request, pauses) = (Sha256Hex::of(&bytes), self.pauses);
                let (id, budget) = (asked.id.clone(), self.budget);
                calls.push(ChildCall { id, request, pauses, budget });
                requests.push(bytes);
            }
            self.live.insert(asked.id.clone(), asked);
        }
        let (stage, events) = (Arc::clone(&self.stage), std::mem::take(&mut self.events));
        let work = async move {
            for request in requests {
                match stage.store.keep_artifact(&stage.run_id, &request).await {
                    Ok(_) => {}
                    Err(StoreError::RunEnded { .. }) => {
                        return Ok(StepRecord::Stopped(StopCause::Cancelled));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            publish(&stage, what_happened(events, None)).await
        };
        if self.step(engine, "children", Box::pin(work)).await? {
            for call in calls {
                engine.start_child(call);
            }
        } else {
            for call in calls.into_iter().rev() {
                if let Some(asked) = self.live.remove(&call.id) {
                    self.wanted.push_front(asked);
                }
            }
        }
        Ok(())
    }

    async fn hear_of_child<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        workflow: &mut (dyn Workflow + Send),
    ) -> Result<(), D::Halt> {
        if !self.events.is_empty() {
            let (stage, events) = (Arc::clone(&self.stage), std::mem::take(&mut self.events));
            let work = async move { publish(&stage, what_happened(events, None)).await };
            self.step(engine, "events", Box::pin(work)).await?;
        }
        let (id, left) = engine.child_left().await?;
        let Some(asked) = self.live.remove(&id) else { return Ok(()) };
        match left {
            ChildExit::Ended => self.tell(workflow, &[asked]).await?,
            ChildExit::Broken(why) => {
                // The other children are still useful: record this one as failed and continue.
                if self.give_up(engine, &asked, why).await? {
                    self.tell(workflow, &[asked]).await?;
                }
            }
            ChildExit::Stopped(stop) => {
                self.wanted.push_front(asked);
                // A cancellation takes precedence over any other stop.
                if self.stop != Some(StopCause::Cancelled) {
                    self.stop = Some(stop);
                }
            }
        }
        Ok(())
    }

    async fn give_up<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        asked: &CallRequest,
        why: String,
    ) -> Result<bool, D::Halt> {
        let outcome = not_tried(&asked.id, "debate.broken", why);
        let end = ChildEnd { outcome, isolation: ChildIsolation::none(None) };
        let entry = entry_of(asked.request_sha256, end);
        let commit = RunCommit { results: vec![(asked.id.clone(), entry)], ..RunCommit::default() };
        let stage = Arc::clone(&self.stage);
        let work = async move { publish(&stage, commit).await };
        self.step(engine, "broken", Box::pin(work)).await
    }

    /// Pauses until the run is resumed.
    async fn pause<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        workflow: &mut (dyn Workflow + Send),
    ) -> Result<(), D::Halt> {
        let (reason, detail) = match (self.stop.take(), &self.question) {
            (Some(StopCause::Budget(words)), _) => (PauseReason::Budget, words),
            (Some(StopCause::Failure(words)), _) => (PauseReason::Failure, words),
            (Some(_), _) => (PauseReason::Person, "paused on request".to_owned()),
            (None, Some(CallRequest { effect: Effect::AskPerson(question), .. })) => {
                (PauseReason::Question, question.words())
            }
            (None, _) => return Err(EngineError::Stalled.into()),
        };
        self.pauses += 1;
        let mut events = std::mem::take(&mut self.events);
        let number = self.pauses;
        let answers_question = reason == PauseReason::Question;
        events.push(RunEvent::of_run(RunEventBody::RunPaused { number, reason, detail }));
        let stage = Arc::clone(&self.stage);
        let work = async move { stand_still(&stage, events).await };
        if !self.step(engine, "pause", Box::pin(work)).await? {
            return Ok(());
        }
        let more = engine.gone_on(number).await?;
        self.budget = Budget {
            usd: more.usd.or(self.budget.usd),
            tokens: more.tokens.or(self.budget.tokens),
        };
        let question = if answers_question { self.question.take() } else { None };
        let (stage, asked) = (Arc::clone(&self.stage), question.clone());
        let work = async move { go_on(&stage, asked).await };
        match (self.step(engine, "go on", Box::pin(work)).await?, question) {
            (true, Some(question)) => self.tell(workflow, &[question]).await?,
            (false, question) => self.question = question,
            (true, None) => {}
        }
        Ok(())
    }

    async fn cancel<D: DurableEngine>(mut self, engine: &mut D) -> Result<DurableRunExit, D::Halt> {
        let mut events = std::mem::take(&mut self.events);
        events.push(RunEvent::of_run(RunEventBody::RunCancelled));
        let stage = Arc::clone(&self.stage);
        let work = async move { publish(&stage, what_happened(events, None)).await };
        self.step(engine, "cancelled", Box::pin(work)).await?;
        Ok(DurableRunExit::Cancelled)
    }

    async fn end<D: DurableEngine>(mut self, engine: &mut D) -> Result<DurableRunExit, D::Halt> {
        let (events, outcome) = (std::mem::take(&mut self.events), self.outcome.take());
        let stage = Arc::clone(&self.stage);
        let work = async move { publish(&stage, what_happened(events, outcome)).await };
        match self.step(engine, "end", Box::pin(work)).await? {
            true => Ok(DurableRunExit::Done),
            false => Ok(DurableRunExit::Cancelled),
        }
    }
}

async fn publish(stage: &RunContext, commit: RunCommit) -> Result<StepRecord, EngineError> {
    Ok(stage.write(commit).await?.map_or(StepRecord::Done, StepRecord::Stopped))
}

/// Publishes the pause, then checks for a cancel request. A client that requests cancellation after
/// this check finds a paused run and resumes it, so the request takes effect.
async fn stand_still(stage: &RunContext, events: Vec<RunEvent>) -> Result<StepRecord, EngineError> {
    let noted = publish(stage, what_happened(events, None)).await?;
    match stage.store.wishes(&stage.run_id).await?.contains(&ControlRequest::Cancel) {
        true => Ok(StepRecord::Stopped(StopCause::Cancelled)),
        false => Ok(noted),
    }
}

/// Prepares a paused run to continue: answers the open question and clears the pause request.
/// Resuming without changes accepts the moves unchanged.
async fn go_on(
    stage: &RunContext,
    question: Option<CallRequest>,
) -> Result<StepRecord, EngineError> {
    let (store, run_id) = (&stage.store, &stage.run_id);
    if store.wishes(run_id).await?.contains(&ControlRequest::Cancel) {
        return Ok(StepRecord::Stopped(StopCause::Cancelled));
    }
    store.withdraw(run_id, ControlRequest::Pause).await?;
    let running = RunCommit { state: Some(RunState::Running), ..RunCommit::default() };
    let Some(CallRequest { id, request_sha256, .. }) = question else {
        return publish(stage, running).await;
    };
    let changes = store.changes(run_id).await?;
    let result = EffectResult::PersonSaid(Box::new(MoveReview { changes }));
    // No call waited for the person, so the latency is 0.
    let timing = EffectTiming { latency_ms: 0, tries: 1 };
    let entry = JournalEntry { request_sha256, result, timing };
    publish(stage, RunCommit { results: vec![(id, entry)], ..running }).await
}
