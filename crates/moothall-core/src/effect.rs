//! Effects: what a workflow requests from the outside world, and the results it receives.
//!
//! Both are file formats: journals and receipts contain them. Every variant has a snapshot in
//! `tests/it/formats.rs`.

use serde::{Deserialize, Serialize};

use crate::child::{ChildEnd, ChildRequest};
use crate::consult::{GatherFailure, GatherRequest, MoveReview, ReviewQuestion};
use crate::edit::{DraftCall, DraftReply};
use crate::evidence::Evidence;
use crate::model::{ModelFailure, ModelName, ModelReply, ModelRequest};
use crate::sandbox::{ExecuteRequest, SandboxExecution, SandboxFailure};
use crate::{CanonicalJsonError, Sha256Hex};

/// A request of a workflow for I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Call a model.
    CallModel(Box<ModelRequest>),
    /// Run a program in a fresh sandbox.
    Execute(Box<ExecuteRequest>),
    /// Gather evidence about a company.
    Gather(Box<GatherRequest>),
    /// Start a child workflow. The engine decides about parallelism.
    StartChild(ChildRequest),
    /// Ask a person. The run is paused until someone answers.
    AskPerson(Box<ReviewQuestion>),
    /// Work with drafts of files.
    Draft(Box<DraftCall>),
}

impl Effect {
    /// The request hash that is compared on replay, so a recorded result is never used for a
    /// different request.
    pub fn request_hash(&self) -> Result<Sha256Hex, CanonicalJsonError> {
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

impl Effect {
    /// The model that gave a recorded result, if this request does not name it. Such a result
    /// belongs to another request.
    pub fn foreign_model<'a>(&self, result: &'a EffectResult) -> Option<&'a ModelName> {
        match (self, result) {
            (Self::CallModel(request), EffectResult::ModelReplied(reply)) => {
                let answered_by = &reply.fallback.as_ref()?.model;
                (!request.fallbacks.contains(answered_by)).then_some(answered_by)
            }
            _ => None,
        }
    }
}

/// The result of an [`Effect`]. Failures are ordinary results: the workflow decides what they mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum EffectResult {
    /// The model answered.
    ModelReplied(ModelReply),
    /// No usable answer after all retries.
    ModelFailed(ModelFailure),
    /// The program ran, successfully or not.
    Executed(Box<SandboxExecution>),
    /// The program was not run, after all retries.
    NotExecuted(SandboxFailure),
    /// The evidence.
    Gathered(Box<Evidence>),
    /// No evidence after all retries.
    NotGathered(GatherFailure),
    /// The child workflow ended.
    ChildEnded(Box<ChildEnd>),
    /// A person answered.
    PersonSaid(Box<MoveReview>),
    /// The reply of the draft store.
    Drafted(Box<DraftReply>),
    /// This run has no performer for such effects, which is a bug in how the run was set up.
    /// Workflows do not accept it as a result.
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
