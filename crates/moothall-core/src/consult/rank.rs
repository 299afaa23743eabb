//! The order of moves: a pure function of what the trial made of them and of what persons approved.
//!
//! The order is by total score. Where totals are equal, in turn:
//! 1. a clean debate before a degraded one;
//! 2. the smaller spread between decision makers;
//! 3. fewer fatal or major objections that still stand;
//! 4. the larger share of supported numbers; a move without numbers has none;
//! 5. the lower number of the move.
//!
//! A move that code holds back has no rank until a person approves it, and neither has one that was
//! not debated, for want of a debate or by a person's veto; both stand at the end, in the order of their numbers. A degraded move keeps its
//! place and its mark, and may be recommended, but for one case: where a neutral 5 stands for a
//! score that nobody gave, its total is not the committee's judgement, and it is not recommended.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use super::ranked::{RECOMMENDED, Ranked, RankedMove};
use super::review::LastWord;
use crate::debate::{Debated, Degradation, ObjectionSeverity};
use crate::{Conclusion, Finding, Outcome, Severity};

/// Whose open findings a person has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted<'a> {
    /// Those of every move: the run was started so.
    Every,
    /// Those of these moves.
    These(&'a BTreeSet<String>),
}

impl Accepted<'_> {
    fn includes(self, move_id: &str) -> bool {
        match self {
            Self::Every => true,
            Self::These(approved) => approved.contains(move_id),
        }
    }
}

/// Moves in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    /// The recommended ones, best first.
    pub recommended: Vec<RankedMove>,
    /// The others: ranked ones in order, then those without a rank.
    pub other: Vec<RankedMove>,
}

impl RankedMove {
    /// Whether code holds it back until a person has looked at it.
    pub fn is_held(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity >= Severity::Escalate)
    }

    /// Whether a person did not want it to be debated.
    pub fn is_vetoed(&self) -> bool {
        self.said.as_ref().is_some_and(LastWord::is_veto)
    }

    /// Whether a neutral 5 stands for a score that nobody gave.
    pub fn has_neutral_scores(&self) -> bool {
        let neutral = |mark: &Degradation| matches!(mark, Degradation::NeutralScore { .. });
        self.debated.as_ref().is_some_and(|debated| debated.degraded.iter().any(neutral))
    }

    /// The number in its id; a foreign id comes last.
    fn number(&self) -> u32 {
        let digits = self.move_id.strip_prefix('m');
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(u32::MAX)
    }
}

/// Puts moves into order; what they say about their rank before does not matter. See the module
/// documentation for the rules.
pub fn rank(moves: impl IntoIterator<Item = RankedMove>, accepted: Accepted<'_>) -> Ranking {
    let (mut placed, mut unplaced): (Vec<RankedMove>, Vec<RankedMove>) =
        moves.into_iter().partition(|one| {
            one.debated.is_some() && (!one.is_held() || accepted.includes(&one.move_id))
        });
    placed.sort_by(better_first);
    unplaced.sort_by(by_number);
    for (rank, one) in (1..).zip(&mut placed) {
        one.rank = Some(rank);
    }
    for one in &mut unplaced {
        one.rank = None;
    }
    let (mut recommended, mut other) = (Vec::new(), Vec::new());
    for one in placed {
        if recommended.len() < RECOMMENDED && !one.has_neutral_scores() {
            recommended.push(one);
        } else {
            other.push(one);
        }
    }
    other.extend(unplaced);
    Ranking { recommended, other }
}

fn better_first(one: &RankedMove, other: &RankedMove) -> Ordering {
    let key = |of: &RankedMove| {
        let debated = of.debated.as_ref();
        let total = debated.map_or(0, |debated| debated.total_score);
        let degraded = debated.is_some_and(|debated| !debated.degraded.is_empty());
        let spread = debated.map_or(0, |debated| debated.spread);
        (Reverse(total), degraded, spread, debated.map_or(0, grave_and_open))
    };
    // The shares are compared as fractions, because equal ones must be equal.
    let share = |of: &RankedMove| (u64::from(of.support.supported), u64::from(of.support.total));
    let ((a, all_of_a), (b, all_of_b)) = (share(one), share(other));
    let by_support = (b * all_of_a.max(1)).cmp(&(a * all_of_b.max(1)));
    key(one).cmp(&key(other)).then(by_support).then_with(|| by_number(one, other))
}

fn by_number(one: &RankedMove, other: &RankedMove) -> Ordering {
    (one.number(), &one.move_id).cmp(&(other.number(), &other.move_id))
}

/// How many objections that matter still stand.
fn grave_and_open(debated: &Debated) -> usize {
    let objections = debated.objections.iter();
    objections
        .filter(|objection| {
            objection.severity >= ObjectionSeverity::Major && objection.state.is_open()
        })
        .count()
}

impl Ranking {
    /// Why there are fewer recommended moves than there should be, where there are.
    pub fn shortfall(&self) -> Option<String> {
        let vetoed = self.other.iter().filter(|one| one.is_vetoed()).count();
        let count = self.recommended.len() + self.other.len() - vetoed;
        let wanted = RECOMMENDED.min(count);
        if self.recommended.len() >= wanted {
            return None;
        }
        let ids = |is: &dyn Fn(&RankedMove) -> bool| {
            let found = self.other.iter().filter(|one| is(one));
            found.map(|one| one.move_id.as_str()).collect::<Vec<_>>().join(", ")
        };
        let unranked = |one: &RankedMove| one.rank.is_none() && !one.is_vetoed();
        let reasons = [
            (ids(&|one| unranked(one) && one.debated.is_none()), "not debated"),
            (ids(&|one| unranked(one) && one.debated.is_some()), "held back by what code found"),
            (ids(&|one| one.rank.is_some()), "scored with neutral 5s that nobody gave"),
        ];
        let told = reasons.into_iter().filter(|(ids, _)| !ids.is_empty());
        let told: Vec<String> = told.map(|(ids, why)| format!("{why}: {ids}")).collect();
        let found = self.recommended.len();
        Some(format!("{found} of {wanted} moves are recommended ({})", told.join("; ")))
    }
}

impl Ranked {
    /// All moves, recommended ones first.
    pub fn moves(&self) -> impl Iterator<Item = &RankedMove> {
        self.recommended.iter().chain(&self.other)
    }
}

/// What a consultation comes to when persons approve moves after its end: they are ranked with
/// their marks, and what code found in them no longer waits for anyone.
pub fn approve(outcome: &Outcome, approved: &BTreeSet<String>) -> Outcome {
    let Conclusion::Ranked(ranked) = &outcome.conclusion else { return outcome.clone() };
    let was_placed = ranked.moves().filter(|one| one.rank.is_some());
    let accepted: BTreeSet<String> =
        was_placed.map(|one| &one.move_id).chain(approved).cloned().collect();
    let before = Ranking { recommended: ranked.recommended.clone(), other: ranked.other.clone() };
    let after = rank(ranked.moves().cloned(), Accepted::These(&accepted));
    let mut missing = ranked.missing.clone();
    if let Some(sentence) = before.shortfall() {
        missing.retain(|line| *line != sentence);
    }
    missing.extend(after.shortfall());
    let findings = outcome.findings.iter().map(|finding| accept(finding, approved)).collect();
    let Ranking { recommended, other } = after;
    let ranked = Ranked { recommended, other, missing, ..(**ranked).clone() };
    Outcome::new(findings, Conclusion::Ranked(Box::new(ranked)))
}

/// A finding that no longer waits for a person where the person has spoken.
pub(super) fn accept(finding: &Finding, accepted: &BTreeSet<String>) -> Finding {
    let waits = finding.severity == Severity::Escalate && accepted.contains(&finding.subject);
    let severity = if waits { Severity::Warn } else { finding.severity };
    Finding { severity, ..finding.clone() }
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
