//! The interface to a durable execution engine.

use std::pin::Pin;

use moothall_core::{EffectId, Sha256Hex};
use moothall_models::Budget;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// A durable execution engine as seen by one machine (a workflow or a child).
///
/// Every method takes `&mut self` and is awaited to completion, so steps cannot run concurrently. A
/// replaying engine numbers its steps, which requires a fixed order.
pub trait DurableEngine: Send {
    /// Why the engine stops driving. It may continue later, here or elsewhere, or never.
    type Halt: From<EngineError> + Send;

    /// Performs the work, or returns the recorded outcome if it was done before. Work in progress
    /// on a worker that dies is performed again.
    fn step(
        &mut self,
        name: String,
        work: Work,
    ) -> impl Future<Output = Result<StepRecord, Self::Halt>> + Send;

    /// Starts a child on any worker. Idempotent for the same call.
    fn start_child(&mut self, call: ChildCall);

    /// Waits for the next started child to finish or stop.
    fn next_child_exit(
        &mut self,
    ) -> impl Future<Output = Result<(EffectId, ChildExit), Self::Halt>> + Send;

    /// Waits until the run is resumed after this pause (numbered from 1) and returns the new
    /// budget. Absent limits stay unchanged.
    fn wait_for_resume(
        &mut self,
        pause: u32,
    ) -> impl Future<Output = Result<Budget, Self::Halt>> + Send;
}

/// The work of one step.
pub type Work = Pin<Box<dyn Future<Output = Result<StepRecord, EngineError>> + Send>>;

/// What the engine records about a step. The results are in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepRecord {
    /// All effects are done.
    Done,
    /// All effects are done, but without isolation, for this reason.
    WithoutWalls(String),
    /// Nothing is done: isolation is required and unavailable, for this reason.
    NoRoom(String),
    /// Some effects are not done.
    Stopped(StopCause),
}

/// Why a machine stopped early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// The run was cancelled.
    Cancelled,
    /// A person requested a pause.
    Person,
    /// The budget is used up; contains the detail text.
    Budget(String),
    /// A provider gives no answer; contains the detail text.
    Failure(String),
}

/// A request to start a child on another machine. The input is passed by reference because it is
/// large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildCall {
    /// The effect that starts the child.
    pub id: EffectId,
    /// Hash of the run's artifact that holds the request.
    pub request: Sha256Hex,
    /// Number of pauses of the run so far. Part of the key, because a stopped child is started anew
    /// after a pause.
    pub pauses: u32,
    /// The current budget of the whole run.
    pub budget: Budget,
}

/// How a child finished or stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildExit {
    /// It finished; its end is in the store as the result of its effect.
    Ended,
    /// It stopped early.
    Stopped(StopCause),
    /// It cannot continue, for this reason.
    Broken(String),
}
