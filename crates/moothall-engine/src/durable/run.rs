//! Drives the workflow of a run: its own effects in batches, its children on any worker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use moothall_core::child::{ChildEnd, ChildIsolation};
use moothall_core::consult::MoveReview;
use moothall_core::{
    Effect, EffectId, Outcome, PauseReason, RunEvent, RunEventBody, Sha256Hex, Step, Workflow,
};
use moothall_models::Budget;
use moothall_store::{ControlRequest, RunCommit, RunState, StoreError};

use super::effect_batch::{EffectBatch, RunContext, event_commit};
use super::engine::{ChildCall, ChildExit, DurableEngine, StepRecord, StopCause, Work};
use crate::children::{entry_of, failed_outcome};
use crate::error::EngineError;
use crate::requested_effect::{RequestedEffect, person_entry};
use crate::run_trace::{ParentKey, write_run_spans};

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
    context: &Arc<RunContext>,
    workflow: &mut (dyn Workflow + Send),
) -> Result<DurableRunExit, D::Halt> {
    let mut root = DurableRun {
        context: Arc::clone(context),
        budget: context.budget,
        events: Vec::new(),
        outcome: None,
        waiting: Vec::new(),
        queued: VecDeque::new(),
        live: BTreeMap::new(),
        question: None,
        stop: None,
        pauses: 0,
        steps: 0,
        stage: ParentKey::default(),
    };
    let first = workflow.start();
    root.stepped(first)?;
    loop {
        if root.outcome.is_some() {
            return root.end(engine).await;
        }
        if root.stop.is_none() && !root.waiting.is_empty() {
            root.call(engine, workflow).await?;
        } else if root.stop.is_none() && root.can_start_child() {
            root.start_children(engine).await?;
        } else if !root.live.is_empty() {
            root.await_child(engine, workflow).await?;
        } else if root.stop == Some(StopCause::Cancelled) {
            return root.cancel(engine).await;
        } else {
            root.pause(engine, workflow).await?;
        }
    }
}

struct DurableRun {
    context: Arc<RunContext>,
    budget: Budget,
    /// Events not yet published.
    events: Vec<RunEvent>,
    outcome: Option<Outcome>,
    waiting: Vec<RequestedEffect>,
    /// Children not yet started, in request order.
    queued: VecDeque<RequestedEffect>,
    live: BTreeMap<EffectId, RequestedEffect>,
    /// A pending question to a person.
    question: Option<RequestedEffect>,
    stop: Option<StopCause>,
    pauses: u32,
    /// Number of steps so far; part of each step's name.
    steps: u32,
    /// The span of the current stage.
    stage: ParentKey,
}

impl DurableRun {
    fn stepped(&mut self, step: Step) -> Result<(), EngineError> {
        let Step { perform, publish, outcome } = step;
        self.stage.follow(&publish);
        self.events.extend(publish);
        self.outcome = outcome.or_else(|| self.outcome.take());
        for effect in perform {
            let pending = RequestedEffect::new(effect)?;
            match &pending.effect {
                Effect::StartChild(_) => self.queued.push_back(pending),
                Effect::AskPerson(_) => self.question = Some(pending),
                Effect::CallModel(_)
                | Effect::Execute(_)
                | Effect::Gather(_)
                | Effect::Draft(_) => {
                    self.waiting.push(pending);
                }
            }
        }
        Ok(())
    }

    /// Resumes the workflow with the results of these effects.
    async fn deliver(
        &mut self,
        workflow: &mut (dyn Workflow + Send),
        pending: &[RequestedEffect],
    ) -> Result<(), EngineError> {
        for (id, result) in self.context.results_of(pending).await? {
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
        let pending = self.waiting.clone();
        let name = pending.first().map(|first| first.id.to_string()).unwrap_or_default();
        let batch = EffectBatch {
            context: Arc::clone(&self.context),
            name: name.clone(),
            effects: pending.clone(),
            events: std::mem::take(&mut self.events),
            budget: self.budget,
            span_above: self.stage.clone(),
        };
        if self.step(engine, &name, batch.into_work()).await? {
            self.waiting.clear();
            self.deliver(workflow, &pending).await?;
        }
        Ok(())
    }

    fn can_start_child(&self) -> bool {
        !self.queued.is_empty() && self.live.len() < self.context.parallel_children.max(1)
    }

    /// Starts as many children as the limit allows, after storing their requests.
    async fn start_children<D: DurableEngine>(&mut self, engine: &mut D) -> Result<(), D::Halt> {
        let mut calls = Vec::new();
        let mut requests = Vec::new();
        while self.can_start_child()
            && let Some(pending) = self.queued.pop_front()
        {
            if let Effect::StartChild(request) = &pending.effect {
                let bytes = serde_json::to_vec(request)
                    .map_err(|_| EngineError::Unreadable(pending.id.clone()))?;
                let (request, pauses) = (Sha256Hex::of(&bytes), self.pauses);
                let (id, budget) = (pending.id.clone(), self.budget);
                calls.push(ChildCall { id, request, pauses, budget });
                requests.push(bytes);
            }
            self.live.insert(pending.id.clone(), pending);
        }
        let (context, events) = (Arc::clone(&self.context), std::mem::take(&mut self.events));
        let work = async move {
            for request in requests {
                match context.store.keep_artifact(&context.run_id, &request).await {
                    Ok(_) => {}
                    Err(StoreError::RunEnded { .. }) => {
                        return Ok(StepRecord::Stopped(StopCause::Cancelled));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            publish(&context, event_commit(events, None)).await
        };
        if self.step(engine, "children", Box::pin(work)).await? {
            for call in calls {
                engine.start_child(call);
            }
        } else {
            for call in calls.into_iter().rev() {
                if let Some(pending) = self.live.remove(&call.id) {
                    self.queued.push_front(pending);
                }
            }
        }
        Ok(())
    }

    async fn await_child<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        workflow: &mut (dyn Workflow + Send),
    ) -> Result<(), D::Halt> {
        if !self.events.is_empty() {
            let (context, events) = (Arc::clone(&self.context), std::mem::take(&mut self.events));
            let work = async move { publish(&context, event_commit(events, None)).await };
            self.step(engine, "events", Box::pin(work)).await?;
        }
        let (id, exit) = engine.next_child_exit().await?;
        let Some(pending) = self.live.remove(&id) else { return Ok(()) };
        match exit {
            ChildExit::Ended => self.deliver(workflow, &[pending]).await?,
            ChildExit::Broken(why) => {
                // The other children are still useful: record this one as failed and continue.
                if self.fail_child(engine, &pending, why).await? {
                    self.deliver(workflow, &[pending]).await?;
                }
            }
            ChildExit::Stopped(stop) => {
                self.queued.push_front(pending);
                // A cancellation takes precedence over any other stop.
                if self.stop != Some(StopCause::Cancelled) {
                    self.stop = Some(stop);
                }
            }
        }
        Ok(())
    }

    async fn fail_child<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        pending: &RequestedEffect,
        why: String,
    ) -> Result<bool, D::Halt> {
        let outcome = failed_outcome(&pending.id, "debate.broken", why);
        let end = ChildEnd { outcome, isolation: ChildIsolation::none(None) };
        let entry = entry_of(pending.request_sha256, end);
        let commit =
            RunCommit { results: vec![(pending.id.clone(), entry)], ..RunCommit::default() };
        let context = Arc::clone(&self.context);
        let work = async move { publish(&context, commit).await };
        self.step(engine, "broken", Box::pin(work)).await
    }

    /// Pauses until the run is resumed.
    async fn pause<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        workflow: &mut (dyn Workflow + Send),
    ) -> Result<(), D::Halt> {
        let (reason, detail) = match (self.stop.take(), &self.question) {
            (Some(StopCause::Budget(detail)), _) => (PauseReason::Budget, detail),
            (Some(StopCause::Failure(detail)), _) => (PauseReason::Failure, detail),
            (Some(_), _) => (PauseReason::Person, "paused on request".to_owned()),
            (None, Some(RequestedEffect { effect: Effect::AskPerson(question), .. })) => {
                (PauseReason::Question, question.describe())
            }
            (None, _) => return Err(EngineError::Stalled.into()),
        };
        self.pauses += 1;
        let mut events = std::mem::take(&mut self.events);
        let number = self.pauses;
        let answers_question = reason == PauseReason::Question;
        events.push(RunEvent::of_run(RunEventBody::RunPaused { number, reason, detail }));
        let context = Arc::clone(&self.context);
        let work = async move { publish_pause(&context, events).await };
        if !self.step(engine, "pause", Box::pin(work)).await? {
            return Ok(());
        }
        let more = engine.wait_for_resume(number).await?;
        self.budget = Budget {
            usd: more.usd.or(self.budget.usd),
            tokens: more.tokens.or(self.budget.tokens),
        };
        let question = if answers_question { self.question.take() } else { None };
        let (context, pending) = (Arc::clone(&self.context), question.clone());
        let work = async move { prepare_resume(&context, pending).await };
        match (self.step(engine, "go on", Box::pin(work)).await?, question) {
            (true, Some(question)) => self.deliver(workflow, &[question]).await?,
            (false, question) => self.question = question,
            (true, None) => {}
        }
        Ok(())
    }

    async fn cancel<D: DurableEngine>(mut self, engine: &mut D) -> Result<DurableRunExit, D::Halt> {
        let mut events = std::mem::take(&mut self.events);
        events.push(RunEvent::of_run(RunEventBody::RunCancelled));
        let context = Arc::clone(&self.context);
        let work = async move { publish_end(&context, event_commit(events, None)).await };
        self.step(engine, "cancelled", Box::pin(work)).await?;
        Ok(DurableRunExit::Cancelled)
    }

    async fn end<D: DurableEngine>(mut self, engine: &mut D) -> Result<DurableRunExit, D::Halt> {
        let (events, outcome) = (std::mem::take(&mut self.events), self.outcome.take());
        let context = Arc::clone(&self.context);
        let work = async move { publish_end(&context, event_commit(events, outcome)).await };
        match self.step(engine, "end", Box::pin(work)).await? {
            true => Ok(DurableRunExit::Done),
            false => Ok(DurableRunExit::Cancelled),
        }
    }
}

async fn publish(context: &RunContext, commit: RunCommit) -> Result<StepRecord, EngineError> {
    Ok(context.write(commit).await?.map_or(StepRecord::Done, StepRecord::Stopped))
}

/// Publishes the end of the run, then writes the spans that last until then.
async fn publish_end(context: &RunContext, commit: RunCommit) -> Result<StepRecord, EngineError> {
    let record = publish(context, commit).await?;
    write_run_spans(&*context.store, &context.run_id).await;
    Ok(record)
}

/// Publishes the pause, then checks for a cancel request. A client that requests cancellation after
/// this check finds a paused run and resumes it, so the request takes effect.
async fn publish_pause(
    context: &RunContext,
    events: Vec<RunEvent>,
) -> Result<StepRecord, EngineError> {
    let record = publish(context, event_commit(events, None)).await?;
    match context.store.control_requests(&context.run_id).await?.contains(&ControlRequest::Cancel) {
        true => Ok(StepRecord::Stopped(StopCause::Cancelled)),
        false => Ok(record),
    }
}

/// Prepares a paused run to continue: answers the open question and clears the pause request.
/// Resuming without changes accepts the moves unchanged.
async fn prepare_resume(
    context: &RunContext,
    question: Option<RequestedEffect>,
) -> Result<StepRecord, EngineError> {
    let (store, run_id) = (&context.store, &context.run_id);
    if store.control_requests(run_id).await?.contains(&ControlRequest::Cancel) {
        return Ok(StepRecord::Stopped(StopCause::Cancelled));
    }
    store.clear_control(run_id, ControlRequest::Pause).await?;
    let running = RunCommit { state: Some(RunState::Running), ..RunCommit::default() };
    let Some(RequestedEffect { id, request_sha256, .. }) = question else {
        return publish(context, running).await;
    };
    let changes = store.changes(run_id).await?;
    let entry = person_entry(request_sha256, MoveReview { changes });
    publish(context, RunCommit { results: vec![(id, entry)], ..running }).await
}
