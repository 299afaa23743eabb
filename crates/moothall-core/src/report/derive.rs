//! Derives the outcome of a consultation again from its input and its recorded results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::child::{ChildEnd, ChildRequest};
use crate::consult::{Consult, ConsultInput, MoveApproval, inherited_sha256, settle};
use crate::debate::Debate;
use crate::receipt::EffectRecord;
use crate::replay::{RecordedResult, ReplayFault, ReplayResult, replay};
use crate::{Conclusion, EffectId, EffectResult, Outcome, RunId, Sha256Hex};

/// Why an outcome cannot be derived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeriveFault {
    /// The input is invalid.
    #[error("invalid input: {0}")]
    Input(String),
    /// A result does not belong to its request.
    #[error(transparent)]
    Replay(#[from] ReplayFault),
    /// All recorded results were used, and the workflow has not ended.
    #[error("the recorded results do not lead to an outcome")]
    NoOutcome,
    /// A result is missing.
    #[error("no result recorded for `{0}`")]
    Missing(EffectId),
    /// A result that the workflow did not request.
    #[error("unrequested result `{0}`")]
    NotAsked(EffectId),
    /// The recorded end of a debate does not follow from its results.
    #[error("the outcome of debate `{0}` does not follow from its recorded results")]
    OtherDebate(EffectId),
    /// The results that a fork inherited differ from the ones its input names.
    #[error("the results inherited from run {run} have the hash {found}, expected {expected}")]
    Inherited {
        /// The run that was forked.
        run: RunId,
        /// The hash in the input.
        expected: Sha256Hex,
        /// The hash of the recorded results.
        found: Sha256Hex,
    },
}

impl DeriveFault {
    pub(crate) fn input(error: &dyn fmt::Display) -> Self {
        Self::Input(error.to_string())
    }

    /// The effect it is about, if any.
    pub fn effect_id(&self) -> Option<&EffectId> {
        match self {
            Self::Input(_) | Self::NoOutcome | Self::Inherited { .. } => None,
            Self::Replay(fault) => fault.effect_id(),
            Self::Missing(id) | Self::NotAsked(id) | Self::OtherDebate(id) => Some(id),
        }
    }
}

/// Derives the outcome again, including debates, and applies the approvals.
///
/// Every request is built again and its hash compared, so a result cannot be moved to another
/// request. Every result must have been requested, and every debate must lead to its recorded
/// outcome.
pub fn derive(
    input: &ConsultInput,
    effects: &BTreeMap<EffectId, EffectRecord>,
    approvals: &[MoveApproval],
) -> Result<Outcome, DeriveFault> {
    if let Some(parent) = &input.parent {
        let expected = parent.journal_sha256;
        let found = inherited_sha256(input, effects).map_err(|error| DeriveFault::input(&error))?;
        if found != expected {
            return Err(DeriveFault::Inherited { run: parent.run.clone(), expected, found });
        }
    }
    let known = |id: &EffectId| {
        let record = effects.get(id)?;
        Some(RecordedResult { request_sha256: Some(record.request_sha256), result: &record.result })
    };
    let consult = Consult::new(input.clone()).map_err(|error| DeriveFault::input(&error))?;
    let ReplayResult { outcome, answered, open, children, .. } = replay(consult, known)?;
    let outcome = outcome.ok_or_else(|| missing(open.into_keys().next()))?;
    let mut requested: BTreeSet<EffectId> = answered.into_keys().collect();
    for (id, ChildRequest::Debate(debate)) in children {
        let debate = Debate::new(*debate).map_err(|error| DeriveFault::input(&error))?;
        let replayed = replay(debate, known)?;
        requested.extend(replayed.answered.into_keys());
        let Some(EffectResult::ChildEnded(end)) = effects.get(&id).map(|record| &record.result)
        else {
            return Err(DeriveFault::Missing(id));
        };
        if !follows(end, replayed.outcome.as_ref()) {
            return Err(DeriveFault::OtherDebate(id));
        }
    }
    match effects.keys().find(|id| !requested.contains(*id)) {
        Some(id) => Err(DeriveFault::NotAsked(id.clone())),
        None => Ok(settle(outcome, approvals)),
    }
}

/// A debate that was not held because no sandbox was available has no results; its recorded outcome
/// must then be `NotDebated`.
fn follows(end: &ChildEnd, derived: Option<&Outcome>) -> bool {
    match derived {
        Some(derived) => end.outcome == *derived,
        None => matches!(end.outcome.conclusion, Conclusion::NotDebated { .. }),
    }
}

fn missing(id: Option<EffectId>) -> DeriveFault {
    id.map_or(DeriveFault::NoOutcome, DeriveFault::Missing)
}
