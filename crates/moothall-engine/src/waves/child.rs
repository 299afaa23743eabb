//! A child, driven to its end on whichever worker has it.

use std::sync::Arc;

use moothall_core::child::{ChildEnd, ChildRequest, Isolation};
use moothall_core::guest::GuestMachine;
use moothall_core::{EffectId, Outcome, RunEvent, Step, Workflow as _};
use moothall_store::{Commit, StoreError};

use super::port::{ChildCall, ChildLeft, Durable, Noted, Stop};
use super::room::Keeper;
use super::wave::{Asked, Stage, Wave, what_happened};
use crate::children::{build, entry_of, not_tried};
use crate::error::EngineError;
use crate::rooms::{OnFailure, Walls};

/// Drives a child. Its end is written as the answer to its effect, so that whoever started it finds
/// it in the store.
pub async fn drive_child<D: Durable>(
    engine: &mut D,
    stage: &Arc<Stage>,
    call: &ChildCall,
) -> Result<ChildLeft, D::Halt> {
    let request = read(stage, call).await?;
    let mut child = Child {
        stage: Arc::clone(stage),
        call: call.clone(),
        keeper: Keeper::new(stage, &call.id, &request).map(Arc::new),
        events: Vec::new(),
        without_walls: None,
    };
    let left = match build(&request) {
        Ok(mut machine) => child.drive(engine, &mut machine).await?,
        Err(error) => {
            // Nothing ran, so there is nothing to say about walls.
            child.keeper = None;
            Ok(not_tried(&call.id, "debate.invalid", error.to_string()))
        }
    };
    match left {
        Ok(outcome) => child.end(engine, &request, outcome).await,
        Err(stop) => Ok(ChildLeft::Stopped(stop)),
    }
}

/// What a child starts with. It is kept under its hash, so it is the same on every replay.
async fn read(stage: &Stage, call: &ChildCall) -> Result<ChildRequest, EngineError> {
    let kept = stage.store.artifact(&stage.run_id, &call.request).await?;
    let request = serde_json::from_slice(&kept.unwrap_or_default());
    request.map_err(|_| EngineError::Unreadable(call.id.clone()))
}

struct Child {
    stage: Arc<Stage>,
    call: ChildCall,
    keeper: Option<Arc<Keeper>>,
    /// What happened and is not published yet.
    events: Vec<RunEvent>,
    /// Why a part of it ran without walls.
    without_walls: Option<String>,
}

impl Child {
    async fn drive<D: Durable>(
        &mut self,
        engine: &mut D,
        machine: &mut GuestMachine,
    ) -> Result<Result<Outcome, Stop>, D::Halt> {
        let mut steps = vec![machine.start()];
        loop {
            let mut asked = Vec::new();
            for Step { perform, publish, outcome } in steps {
                self.events.extend(publish);
                if let Some(outcome) = outcome {
                    return Ok(Ok(outcome));
                }
                for effect in perform {
                    asked.push(Asked::new(effect)?);
                }
            }
            let Some(first) = asked.first() else { return Err(EngineError::Stalled.into()) };
            let wave = self.wave(first.id.to_string(), asked.clone());
            match self.step(engine, wave).await? {
                Noted::Done => {}
                Noted::WithoutWalls(why) => self.without_walls = Some(why),
                Noted::NoRoom(why) => {
                    self.without_walls = Some(why.clone());
                    return Ok(Ok(not_tried(&self.call.id, "debate.no-sandbox", why)));
                }
                Noted::Stopped(stop) => return Ok(Err(stop)),
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

    fn wave(&mut self, name: String, effects: Vec<Asked>) -> Wave {
        let (stage, budget) = (Arc::clone(&self.stage), self.call.budget);
        Wave { stage, name, effects, events: std::mem::take(&mut self.events), budget }
    }

    /// What is asked for is performed only after the room has asked for it too.
    async fn step<D: Durable>(&self, engine: &mut D, wave: Wave) -> Result<Noted, D::Halt> {
        let name = wave.name.clone();
        let Some(keeper) = self.keeper.clone().filter(|_| self.without_walls.is_none()) else {
            return engine.step(name, wave.into_work()).await;
        };
        let must_have_walls = self.must_have_walls();
        let work = async move {
            let Err(no_room) = keeper.agree().await else { return wave.perform().await };
            let why = no_room.words().to_owned();
            if must_have_walls {
                return Ok(Noted::NoRoom(why));
            }
            Ok(match wave.perform().await? {
                Noted::Done => Noted::WithoutWalls(why),
                noted => noted,
            })
        };
        engine.step(name, Box::pin(work)).await
    }

    fn must_have_walls(&self) -> bool {
        matches!(self.stage.walls, Walls::Rooms { on_failure: OnFailure::Fail, .. })
    }

    async fn end<D: Durable>(
        self,
        engine: &mut D,
        request: &ChildRequest,
        outcome: Outcome,
    ) -> Result<ChildLeft, D::Halt> {
        let request_sha256 = request.hash().map_err(EngineError::from)?;
        let name = format!("{}/end", self.call.id);
        let must_have_walls = self.must_have_walls();
        let Self { stage, call: ChildCall { id, .. }, keeper, events, without_walls } = self;
        let work = async move {
            let (outcome, isolation) = match (keeper, without_walls) {
                (Some(keeper), None) => leave(&keeper, &id, outcome, must_have_walls).await,
                (_, why) => (outcome, Isolation::none(why)),
            };
            let entry = entry_of(request_sha256, ChildEnd { outcome, isolation });
            let happened = what_happened(events, None);
            let commit = Commit { results: vec![(id, entry)], ..happened.clone() };
            let written = match stage.write(commit).await {
                // Somebody who was taken for dead came to the same end, in another room.
                Err(EngineError::Store(StoreError::JournalConflict { .. })) => {
                    stage.write(happened).await?
                }
                written => written?,
            };
            Ok(written.map_or(Noted::Done, Noted::Stopped))
        };
        match engine.step(name, Box::pin(work)).await? {
            Noted::Stopped(stop) => Ok(ChildLeft::Stopped(stop)),
            Noted::Done | Noted::WithoutWalls(_) | Noted::NoRoom(_) => Ok(ChildLeft::Ended),
        }
    }
}

/// The end of a child as its room saw it.
async fn leave(
    keeper: &Keeper,
    id: &EffectId,
    outcome: Outcome,
    must_have_walls: bool,
) -> (Outcome, Isolation) {
    match keeper.leave().await {
        Ok(isolation) => (outcome, isolation),
        Err(no_room) => {
            let why = no_room.words().to_owned();
            let isolation = Isolation::none(Some(why.clone()));
            match must_have_walls {
                true => (not_tried(id, "debate.no-sandbox", why), isolation),
                false => (outcome, isolation),
            }
        }
    }
}
