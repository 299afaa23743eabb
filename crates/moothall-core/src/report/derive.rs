//! The end of a consultation, derived again from its input and its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::child::{ChildEnd, ChildRequest};
use crate::consult::{Approval, Consult, ConsultInput, settle};
use crate::debate::Debate;
use crate::receipt::EffectRecord;
use crate::replay::{Known, ReplayFault, Replayed, replay};
use crate::{Conclusion, EffectId, EffectResult, Outcome};

/// Why answers do not make a consultation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeriveFault {
    /// The input cannot be one.
    #[error("the input cannot be used: {0}")]
    Input(String),
    /// An answer does not belong to its question.
    #[error(transparent)]
    Replay(#[from] ReplayFault),
    /// An answer is missing.
    #[error("there is no answer to `{0}`")]
    Missing(EffectId),
    /// An answer that nobody asked for.
    #[error("nobody asked for `{0}`")]
    NotAsked(EffectId),
    /// What is said of a debate does not follow from what was said in it.
    #[error("the end of the debate `{0}` does not follow from its answers")]
    OtherDebate(EffectId),
}

impl DeriveFault {
    pub(super) fn input(error: &dyn fmt::Display) -> Self {
        Self::Input(error.to_string())
    }

    /// The effect that it is about, where it is about one.
    pub fn effect_id(&self) -> Option<&EffectId> {
        match self {
            Self::Input(_) => None,
            Self::Replay(fault) => fault.effect_id(),
            Self::Missing(id) | Self::NotAsked(id) | Self::OtherDebate(id) => Some(id),
        }
    }
}

/// Derives the outcome again, debates included, and settles it with what persons said.
///
/// Every question is rendered again and its hash compared, so an answer cannot be moved to another
/// question; every answer must have been asked for; every debate must come to what is said of it.
pub fn derive(
    input: &ConsultInput,
    effects: &BTreeMap<EffectId, EffectRecord>,
    approvals: &[Approval],
) -> Result<Outcome, DeriveFault> {
    let known = |id: &EffectId| {
        let record = effects.get(id)?;
        Some(Known { request_sha256: Some(record.request_sha256), result: &record.result })
    };
    let consult = Consult::new(input.clone()).map_err(|error| DeriveFault::input(&error))?;
    let Replayed { outcome, answered, open, children, .. } = replay(consult, known)?;
    let outcome = outcome.ok_or_else(|| missing(open.into_keys().next()))?;
    let mut asked: BTreeSet<EffectId> = answered.into_keys().collect();
    for (id, ChildRequest::Debate(debate)) in children {
        let debate = Debate::new(*debate).map_err(|error| DeriveFault::input(&error))?;
        let replayed = replay(debate, known)?;
        asked.extend(replayed.answered.into_keys());
        let Some(EffectResult::ChildEnded(end)) = effects.get(&id).map(|record| &record.result)
        else {
            return Err(DeriveFault::Missing(id));
        };
        if !follows(end, replayed.outcome.as_ref()) {
            return Err(DeriveFault::OtherDebate(id));
        }
    }
    match effects.keys().find(|id| !asked.contains(*id)) {
        Some(id) => Err(DeriveFault::NotAsked(id.clone())),
        None => Ok(settle(outcome, approvals)),
    }
}

/// A debate that could not be held for want of a sandbox has no answers; then only that can be said
/// of it.
fn follows(end: &ChildEnd, derived: Option<&Outcome>) -> bool {
    match derived {
        Some(derived) => end.outcome == *derived,
        None => matches!(end.outcome.conclusion, Conclusion::NotDebated { .. }),
    }
}

fn missing(id: Option<EffectId>) -> DeriveFault {
    id.map_or_else(|| DeriveFault::Input("it leads nowhere".to_owned()), DeriveFault::Missing)
}
