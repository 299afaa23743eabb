//! How well verdicts of the same moves agree.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::card_table::CaseKind;
use super::tiers::{MoveEstimate, TierList, VerdictTier};
use crate::consult::RECOMMENDED;

/// How well repeated verdicts agree: means over all pairs of them, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct StabilityReport {
    /// Number of verdicts compared.
    pub verdicts: u32,
    /// Share of the three best moves that two verdicts have in common.
    pub top3_overlap: u32,
    /// Kendall's tau-b between the estimates, from -1,000 to 1,000.
    pub tau: i32,
    /// Moves in both leads, of the moves in either.
    pub lead_overlap: u32,
    /// How often the best move of one verdict is in the lead of another.
    pub winner_in_lead: u32,
    /// Pairs of moves that two verdicts told apart in opposite directions; a count.
    pub contradictions: u32,
    /// Mean reliability.
    pub reliability: u32,
}

impl StabilityReport {
    /// Compares verdicts; `None` for fewer than two, or if two of them have no move in common.
    pub fn of(verdicts: &[&TierList]) -> Option<Self> {
        let mut pairs = Vec::new();
        for (index, one) in verdicts.iter().enumerate() {
            for other in verdicts.iter().skip(index + 1) {
                pairs.push(PairAgreement::of(one, other)?);
            }
        }
        let average = |value: fn(&PairAgreement) -> f64| {
            pairs.iter().map(value).sum::<f64>() / pairs.len() as f64
        };
        let thousandths = |value: f64| (value * 1_000.0).round();
        let reliability = verdicts.iter().map(|one| f64::from(one.reliability)).sum::<f64>();
        (!pairs.is_empty()).then(|| Self {
            verdicts: u32::try_from(verdicts.len()).unwrap_or(u32::MAX),
            top3_overlap: thousandths(average(|pair| pair.top3_overlap)) as u32,
            tau: thousandths(average(|pair| pair.tau)) as i32,
            lead_overlap: thousandths(average(|pair| pair.lead_overlap)) as u32,
            winner_in_lead: thousandths(average(|pair| pair.winner_in_lead)) as u32,
            contradictions: pairs.iter().map(|pair| pair.contradictions).sum(),
            reliability: (reliability / verdicts.len() as f64).round() as u32,
        })
    }

    /// A description of the result, by the overlap of the best three.
    pub fn text(&self) -> &'static str {
        match self.top3_overlap {
            700.. => "repeatable",
            400.. => "partly repeatable",
            _ => "not repeatable",
        }
    }

    /// The figures in one line.
    pub fn figures(&self) -> String {
        let percent = |thousandths: u32| (thousandths + 5) / 10;
        let tau = format!("{:.2}", f64::from(self.tau) / 1_000.0);
        format!(
            "best three in common {} % · moves in all leads {} % · winner in the other leads {} % · \
             order of all moves {tau} (Kendall's tau) · pairs told apart in opposite order {} · \
             reliability {} %",
            percent(self.top3_overlap),
            percent(self.lead_overlap),
            percent(self.winner_in_lead),
            self.contradictions,
            percent(self.reliability),
        )
    }

    /// The result in one sentence, without a full stop.
    pub fn headline(&self) -> String {
        format!("{} in {} verdicts of the same moves", self.text(), self.verdicts)
    }
}

/// How well two verdicts agree.
struct PairAgreement {
    top3_overlap: f64,
    tau: f64,
    lead_overlap: f64,
    winner_in_lead: f64,
    contradictions: u32,
}

impl PairAgreement {
    fn of(one: &TierList, other: &TierList) -> Option<Self> {
        let scores: Vec<(i32, i32)> = one
            .moves_by_estimate()
            .into_iter()
            .filter_map(|here| {
                let there = other.estimates.iter().find(|there| there.move_id == here.move_id)?;
                Some((here.score, there.score))
            })
            .collect();
        let (top, other_top) = (best_moves(one), best_moves(other));
        let most = top.len().max(other_top.len());
        let (lead, other_lead) = (lead_of(one), lead_of(other));
        let in_either = lead.union(&other_lead).count();
        let is_in_lead = |top: &[&str], lead: &BTreeSet<&str>| {
            f64::from(u8::from(top.first().is_some_and(|winner| lead.contains(winner))))
        };
        let wins = is_in_lead(&top, &other_lead) + is_in_lead(&other_top, &lead);
        let is_reversed = |better: &str, worse: &str| {
            other.told_apart.iter().any(|pair| pair.better == worse && pair.worse == better)
        };
        let reversed =
            one.told_apart.iter().filter(|pair| is_reversed(&pair.better, &pair.worse)).count();
        (!scores.is_empty() && most > 0).then(|| Self {
            top3_overlap: top.iter().filter(|id| other_top.contains(id)).count() as f64
                / most as f64,
            tau: kendall_tau(&scores),
            lead_overlap: match in_either {
                0 => 0.0,
                all => lead.intersection(&other_lead).count() as f64 / all as f64,
            },
            winner_in_lead: wins / 2.0,
            contradictions: u32::try_from(reversed).unwrap_or(u32::MAX),
        })
    }
}

fn best_moves(verdict: &TierList) -> Vec<&str> {
    let is_free = |one: &&MoveEstimate| one.kind == CaseKind::Move;
    let moves = verdict.moves_by_estimate().into_iter().filter(is_free);
    moves.take(RECOMMENDED).map(|one| one.move_id.as_str()).collect()
}

fn lead_of(verdict: &TierList) -> BTreeSet<&str> {
    verdict.tier(VerdictTier::Lead).into_iter().map(|one| one.move_id.as_str()).collect()
}

/// Kendall's tau-b: ties in both orders do not count against agreement. Zero if either order has
/// only ties.
pub fn kendall_tau<T: PartialOrd, U: PartialOrd>(values: &[(T, U)]) -> f64 {
    let sign = |order: Option<Ordering>| match order {
        Some(Ordering::Less) => -1_i64,
        Some(Ordering::Greater) => 1,
        Some(Ordering::Equal) | None => 0,
    };
    let (mut agreement, mut first, mut second) = (0, 0, 0);
    for (index, (a, b)) in values.iter().enumerate() {
        for (c, d) in values.iter().skip(index + 1) {
            let (one, other) = (sign(a.partial_cmp(c)), sign(b.partial_cmp(d)));
            agreement += one * other;
            first += one * one;
            second += other * other;
        }
    }
    let all = (first as f64 * second as f64).sqrt();
    if all > 0.0 { agreement as f64 / all } else { 0.0 }
}

#[cfg(test)]
#[path = "stability_tests.rs"]
mod tests;
