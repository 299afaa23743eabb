//! The names of the effects. They are made before the debate begins, so that nothing can go wrong
//! with a name while it runs.

use super::input::InvalidDebate;
use crate::{EffectId, InvalidId};

/// A call, and the same asked again.
#[derive(Debug, Clone)]
pub(super) struct CallIds {
    pub(super) first: EffectId,
    pub(super) again: EffectId,
}

impl CallIds {
    fn of(first: EffectId) -> Result<Self, InvalidId> {
        Ok(Self { again: first.child("ask-2")?, first })
    }
}

/// The calls of one thread.
#[derive(Debug)]
pub(super) struct ThreadIds {
    /// `m7/round-3/critic/D2`, from round 2 on.
    critic: Vec<CallIds>,
    /// `m7/round-3/D2`, from round 1 on.
    decision_maker: Vec<CallIds>,
    /// `m7/score/D2`.
    pub(super) score: CallIds,
}

impl ThreadIds {
    pub(super) fn critic(&self, round: u32) -> Option<&CallIds> {
        self.critic.get(usize::try_from(round).ok()?.checked_sub(2)?)
    }

    pub(super) fn decision_maker(&self, round: u32) -> Option<&CallIds> {
        self.decision_maker.get(usize::try_from(round).ok()?.checked_sub(1)?)
    }
}

/// Every call that a debate can make.
#[derive(Debug)]
pub(super) struct Ids {
    /// `m7/round-1/critic`.
    pub(super) opening: CallIds,
    pub(super) threads: Vec<ThreadIds>,
}

impl Ids {
    pub(super) fn new<'a>(
        move_id: &str,
        rounds: u32,
        decision_makers: impl Iterator<Item = &'a str>,
    ) -> Result<Self, InvalidDebate> {
        let root: EffectId = move_id.parse()?;
        let round = |number: u32| root.child(&format!("round-{number}"));
        let thread = |id: &str| -> Result<ThreadIds, InvalidId> {
            let critic = |number| CallIds::of(round(number)?.child("critic")?.child(id)?);
            let decision_maker = |number| CallIds::of(round(number)?.child(id)?);
            Ok(ThreadIds {
                critic: (2..=rounds).map(critic).collect::<Result<_, _>>()?,
                decision_maker: (1..=rounds).map(decision_maker).collect::<Result<_, _>>()?,
                score: CallIds::of(root.child("score")?.child(id)?)?,
            })
        };
        Ok(Self {
            opening: CallIds::of(round(1)?.child("critic")?)?,
            threads: decision_makers.map(thread).collect::<Result<_, _>>()?,
        })
    }
}
