//! The workflow of a run: its own effects in waves, its children wherever there is a worker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use moothall_core::child::{ChildEnd, Isolation};
use moothall_core::consult::Review;
use moothall_core::receipt::Timing;
use moothall_core::{
    Effect, EffectId, EffectResult, Outcome, PauseReason, RunEvent, RunEventBody, Sha256Hex, Step,
    Workflow,
};
use moothall_models::Budget;
use moothall_store::{Commit, JournalEntry, RunState, StoreError, Wish};

use super::port::{ChildCall, ChildLeft, Durable, Noted, Stop, Work};
use super::wave::{Asked, Stage, Wave, what_happened};
use crate::children::{entry_of, not_tried};
use crate::error::EngineError;

/// Where a run stands when its engine is done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunLeft {
    /// The workflow came to its outcome.
    Done,
    /// Somebody cancelled the run.
    Cancelled,
}

/// Drives a run to its end. Where it must stand still it waits, for as long as it takes.
pub async fn drive_run<D: Durable>(
    engine: &mut D,
    stage: &Arc<Stage>,
    workflow: &mut (dyn Workflow + Send),
) -> Result<RunLeft, D::Halt> {
    let mut root = Root {
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
        } else if root.stop == Some(Stop::Cancelled) {
            return root.cancel(engine).await;
        } else {
            root.pause(engine, workflow).await?;
        }
    }
}

struct Root {
    stage: Arc<Stage>,
    budget: Budget,
    /// What happened and is not published yet.
    events: Vec<RunEvent>,
    outcome: Option<Outcome>,
    waiting: Vec<Asked>,
    /// Children that are not started, in the order in which they were asked for.
    wanted: VecDeque<Asked>,
    live: BTreeMap<EffectId, Asked>,
    /// A question that only a person can answer.
    question: Option<Asked>,
    stop: Option<Stop>,
    pauses: u32,
    /// Steps so far, which name them.
    steps: u32,
}

impl Root {
    fn stepped(&mut self, step: Step) -> Result<(), EngineError> {
        let Step { perform, publish, outcome } = step;
        self.events.extend(publish);
        self.outcome = outcome.or_else(|| self.outcome.take());
        for effect in perform {
            let asked = Asked::new(effect)?;
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

    /// Tells the workflow what was answered.
    async fn tell(
        &mut self,
        workflow: &mut (dyn Workflow + Send),
        asked: &[Asked],
    ) -> Result<(), EngineError> {
        for (id, result) in self.stage.told(asked).await? {
            let step = workflow.resume(&id, result)?;
            self.stepped(step)?;
        }
        Ok(())
    }

    /// Makes a step; why it could not be made is remembered.
    async fn step<D: Durable>(
        &mut self,
        engine: &mut D,
        what: &str,
        work: Work,
    ) -> Result<bool, D::Halt> {
        self.steps += 1;
        match engine.step(format!("{} {what}", self.steps), work).await? {
            Noted::Stopped(stop) => {
                self.stop = Some(stop);
                Ok(false)
            }
            Noted::Done | Noted::WithoutWalls(_) | Noted::NoRoom(_) => Ok(true),
        }
    }

    async fn call<D: Durable>(
        &mut self,
        engine: &mut D,
        workflow: &mut (dyn Workflow + Send),
    ) -> Result<(), D::Halt> {
        let asked = self.waiting.clone();
        let name = asked.first().map(|first| first.id.to_string()).unwrap_or_default();
        let wave = Wave {
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

    /// Starts as many children as there is room for. What they start with is kept first.
    async fn start_children<D: Durable>(&mut self, engine: &mut D) -> Result<(), D::Halt> {
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
                        return Ok(Noted::Stopped(Stop::Cancelled));
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

    async fn hear_of_child<D: Durable>(
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
            ChildLeft::Ended => self.tell(workflow, &[asked]).await?,
            ChildLeft::Broken(why) => {
                // The others are worth hearing: the run goes on without it, and says so.
                if self.give_up(engine, &asked, why).await? {
                    self.tell(workflow, &[asked]).await?;
                }
            }
            ChildLeft::Stopped(stop) => {
                self.wanted.push_front(asked);
                // Whoever cancels has the last word.
                if self.stop != Some(Stop::Cancelled) {
                    self.stop = Some(stop);
                }
            }
        }
        Ok(())
    }

    async fn give_up<D: Durable>(
        &mut self,
        engine: &mut D,
        asked: &Asked,
        why: String,
    ) -> Result<bool, D::Halt> {
        let outcome = not_tried(&asked.id, "debate.broken", why);
        let end = ChildEnd { outcome, isolation: Isolation::none(None) };
        let entry = entry_of(asked.request_sha256, end);
        let commit = Commit { results: vec![(asked.id.clone(), entry)], ..Commit::default() };
        let stage = Arc::clone(&self.stage);
        let work = async move { publish(&stage, commit).await };
        self.step(engine, "broken", Box::pin(work)).await
    }

    /// Stands still until somebody lets the run go on.
    async fn pause<D: Durable>(
        &mut self,
        engine: &mut D,
        workflow: &mut (dyn Workflow + Send),
    ) -> Result<(), D::Halt> {
        let (reason, detail) = match (self.stop.take(), &self.question) {
            (Some(Stop::Budget(words)), _) => (PauseReason::Budget, words),
            (Some(Stop::Failure(words)), _) => (PauseReason::Failure, words),
            (Some(_), _) => (PauseReason::Person, "somebody asked for a pause".to_owned()),
            (None, Some(Asked { effect: Effect::AskPerson(question), .. })) => {
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

    async fn cancel<D: Durable>(mut self, engine: &mut D) -> Result<RunLeft, D::Halt> {
        let mut events = std::mem::take(&mut self.events);
        events.push(RunEvent::of_run(RunEventBody::RunCancelled));
        let stage = Arc::clone(&self.stage);
        let work = async move { publish(&stage, what_happened(events, None)).await };
        self.step(engine, "cancelled", Box::pin(work)).await?;
        Ok(RunLeft::Cancelled)
    }

    async fn end<D: Durable>(mut self, engine: &mut D) -> Result<RunLeft, D::Halt> {
        let (events, outcome) = (std::mem::take(&mut self.events), self.outcome.take());
        let stage = Arc::clone(&self.stage);
        let work = async move { publish(&stage, what_happened(events, outcome)).await };
        match self.step(engine, "end", Box::pin(work)).await? {
            true => Ok(RunLeft::Done),
            false => Ok(RunLeft::Cancelled),
        }
    }
}

async fn publish(stage: &Stage, commit: Commit) -> Result<Noted, EngineError> {
    Ok(stage.write(commit).await?.map_or(Noted::Done, Noted::Stopped))
}

/// Lets the run stand still, unless somebody wants its end. Whoever asks for that after this look
/// finds a run that stands still, and lets it go on to hear of it.
async fn stand_still(stage: &Stage, events: Vec<RunEvent>) -> Result<Noted, EngineError> {
    let noted = publish(stage, what_happened(events, None)).await?;
    match stage.store.wishes(&stage.run_id).await?.contains(&Wish::Cancel) {
        true => Ok(Noted::Stopped(Stop::Cancelled)),
        false => Ok(noted),
    }
}

/// What is to be done before a run goes on: a question has its answer, and nobody wants a pause any
/// more. Whoever lets it go on without a word lets the moves stand as they are.
async fn go_on(stage: &Stage, question: Option<Asked>) -> Result<Noted, EngineError> {
    let (store, run_id) = (&stage.store, &stage.run_id);
    if store.wishes(run_id).await?.contains(&Wish::Cancel) {
        return Ok(Noted::Stopped(Stop::Cancelled));
    }
    store.withdraw(run_id, Wish::Pause).await?;
    let running = Commit { state: Some(RunState::Running), ..Commit::default() };
    let Some(Asked { id, request_sha256, .. }) = question else {
        return publish(stage, running).await;
    };
    let changes = store.changes(run_id).await?;
    let result = EffectResult::PersonSaid(Box::new(Review { changes }));
    // The person took their time, but nobody waited for it.
    let timing = Timing { latency_ms: 0, tries: 1 };
    let entry = JournalEntry { request_sha256, result, timing };
    publish(stage, Commit { results: vec![(id, entry)], ..running }).await
}
