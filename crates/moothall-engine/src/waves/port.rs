//! What an engine gives.

use std::pin::Pin;

use moothall_core::{EffectId, Sha256Hex};
use moothall_models::Budget;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// An engine, as one machine (a workflow or one of its children) uses it.
///
/// Every method takes `&mut self` and is awaited to its end: two steps at once cannot be written.
/// An engine that replays numbers what it is asked, and steps that race have no numbers.
pub trait Durable: Send {
    /// Why the engine stops driving: it will go on later, here or elsewhere, or never.
    type Halt: From<EngineError> + Send;

    /// Does the work, unless it was done before: then only what was noted is returned. Work that was
    /// under way when its worker died is done again.
    fn step(
        &mut self,
        name: String,
        work: Work,
    ) -> impl Future<Output = Result<Noted, Self::Halt>> + Send;

    /// Starts a child somewhere. To start the same call twice is to start it once.
    fn start_child(&mut self, call: ChildCall);

    /// Waits for a child that was started and says which one let go, and how.
    fn child_left(
        &mut self,
    ) -> impl Future<Output = Result<(EffectId, ChildLeft), Self::Halt>> + Send;

    /// Waits until somebody lets the run go on after this pause, counted from 1, and says with which
    /// budget; what is absent stays as it was.
    fn gone_on(&mut self, pause: u32) -> impl Future<Output = Result<Budget, Self::Halt>> + Send;
}

/// What is done in a step.
pub type Work = Pin<Box<dyn Future<Output = Result<Noted, EngineError>> + Send>>;

/// What an engine remembers of a step. Answers are in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noted {
    /// Everything is done.
    Done,
    /// Everything is done, but without walls, for this reason.
    WithoutWalls(String),
    /// Nothing is done: there are no walls, for this reason, and without them nothing may be.
    NoRoom(String),
    /// Something is not done.
    Stopped(Stop),
}

/// Why a machine stops before its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// Somebody cancelled the run.
    Cancelled,
    /// Somebody asked for a pause.
    Person,
    /// The budget is used up, in these words.
    Budget(String),
    /// The provider refuses the key or the account behind it, in these words.
    Failure(String),
}

/// A child as it is asked for on another machine: by reference, because what it starts with is
/// large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildCall {
    /// The effect that it is.
    pub id: EffectId,
    /// The artefact of the run that holds its request.
    pub request: Sha256Hex,
    /// How often the run has paused: a child that stopped is started anew.
    pub pauses: u32,
    /// The budget of the whole run, as it stands now.
    pub budget: Budget,
}

/// How a child let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildLeft {
    /// It came to its end, which is in the store as the answer to its effect.
    Ended,
    /// It stopped.
    Stopped(Stop),
    /// It cannot go on, in these words.
    Broken(String),
}
