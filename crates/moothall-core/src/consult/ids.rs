//! The names of the effects.

use std::collections::BTreeSet;

use super::committee::{Committee, InvalidCommittee};
use super::input::{ConsultInput, InvalidConsult};
use super::nothing::NOTHING;
use super::reviewing::YOU;
use super::terms::MAX_ADDED_MOVES;
use super::workflow::Consult;
use crate::{EffectId, InvalidId};

/// Every effect that a consultation may ask for.
pub(super) struct Ids {
    pub(super) gather: EffectId,
    pub(super) financials: EffectId,
    pub(super) news: EffectId,
    pub(super) f1: Written,
    pub(super) f2: Written,
    pub(super) desks: Vec<Desk>,
    /// `moves/review`.
    pub(super) review: EffectId,
}

/// A question and the one that follows where its answer is not good enough.
pub(super) struct Written {
    pub(super) ask: EffectId,
    pub(super) again: EffectId,
}

/// What one analyst is asked for.
pub(super) struct Desk {
    /// Its place among the committee's analysts.
    pub(super) seat: usize,
    /// `analyst_3` and `analyst_3/ask-2`.
    pub(super) ask: EffectId,
    pub(super) again: EffectId,
    /// The numbers of its moves: they follow from the order of analysts and their shares, whoever
    /// fails.
    pub(super) moves: Vec<MoveIds>,
}

/// The effects of one move.
pub(super) struct MoveIds {
    pub(super) number: u32,
    /// `m7`: the debate.
    pub(super) debate: EffectId,
    /// `m7/rewrite`.
    pub(super) rewrite: EffectId,
}

impl Ids {
    pub(super) fn of(input: &ConsultInput) -> Result<Self, InvalidConsult> {
        let desks = desks(&input.committee, input.moves)?;
        let ids = Self {
            gather: "gather".parse()?,
            financials: "synthesize/financials".parse()?,
            news: "synthesize/news".parse()?,
            f1: Written::of("F1", "rewrite")?,
            f2: Written::of("F2", "rewrite")?,
            desks,
            review: Consult::REVIEW.parse()?,
        };
        ids.distinct(input)?;
        Ok(ids)
    }

    /// A committee file may call an analyst `m1` or `gather`, and an id means one effect.
    fn distinct(&self, input: &ConsultInput) -> Result<(), InvalidCommittee> {
        let mut seen: BTreeSet<String> =
            ["gather", "synthesize", "F1", "F2"].map(Into::into).into();
        let moves = self.desks.iter().flat_map(|desk| &desk.moves);
        seen.extend(moves.map(|one| one.debate.to_string()));
        if !input.terms.is_empty() {
            seen.extend([NOTHING, YOU, "moves"].map(Into::into));
            let most = MAX_ADDED_MOVES.saturating_mul(2);
            seen.extend((input.proposed_moves()..).take(most + 1).map(|n| format!("m{n}")));
        }
        match self.desks.iter().find(|desk| !seen.insert(desk.ask.to_string())) {
            Some(desk) => Err(InvalidCommittee::Id(desk.ask.to_string())),
            None => Ok(()),
        }
    }
}

impl Written {
    fn of(name: &str, again: &str) -> Result<Self, InvalidId> {
        let ask: EffectId = name.parse()?;
        Ok(Self { again: ask.child(again)?, ask })
    }
}

impl MoveIds {
    pub(super) fn of(number: u32) -> Result<Self, InvalidId> {
        let Written { ask: debate, again: rewrite } =
            Written::of(&format!("m{number}"), "rewrite")?;
        Ok(Self { number, debate, rewrite })
    }
}

/// The call in which a decision maker scores a move alone: `m0/score/D1`, `m7/baseline/D2`.
pub(super) fn alone(move_id: &str, what: &str, maker: &str) -> Result<Written, InvalidId> {
    Written::of(&format!("{move_id}/{what}/{maker}"), "ask-2")
}

/// Analysts that have a share, with the numbers of their moves.
fn desks(committee: &Committee, moves: Option<u32>) -> Result<Vec<Desk>, InvalidId> {
    let mut next = 1;
    let mut desks = Vec::new();
    for (seat, share) in committee.shares(moves).into_iter().enumerate() {
        let Some(analyst) = committee.analysts.get(seat).filter(|_| share > 0) else { continue };
        let Written { ask, again } = Written::of(&analyst.id, "ask-2")?;
        let numbers = next..next + share;
        next += share;
        let moves = numbers.map(MoveIds::of).collect::<Result<_, InvalidId>>()?;
        desks.push(Desk { seat, ask, again, moves });
    }
    Ok(desks)
}
