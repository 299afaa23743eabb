//! What a workflow wants from the world, and what it is told.
//!
//! Both are file formats: they stand in journals and receipts. Every variant has a snapshot in
//! `tests/it/formats.rs`.

use serde::{Deserialize, Serialize};

use crate::child::{ChildEnd, ChildRequest};
use crate::consult::{GatherFailure, GatherRequest, Question, Review};
use crate::edit::{DraftCall, DraftReply};
use crate::evidence::Evidence;
use crate::model::{ModelFailure, ModelReply, ModelRequest};
use crate::sandbox::{ExecuteRequest, Execution, SandboxFailure};
use crate::{NotCanonical, Sha256Hex};

/// One wish of a workflow that touches the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Ask a model.
    CallModel(Box<ModelRequest>),
    /// Run a program in a sandbox that nobody used before.
    Execute(Box<ExecuteRequest>),
    /// Gather evidence about a company.
    Gather(Box<GatherRequest>),
    /// Start a workflow inside this one. Parallelism is the engine's.
    StartChild(ChildRequest),
    /// Ask a person. Nobody in the program can answer: the run stands still until somebody does.
    AskPerson(Box<Question>),
    /// Work with drafts of files.
    Draft(Box<DraftCall>),
}

impl Effect {
    /// The hash that a journal compares when it replays, so that an old answer is never given to a
    /// new question.
    pub fn request_hash(&self) -> Result<Sha256Hex, NotCanonical> {
        match self {
            Self::CallModel(request) => request.hash(),
            Self::Execute(request) => request.hash(),
            Self::Gather(request) => request.hash(),
            Self::StartChild(request) => request.hash(),
            Self::AskPerson(question) => question.hash(),
            Self::Draft(call) => call.hash(),
        }
    }
}

/// The answer to an [`Effect`]. A bad answer is a value like any other: the workflow decides what
/// it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum EffectResult {
    /// The model answered.
    ModelReplied(ModelReply),
    /// There is no usable answer, after all retries.
    ModelFailed(ModelFailure),
    /// The program ran, well or badly.
    Executed(Box<Execution>),
    /// Nothing ran, after all retries.
    NotExecuted(SandboxFailure),
    /// The evidence.
    Gathered(Box<Evidence>),
    /// There is no evidence, after all retries.
    NotGathered(GatherFailure),
    /// The child came to its end.
    ChildEnded(Box<ChildEnd>),
    /// A person answered.
    PersonSaid(Box<Review>),
    /// What the store of drafts said.
    Drafted(Box<DraftReply>),
    /// Nobody in this run performs such effects: a defect of whoever put it together. No workflow takes it for an answer.
    NotPerformed,
}

impl EffectResult {
    /// The variant's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ModelReplied(_) => "model_replied",
            Self::ModelFailed(_) => "model_failed",
            Self::Executed(_) => "executed",
            Self::NotExecuted(_) => "not_executed",
            Self::Gathered(_) => "gathered",
            Self::NotGathered(_) => "not_gathered",
            Self::ChildEnded(_) => "child_ended",
            Self::PersonSaid(_) => "person_said",
            Self::Drafted(_) => "drafted",
            Self::NotPerformed => "not_performed",
        }
    }
}

impl From<Result<ModelReply, ModelFailure>> for EffectResult {
    fn from(result: Result<ModelReply, ModelFailure>) -> Self {
        match result {
            Ok(reply) => Self::ModelReplied(reply),
            Err(failure) => Self::ModelFailed(failure),
        }
    }
}
