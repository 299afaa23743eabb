//! Drives a child to its end on any worker.

use std::sync::Arc;

use moothall_core::child::{ChildEnd, ChildIsolation, ChildRequest};
use moothall_core::guest::GuestStateMachine;
use moothall_core::{EffectId, Outcome, RunEvent, Step, Workflow as _};
use moothall_store::{RunCommit, StoreError};

use super::effect_batch::{CallRequest, EffectBatch, RunContext, what_happened};
use super::engine::{ChildCall, ChildExit, DurableEngine, StepRecord, StopCause};
use super::guest_lease::GuestLease;
use crate::children::{build, entry_of, not_tried};
use crate::error::EngineError;
use crate::guests::{GuestFailurePolicy, IsolationMode};

/// Drives a child. Its end is journaled as the result of its effect, where the parent reads it.
pub async fn drive_child<D: DurableEngine>(
    engine: &mut D,
    stage: &Arc<RunContext>,
    call: &ChildCall,
) -> Result<ChildExit, D::Halt> {
    let request = read(stage, call).await?;
    let mut child = DurableChild {
        stage: Arc::clone(stage),
        call: call.clone(),
        keeper: GuestLease::new(stage, &call.id, &request).map(Arc::new),
        events: Vec::new(),
        without_walls: None,
    };
    let left = match build(&request) {
        Ok(mut machine) => child.drive(engine, &mut machine).await?,
        Err(error) => {
            // Nothing ran, so there is no isolation to report.
            child.keeper = None;
            Ok(not_tried(&call.id, "debate.invalid", error.to_string()))
        }
    };
    match left {
        Ok(outcome) => child.end(engine, &request, outcome).await,
        Err(stop) => Ok(ChildExit::Stopped(stop)),
    }
}

/// Reads the child's request. It is stored under its hash, so it is the same on every replay.
async fn read(stage: &RunContext, call: &ChildCall) -> Result<ChildRequest, EngineError> {
    let kept = stage.store.artifact(&stage.run_id, &call.request).await?;
    let request = serde_json::from_slice(&kept.unwrap_or_default());
    request.map_err(|_| EngineError::Unreadable(call.id.clone()))
}

struct DurableChild {
    stage: Arc<RunContext>,
    call: ChildCall,
    keeper: Option<Arc<GuestLease>>,
    /// Events not yet published.
    events: Vec<RunEvent>,
    /// Why part of the child ran without isolation.
    without_walls: Option<String>,
}

impl DurableChild {
    async fn drive<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        machine: &mut GuestStateMachine,
    ) -> Result<Result<Outcome, StopCause>, D::Halt> {
        let mut steps = vec![machine.start()];
        loop {
            let mut asked = Vec::new();
            for Step { perform, publish, outcome } in steps {
                self.events.extend(publish);
                if let Some(outcome) = outcome {
                    return Ok(Ok(outcome));
                }
                for effect in perform {
                    asked.push(CallRequest::new(effect)?);
                }
            }
            let Some(first) = asked.first() else { return Err(EngineError::Stalled.into()) };
            let wave = self.wave(first.id.to_string(), asked.clone());
            match self.step(engine, wave).await? {
                StepRecord::Done => {}
                StepRecord::WithoutWalls(why) => self.without_walls = Some(why),
                StepRecord::NoRoom(why) => {
                    self.without_walls = Some(why.clone());
                    return Ok(Ok(not_tried(&self.call.id, "debate.no-sandbox", why)));
                }
                StepRecord::Stopped(stop) => return Ok(Err(stop)),
            }
            steps = Vec::new();
            for (id, result) in self.stage.told(&asked).await? {
                if let Some(keeper) = &self.keeper {
                    keeper.tell(&id, &result);
                }
                steps.push(machine.resume(&id, result).map_err(EngineError::from)?);
            }
        }
    }

    fn wave(&mut self, name: String, effects: Vec<CallRequest>) -> EffectBatch {
        let (stage, budget) = (Arc::clone(&self.stage), self.call.budget);
        EffectBatch { stage, name, effects, events: std::mem::take(&mut self.events), budget }
    }

    /// Effects are performed only after the guest has requested them too.
    async fn step<D: DurableEngine>(
        &self,
        engine: &mut D,
        wave: EffectBatch,
    ) -> Result<StepRecord, D::Halt> {
        let name = wave.name.clone();
        let Some(keeper) = self.keeper.clone().filter(|_| self.without_walls.is_none()) else {
            return engine.step(name, wave.into_work()).await;
        };
        let must_have_walls = self.must_have_walls();
        let work = async move {
            let Err(no_room) = keeper.agree().await else { return wave.perform().await };
            let why = no_room.words().to_owned();
            if must_have_walls {
                return Ok(StepRecord::NoRoom(why));
            }
            Ok(match wave.perform().await? {
                StepRecord::Done => StepRecord::WithoutWalls(why),
                noted => noted,
            })
        };
        engine.step(name, Box::pin(work)).await
    }

    fn must_have_walls(&self) -> bool {
        matches!(
            self.stage.walls,
            IsolationMode::Rooms { on_failure: GuestFailurePolicy::Fail, .. }
        )
    }

    async fn end<D: DurableEngine>(
        self,
        engine: &mut D,
        request: &ChildRequest,
        outcome: Outcome,
    ) -> Result<ChildExit, D::Halt> {
        let request_sha256 = request.hash().map_err(EngineError::from)?;
        let name = format!("{}/end", self.call.id);
        let must_have_walls = self.must_have_walls();
        let Self { stage, call: ChildCall { id, .. }, keeper, events, without_walls } = self;
        let work = async move {
            let (outcome, isolation) = match (keeper, without_walls) {
                (Some(keeper), None) => leave(&keeper, &id, outcome, must_have_walls).await,
                (_, why) => (outcome, ChildIsolation::none(why)),
            };
            let entry = entry_of(request_sha256, ChildEnd { outcome, isolation });
            let happened = what_happened(events, None);
            let commit = RunCommit { results: vec![(id, entry)], ..happened.clone() };
            let written = match stage.write(commit).await {
                // A worker that was presumed dead journaled the same end from another guest.
                Err(EngineError::Store(StoreError::JournalConflict { .. })) => {
                    stage.write(happened).await?
                }
                written => written?,
            };
            Ok(written.map_or(StepRecord::Done, StepRecord::Stopped))
        };
        match engine.step(name, Box::pin(work)).await? {
            StepRecord::Stopped(stop) => Ok(ChildExit::Stopped(stop)),
            StepRecord::Done | StepRecord::WithoutWalls(_) | StepRecord::NoRoom(_) => {
                Ok(ChildExit::Ended)
            }
        }
    }
}

/// The outcome and isolation of a child after its guest has finished.
async fn leave(
    keeper: &GuestLease,
    id: &EffectId,
    outcome: Outcome,
    must_have_walls: bool,
) -> (Outcome, ChildIsolation) {
    match keeper.leave().await {
        Ok(isolation) => (outcome, isolation),
        Err(no_room) => {
            let why = no_room.words().to_owned();
            let isolation = ChildIsolation::none(Some(why.clone()));
            match must_have_walls {
                true => (not_tried(id, "debate.no-sandbox", why), isolation),
                false => (outcome, isolation),
            }
        }
    }
}
