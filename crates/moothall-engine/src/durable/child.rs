//! Drives a child to its end on any worker.

use std::sync::Arc;

use moothall_core::child::{ChildEnd, ChildIsolation, ChildRequest};
use moothall_core::guest::GuestStateMachine;
use moothall_core::{EffectId, Outcome, RunEvent, Step, Workflow as _};
use moothall_store::{RunCommit, StoreError};

use super::effect_batch::{EffectBatch, RunContext, event_commit};
use super::engine::{ChildCall, ChildExit, DurableEngine, StepRecord, StopCause};
use super::guest_lease::GuestLease;
use crate::children::{build, entry_of, failed_outcome};
use crate::error::EngineError;
use crate::guests::{GuestFailurePolicy, IsolationMode};
use crate::requested_effect::RequestedEffect;
use crate::run_trace::ParentKey;

/// Drives a child. Its end is journaled as the result of its effect, where the parent reads it.
pub async fn drive_child<D: DurableEngine>(
    engine: &mut D,
    context: &Arc<RunContext>,
    call: &ChildCall,
) -> Result<ChildExit, D::Halt> {
    let request = read(context, call).await?;
    let mut child = DurableChild {
        context: Arc::clone(context),
        call: call.clone(),
        guest_lease: GuestLease::new(context, &call.id, &request).map(Arc::new),
        events: Vec::new(),
        unisolated_reason: None,
    };
    let exit = match build(&request) {
        Ok(mut machine) => child.drive(engine, &mut machine).await?,
        Err(error) => {
            // Nothing ran, so there is no isolation to report.
            child.guest_lease = None;
            Ok(failed_outcome(&call.id, "debate.invalid", error.to_string()))
        }
    };
    match exit {
        Ok(outcome) => child.end(engine, &request, outcome).await,
        Err(stop) => Ok(ChildExit::Stopped(stop)),
    }
}

/// Reads the child's request. It is stored under its hash, so it is the same on every replay.
async fn read(context: &RunContext, call: &ChildCall) -> Result<ChildRequest, EngineError> {
    let stored = context.store.artifact(&context.run_id, &call.request).await?;
    let request = serde_json::from_slice(&stored.unwrap_or_default());
    request.map_err(|_| EngineError::Unreadable(call.id.clone()))
}

struct DurableChild {
    context: Arc<RunContext>,
    call: ChildCall,
    guest_lease: Option<Arc<GuestLease>>,
    /// Events not yet published.
    events: Vec<RunEvent>,
    /// Why part of the child ran without isolation.
    unisolated_reason: Option<String>,
}

impl DurableChild {
    async fn drive<D: DurableEngine>(
        &mut self,
        engine: &mut D,
        machine: &mut GuestStateMachine,
    ) -> Result<Result<Outcome, StopCause>, D::Halt> {
        let mut steps = vec![machine.start()];
        loop {
            let mut pending = Vec::new();
            for Step { perform, publish, outcome } in steps {
                self.events.extend(publish);
                if let Some(outcome) = outcome {
                    return Ok(Ok(outcome));
                }
                for effect in perform {
                    pending.push(RequestedEffect::new(effect)?);
                }
            }
            let Some(first) = pending.first() else { return Err(EngineError::Stalled.into()) };
            let batch = self.make_batch(first.id.to_string(), pending.clone());
            match self.step(engine, batch).await? {
                StepRecord::Done => {}
                StepRecord::WithoutWalls(why) => self.unisolated_reason = Some(why),
                StepRecord::NoRoom(why) => {
                    self.unisolated_reason = Some(why.clone());
                    return Ok(Ok(failed_outcome(&self.call.id, "debate.no-sandbox", why)));
                }
                StepRecord::Stopped(stop) => return Ok(Err(stop)),
            }
            steps = Vec::new();
            for (id, result) in self.context.results_of(&pending).await? {
                if let Some(guest_lease) = &self.guest_lease {
                    guest_lease.deliver(&id, &result);
                }
                steps.push(machine.resume(&id, result).map_err(EngineError::from)?);
            }
        }
    }

    fn make_batch(&mut self, name: String, effects: Vec<RequestedEffect>) -> EffectBatch {
        let (context, budget) = (Arc::clone(&self.context), self.call.budget);
        let (events, span_above) =
            (std::mem::take(&mut self.events), ParentKey::of_child(&self.call.id));
        EffectBatch { context, name, effects, events, budget, span_above }
    }

    /// Effects are performed only after the guest has requested them too.
    async fn step<D: DurableEngine>(
        &self,
        engine: &mut D,
        batch: EffectBatch,
    ) -> Result<StepRecord, D::Halt> {
        let name = batch.name.clone();
        let Some(guest_lease) =
            self.guest_lease.clone().filter(|_| self.unisolated_reason.is_none())
        else {
            return engine.step(name, batch.into_work()).await;
        };
        let requires_isolation = self.requires_isolation();
        let work = async move {
            let Err(unavailable) = guest_lease.wait_confirmed().await else {
                return batch.perform().await;
            };
            let why = unavailable.reason().to_owned();
            if requires_isolation {
                return Ok(StepRecord::NoRoom(why));
            }
            Ok(match batch.perform().await? {
                StepRecord::Done => StepRecord::WithoutWalls(why),
                record => record,
            })
        };
        engine.step(name, Box::pin(work)).await
    }

    fn requires_isolation(&self) -> bool {
        matches!(
            self.context.isolation,
            IsolationMode::Guests { on_failure: GuestFailurePolicy::Fail, .. }
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
        let requires_isolation = self.requires_isolation();
        let Self { context, call: ChildCall { id, .. }, guest_lease, events, unisolated_reason } =
            self;
        let work = async move {
            let (outcome, isolation) = match (guest_lease, unisolated_reason) {
                (Some(guest_lease), None) => {
                    finish_guest(&guest_lease, &id, outcome, requires_isolation).await
                }
                (_, why) => (outcome, ChildIsolation::none(why)),
            };
            let entry = entry_of(request_sha256, ChildEnd { outcome, isolation });
            let happened = event_commit(events, None);
            let commit = RunCommit { results: vec![(id, entry)], ..happened.clone() };
            let written = match context.write(commit).await {
                // A worker that was presumed dead journaled the same end from another guest.
                Err(EngineError::Store(StoreError::JournalConflict { .. })) => {
                    context.write(happened).await?
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
async fn finish_guest(
    guest_lease: &GuestLease,
    id: &EffectId,
    outcome: Outcome,
    requires_isolation: bool,
) -> (Outcome, ChildIsolation) {
    match guest_lease.finish().await {
        Ok(isolation) => (outcome, isolation),
        Err(unavailable) => {
            let why = unavailable.reason().to_owned();
            let isolation = ChildIsolation::none(Some(why.clone()));
            match requires_isolation {
                true => (failed_outcome(id, "debate.no-sandbox", why), isolation),
                false => (outcome, isolation),
            }
        }
    }
}
