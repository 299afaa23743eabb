//! Replays a workflow with recorded results, to show a run or to verify a receipt.
//!
//! No effect is performed. Replay stops where no result is recorded.

use std::collections::BTreeMap;

use crate::child::ChildRequest;
use crate::debate::Debate;
use crate::{
    CanonicalJsonError, Effect, EffectId, EffectResult, Outcome, Sha256Hex, Step, UnexpectedResult,
    Workflow,
};

/// A recorded result.
#[derive(Debug, Clone, Copy)]
pub struct RecordedResult<'a> {
    /// The hash of its request; `None` skips the comparison.
    pub request_sha256: Option<Sha256Hex>,
    /// The result.
    pub result: &'a EffectResult,
}

/// A workflow, advanced as far as the recorded results allow.
#[derive(Debug)]
pub struct ReplayResult<W> {
    /// The workflow itself, for inspection.
    pub workflow: W,
    /// The outcome, if it was reached.
    pub outcome: Option<Outcome>,
    /// The completed effects with the hashes of their requests.
    pub answered: BTreeMap<EffectId, Sha256Hex>,
    /// The pending effects.
    pub open: BTreeMap<EffectId, Effect>,
    /// All children it started, finished or not.
    pub children: BTreeMap<EffectId, ChildRequest>,
}

/// Why recorded results do not match a workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayFault {
    /// The result belongs to a different request.
    #[error("`{id}` has the request hash {asked}, but the recorded result is for {answered}")]
    OtherQuestion {
        /// The effect.
        id: EffectId,
        /// The hash of the request.
        asked: Sha256Hex,
        /// The request hash of the recorded result.
        answered: Sha256Hex,
    },
    /// The recorded answer is by a model that the request does not name.
    #[error("the recorded answer to `{id}` is by `{model}`, which is not a model of the request")]
    OtherModel {
        /// The effect.
        id: EffectId,
        /// The model.
        model: String,
    },
    /// The result is not of the kind the workflow waits for.
    #[error(transparent)]
    Unexpected(#[from] UnexpectedResult),
    /// A request cannot be hashed.
    #[error(transparent)]
    NotCanonical(#[from] CanonicalJsonError),
}

impl ReplayFault {
    /// The effect it is about, if any.
    pub fn effect_id(&self) -> Option<&EffectId> {
        match self {
            Self::OtherQuestion { id, .. } | Self::OtherModel { id, .. } => Some(id),
            Self::Unexpected(unexpected) => Some(&unexpected.id),
            Self::NotCanonical(_) => None,
        }
    }
}

/// Advances `workflow` as far as `answer` has results. Children are not replayed: their ends are
/// recorded results too, and [`ReplayResult::children`] has their inputs.
pub fn replay<'a, W: Workflow>(
    mut workflow: W,
    answer: impl Fn(&EffectId) -> Option<RecordedResult<'a>>,
) -> Result<ReplayResult<W>, ReplayFault> {
    let mut open = BTreeMap::new();
    let mut answered = BTreeMap::new();
    let mut children = BTreeMap::new();
    let mut step = workflow.start();
    let outcome = loop {
        let Step { perform, publish: _, outcome } = step;
        if outcome.is_some() {
            break outcome;
        }
        for (id, effect) in perform {
            if let Effect::StartChild(request) = &effect {
                children.insert(id.clone(), request.clone());
            }
            open.insert(id, effect);
        }
        let found = open.keys().find_map(|id| Some((id.clone(), answer(id)?)));
        let Some((id, known)) = found else { break None };
        let Some(effect) = open.remove(&id) else { break None };
        // Hashing a long prompt is expensive, so it is done only for comparison.
        if let Some(expected) = known.request_sha256 {
            let asked = effect.request_hash()?;
            if asked != expected {
                return Err(ReplayFault::OtherQuestion { id, asked, answered: expected });
            }
            answered.insert(id.clone(), asked);
        }
        if let Some(model) = effect.foreign_model(known.result) {
            return Err(ReplayFault::OtherModel { id, model: model.to_string() });
        }
        step = workflow.resume(&id, known.result.clone())?;
    };
    Ok(ReplayResult { workflow, outcome, answered, open, children })
}

/// The request of one effect, rebuilt from the results before it. `None` if the recorded results do
/// not lead to it.
pub fn request_of<'a, W: Workflow>(
    workflow: W,
    answer: impl Fn(&EffectId) -> Option<RecordedResult<'a>>,
    id: &EffectId,
) -> Result<Option<Effect>, ReplayFault> {
    // Without its result the effect stays open, and everything before it is replayed.
    let before = |one: &EffectId| if one == id { None } else { answer(one) };
    let mut replayed = replay(workflow, before)?;
    if let Some(effect) = replayed.open.remove(id) {
        return Ok(Some(effect));
    }
    for (child, ChildRequest::Debate(input)) in replayed.children {
        let is_below =
            id.as_str().strip_prefix(child.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if !is_below {
            continue;
        }
        let Ok(debate) = Debate::new(*input) else { continue };
        return Ok(replay(debate, before)?.open.remove(id));
    }
    Ok(None)
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
