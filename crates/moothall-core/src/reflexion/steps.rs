//! Steps that need nothing of the machine's state.

use super::findings::finding;
use crate::model::{ModelFailure, ModelRequest};
use crate::sandbox::SandboxFailure;
use crate::{Conclusion, Effect, EffectId, RunEvent, Severity, Step};

/// One effect, and what is to be said before it.
pub(super) fn perform(publish: Vec<RunEvent>, id: EffectId, effect: Effect) -> Step {
    Step { perform: vec![(id, effect)], publish, outcome: None }
}

/// There is no answer, so there is no way on.
pub(super) fn model_failed(id: &EffectId, request: &ModelRequest, failure: ModelFailure) -> Step {
    let (kind, detail) = (failure.kind, failure.to_string());
    let found = finding("model.failed", Severity::Block, id.as_str(), &detail);
    let failed = RunEvent::model_failed(id, request, failure);
    Step::failed(vec![failed], found, Conclusion::Failed { kind }, detail)
}

/// Nobody ran anything: it costs no attempt, because it ends the run, and it says nothing about any
/// program.
pub(super) fn not_executed(id: &EffectId, failure: SandboxFailure) -> Step {
    let (kind, detail) = (failure.kind, failure.to_string());
    let found = finding("sandbox.failed", Severity::Block, id.as_str(), &detail);
    Step::failed(Vec::new(), found, Conclusion::NotExecuted { kind }, detail)
}
