//! Steps that do not depend on the workflow's state.

use super::findings::finding;
use crate::model::{ModelFailure, ModelRequest};
use crate::sandbox::SandboxFailure;
use crate::{Conclusion, Effect, EffectId, FindingSeverity, RunEvent, Step};

/// A step with a single effect.
pub(crate) fn perform(publish: Vec<RunEvent>, id: EffectId, effect: Effect) -> Step {
    Step { perform: vec![(id, effect)], publish, outcome: None }
}

/// Ends the run because a model call failed.
pub(crate) fn model_failed(id: &EffectId, request: &ModelRequest, failure: ModelFailure) -> Step {
    let (kind, detail) = (failure.kind, failure.to_string());
    let found = finding("model.failed", FindingSeverity::Block, id.as_str(), &detail);
    let failed = RunEvent::model_failed(id, request, failure);
    Step::failed(vec![failed], found, Conclusion::Failed { kind }, detail)
}

/// Ends the run because nothing could be executed. It uses up no attempt and says nothing about the
/// program.
pub(crate) fn not_executed(id: &EffectId, failure: SandboxFailure) -> Step {
    let (kind, detail) = (failure.kind, failure.to_string());
    let found = finding("sandbox.failed", FindingSeverity::Block, id.as_str(), &detail);
    Step::failed(Vec::new(), found, Conclusion::NotExecuted { kind }, detail)
}
