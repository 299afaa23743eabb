//! Effect ids of a debate. They are built up front so that an invalid id fails before the debate
//! starts.

use super::input::InvalidDebate;
use crate::{EffectId, InvalidId};

/// The ids of a call and its retry.
#[derive(Debug, Clone)]
pub(crate) struct CallIds {
    pub(crate) first: EffectId,
    pub(crate) again: EffectId,
}

impl CallIds {
    fn of(first: EffectId) -> Result<Self, InvalidId> {
        Ok(Self { again: first.child("ask-2")?, first })
    }
}

/// The call ids of one thread.
#[derive(Debug)]
pub(crate) struct ThreadIds {
    /// `m7/round-3/critic/D2`, starting with round 2.
    critic: Vec<CallIds>,
    /// `m7/round-3/D2`, starting with round 1.
    decision_maker: Vec<CallIds>,
    /// `m7/score/D2`.
    pub(crate) score: CallIds,
}

impl ThreadIds {
    pub(crate) fn critic(&self, round: u32) -> Option<&CallIds> {
        self.critic.get(usize::try_from(round).ok()?.checked_sub(2)?)
    }

    pub(crate) fn decision_maker(&self, round: u32) -> Option<&CallIds> {
        self.decision_maker.get(usize::try_from(round).ok()?.checked_sub(1)?)
    }
}

/// The ids of every call a debate can make.
#[derive(Debug)]
pub(crate) struct DebateIds {
    /// `m7/round-1/critic`.
    pub(crate) opening: CallIds,
    pub(crate) threads: Vec<ThreadIds>,
}

impl DebateIds {
    pub(crate) fn new<'a>(
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
