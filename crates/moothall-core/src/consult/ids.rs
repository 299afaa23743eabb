//! Effect ids of a consultation.

use std::collections::BTreeSet;

use super::apply_review::USER_AUTHOR;
use super::committee::{Committee, InvalidCommittee};
use super::do_nothing::DO_NOTHING_ID;
use super::input::{ConsultInput, InvalidConsult};
use super::options::MAX_ADDED_MOVES;
use super::planted_controls::control_id;
use super::workflow::Consult;
use crate::{EffectId, InvalidId};

/// The effect that gathers the evidence.
pub const GATHER_ID: &str = "gather";

pub(crate) struct ConsultIds {
    pub(crate) gather: EffectId,
    pub(crate) financials: EffectId,
    pub(crate) news: EffectId,
    pub(crate) f1: RequestIds,
    pub(crate) f2: RequestIds,
    pub(crate) analyst_ids: Vec<AnalystIds>,
    /// `moves/review`.
    pub(crate) review: EffectId,
}

/// Ids of a request and of its retry or rewrite.
pub(crate) struct RequestIds {
    pub(crate) ask: EffectId,
    pub(crate) again: EffectId,
}

/// Effect ids of one analyst.
pub(crate) struct AnalystIds {
    /// Index among the committee's analysts.
    pub(crate) seat: usize,
    /// `analyst_3` and `analyst_3/ask-2`.
    pub(crate) ask: EffectId,
    pub(crate) again: EffectId,
    /// Move numbers follow from the order of analysts and their shares, regardless of failures.
    pub(crate) moves: Vec<MoveIds>,
}

/// Effect ids of one move.
pub(crate) struct MoveIds {
    pub(crate) number: u32,
    /// `m7`: the debate.
    pub(crate) debate: EffectId,
    /// `m7/rewrite`.
    pub(crate) rewrite: EffectId,
}

impl ConsultIds {
    pub(crate) fn of(input: &ConsultInput) -> Result<Self, InvalidConsult> {
        let analyst_ids = analyst_ids(&input.committee, input.moves)?;
        let ids = Self {
            gather: GATHER_ID.parse()?,
            financials: "synthesize/financials".parse()?,
            news: "synthesize/news".parse()?,
            f1: RequestIds::of("F1", "rewrite")?,
            f2: RequestIds::of("F2", "rewrite")?,
            analyst_ids,
            review: Consult::REVIEW.parse()?,
        };
        ids.distinct(input)?;
        Ok(ids)
    }

    /// Effect ids must be unique, but a committee file may name an analyst `m1` or `gather`.
    fn distinct(&self, input: &ConsultInput) -> Result<(), InvalidCommittee> {
        let mut seen: BTreeSet<String> =
            ["gather", "synthesize", "F1", "F2"].map(Into::into).into();
        let moves = self.analyst_ids.iter().flat_map(|analyst| &analyst.moves);
        seen.extend(moves.map(|one| one.debate.to_string()));
        if !input.terms.is_empty() {
            seen.extend([DO_NOTHING_ID, USER_AUTHOR, "moves"].map(Into::into));
            let most = MAX_ADDED_MOVES.saturating_mul(2);
            seen.extend((input.proposed_moves()..).take(most + 1).map(|n| format!("m{n}")));
        }
        if let Some(plan) = &input.committee.verdict {
            seen.extend((1..=plan.controls.known_bad).map(control_id));
            seen.extend(plan.asks_forecasts().then(|| "forecast".to_owned()));
        }
        match self.analyst_ids.iter().find(|analyst| !seen.insert(analyst.ask.to_string())) {
            Some(analyst) => Err(InvalidCommittee::Id(analyst.ask.to_string())),
            None => Ok(()),
        }
    }
}

impl RequestIds {
    pub(crate) fn of(name: &str, again: &str) -> Result<Self, InvalidId> {
        let ask: EffectId = name.parse()?;
        Ok(Self { again: ask.child(again)?, ask })
    }
}

impl MoveIds {
    pub(crate) fn of(number: u32) -> Result<Self, InvalidId> {
        let RequestIds { ask: debate, again: rewrite } =
            RequestIds::of(&format!("m{number}"), "rewrite")?;
        Ok(Self { number, debate, rewrite })
    }
}

/// Ids of the call that scores a move without a debate: `m0/score/D1`, `m7/baseline/D2`.
pub(crate) fn alone(move_id: &str, what: &str, maker: &str) -> Result<RequestIds, InvalidId> {
    RequestIds::of(&format!("{move_id}/{what}/{maker}"), "ask-2")
}

/// Analysts with at least one move, and the numbers of their moves.
fn analyst_ids(committee: &Committee, moves: Option<u32>) -> Result<Vec<AnalystIds>, InvalidId> {
    let mut next = 1;
    let mut analyst_ids = Vec::new();
    for (seat, share) in committee.shares(moves).into_iter().enumerate() {
        let Some(analyst) = committee.analysts.get(seat).filter(|_| share > 0) else { continue };
        let RequestIds { ask, again } = RequestIds::of(&analyst.id, "ask-2")?;
        let numbers = next..next + share;
        next += share;
        let moves = numbers.map(MoveIds::of).collect::<Result<_, InvalidId>>()?;
        analyst_ids.push(AnalystIds { seat, ask, again, moves });
    }
    Ok(analyst_ids)
}
