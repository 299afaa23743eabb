//! A workflow driven over answers that are known: to show a run, to verify a receipt.
//!
//! Nothing is asked. Where no answer is known, the workflow stays where it is.

use std::collections::BTreeMap;

use crate::child::ChildRequest;
use crate::{
    Effect, EffectId, EffectResult, NotCanonical, Outcome, Sha256Hex, Step, UnexpectedResult,
    Workflow,
};

/// An answer that is known.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The hash of the question that it answers; not compared where nobody says it.
    pub request_sha256: Option<Sha256Hex>,
    /// The answer.
    pub result: &'a EffectResult,
}

/// A workflow as far as the answers go.
#[derive(Debug)]
pub struct Replayed<W> {
    /// The machine, for whoever wants to look into it.
    pub workflow: W,
    /// Its end, where the answers lead there.
    pub outcome: Option<Outcome>,
    /// Every effect that it asked for and that was answered, with the hash of the question.
    pub answered: BTreeMap<EffectId, Sha256Hex>,
    /// Effects that it waits for.
    pub open: BTreeMap<EffectId, Effect>,
    /// Every child that it asked for, answered or not.
    pub children: BTreeMap<EffectId, ChildRequest>,
}

/// Why a workflow and its answers do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayFault {
    /// The answer belongs to another question.
    #[error("`{id}` asks what hashes to {asked}, but the answer is to {answered}")]
    OtherQuestion {
        /// The effect.
        id: EffectId,
        /// What is asked.
        asked: Sha256Hex,
        /// What was answered.
        answered: Sha256Hex,
    },
    /// The answer is of a kind that the workflow does not wait for.
    #[error(transparent)]
    Unexpected(#[from] UnexpectedResult),
    /// A question has no hash.
    #[error(transparent)]
    NotCanonical(#[from] NotCanonical),
}

impl ReplayFault {
    /// The effect that it is about, where it is about one.
    pub fn effect_id(&self) -> Option<&EffectId> {
        match self {
            Self::OtherQuestion { id, .. } => Some(id),
            Self::Unexpected(unexpected) => Some(&unexpected.id),
            Self::NotCanonical(_) => None,
        }
    }
}

/// Drives `workflow` as far as `answer` knows answers. Children are not driven: their ends are
/// answers like others, and [`Replayed::children`] says what they start with.
pub fn replay<'a, W: Workflow>(
    mut workflow: W,
    answer: impl Fn(&EffectId) -> Option<Known<'a>>,
) -> Result<Replayed<W>, ReplayFault> {
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
        // A hash of a long prompt is the dear part; nobody pays it who does not compare.
        if let Some(expected) = known.request_sha256 {
            let asked = effect.request_hash()?;
            if asked != expected {
                return Err(ReplayFault::OtherQuestion { id, asked, answered: expected });
            }
            answered.insert(id.clone(), asked);
        }
        step = workflow.resume(&id, known.result.clone())?;
    };
    Ok(Replayed { workflow, outcome, answered, open, children })
}
