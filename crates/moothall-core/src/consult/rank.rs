//! Ranks moves: a pure function of their results and of the approvals.
//!
//! Moves are ordered by total score. Ties are broken by, in turn:
//! 1. a clean debate before a degraded one;
//! 2. the smaller spread between decision makers;
//! 3. fewer open fatal or major objections;
//! 4. the larger share of supported numbers, which is zero for a move without numbers;
//! 5. the lower move number.
//!
//! A move held back by checks has no rank until a person approves it. A move that was not debated,
//! also because of a veto, or not scored by every decision maker has no rank either. All of these
//! come last, in the order of their numbers. A degraded move keeps its place and its mark and may
//! be recommended, unless a neutral 5 replaces a missing score (runs of older versions).

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use super::panel_record::PanelVerdict;
use super::result::{ConsultResult, RECOMMENDED, RankedMove};
use super::review::MoveReviewDecision;
use crate::debate::{DebateDegradation, DebateResult, ObjectionSeverity};
use crate::verdict::{CaseKind, MoveEstimate};
use crate::{Conclusion, FindingSeverity, Outcome, RunFinding};

/// Moves whose open findings a person has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingAcceptance<'a> {
    /// All moves, as requested when the run was started.
    Every,
    /// Only these moves.
    These(&'a BTreeSet<String>),
}

impl FindingAcceptance<'_> {
    fn includes(self, move_id: &str) -> bool {
        match self {
            Self::Every => true,
            Self::These(approved) => approved.contains(move_id),
        }
    }
}

/// Moves in ranked order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveRanking {
    /// Recommended moves, best first.
    pub recommended: Vec<RankedMove>,
    /// Other moves: ranked ones in order, then those without a rank.
    pub other: Vec<RankedMove>,
}

impl RankedMove {
    /// Whether checks hold the move back until a person approves it.
    pub fn is_held(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity >= FindingSeverity::Escalate)
    }

    /// Whether a reviewer vetoed the move.
    pub fn is_vetoed(&self) -> bool {
        self.said.as_ref().is_some_and(MoveReviewDecision::is_veto)
    }

    /// Whether every decision maker gave scores, or a neutral 5 replaces them as in older versions.
    pub fn is_scored(&self) -> bool {
        self.debated.as_ref().is_some_and(|debated| debated.score().is_some())
    }

    /// Whether a neutral 5 replaces a missing score, as in runs of older versions.
    pub fn has_neutral_scores(&self) -> bool {
        let neutral =
            |mark: &DebateDegradation| matches!(mark, DebateDegradation::NeutralScore { .. });
        self.debated.as_ref().is_some_and(|debated| debated.degraded.iter().any(neutral))
    }

    /// The number in its id; ids of another form come last.
    fn number(&self) -> u32 {
        let digits = self.move_id.strip_prefix('m');
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(u32::MAX)
    }
}

/// Ranks moves by the rules in the module documentation. Earlier ranks are ignored.
pub fn rank(
    moves: impl IntoIterator<Item = RankedMove>,
    accepted: FindingAcceptance<'_>,
) -> MoveRanking {
    let (mut placed, mut unplaced): (Vec<RankedMove>, Vec<RankedMove>) = moves
        .into_iter()
        .partition(|one| one.is_scored() && (!one.is_held() || accepted.includes(&one.move_id)));
    placed.sort_by(compare_moves);
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
    MoveRanking { recommended, other }
}

/// Orders moves by the verdict of the panel: by tier and estimate, then those without a tier. Moves
/// that are held back or that the panel did not score come last.
pub(crate) fn rank_by_verdict(
    moves: impl IntoIterator<Item = RankedMove>,
    verdict: &PanelVerdict,
) -> MoveRanking {
    let mut moves: Vec<RankedMove> = moves.into_iter().collect();
    moves.sort_by(by_number);
    let order: Vec<&MoveEstimate> =
        verdict.order().into_iter().filter(|one| one.kind == CaseKind::Move).collect();
    let place = |one: &RankedMove| order.iter().position(|found| found.move_id == one.move_id);
    for one in &mut moves {
        let rank = place(one).and_then(|place| u32::try_from(place + 1).ok());
        one.rank = rank;
    }
    moves.sort_by_key(|one| one.rank.unwrap_or(u32::MAX));
    let recommended = verdict.recommended();
    let is_recommended =
        |one: &RankedMove| recommended.iter().any(|found| found.move_id == one.move_id);
    let (recommended, other) = moves.into_iter().partition(is_recommended);
    MoveRanking { recommended, other }
}

fn compare_moves(one: &RankedMove, other: &RankedMove) -> Ordering {
    let key = |of: &RankedMove| {
        let debated = of.debated.as_ref();
        let total = debated.map_or(0, |debated| debated.total_score);
        let degraded = debated.is_some_and(|debated| !debated.degraded.is_empty());
        let spread = debated.map_or(0, |debated| debated.spread);
        (Reverse(total), degraded, spread, debated.map_or(0, count_serious_open))
    };
    // Compared as fractions, so that equal shares are exactly equal.
    let share = |of: &RankedMove| (u64::from(of.support.supported), u64::from(of.support.total));
    let ((a, all_of_a), (b, all_of_b)) = (share(one), share(other));
    let by_support = (b * all_of_a.max(1)).cmp(&(a * all_of_b.max(1)));
    key(one).cmp(&key(other)).then(by_support).then_with(|| by_number(one, other))
}

fn by_number(one: &RankedMove, other: &RankedMove) -> Ordering {
    (one.number(), &one.move_id).cmp(&(other.number(), &other.move_id))
}

/// Number of open fatal or major objections.
fn count_serious_open(debated: &DebateResult) -> usize {
    let objections = debated.objections.iter();
    objections
        .filter(|objection| {
            objection.severity >= ObjectionSeverity::Major && objection.state.is_open()
        })
        .count()
}

impl MoveRanking {
    /// Why fewer moves are recommended than expected, or `None` if there are enough. [`approve`]
    /// compares this text with stored outcomes.
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
            (
                ids(&|one| unranked(one) && one.debated.is_some() && !one.is_scored()),
                "not scored by every decision maker",
            ),
            (ids(&|one| unranked(one) && one.is_scored()), "held back by what code found"),
            (ids(&|one| one.rank.is_some()), "scored with neutral 5s that nobody gave"),
        ];
        let explanations = reasons.into_iter().filter(|(ids, _)| !ids.is_empty());
        let explanations: Vec<String> =
            explanations.map(|(ids, why)| format!("{why}: {ids}")).collect();
        let found = self.recommended.len();
        Some(format!("{found} of {wanted} moves are recommended ({})", explanations.join("; ")))
    }
}

impl ConsultResult {
    /// All moves, recommended ones first.
    pub fn moves(&self) -> impl Iterator<Item = &RankedMove> {
        self.recommended.iter().chain(&self.other)
    }

    /// The rank of a move. `None` also if a panel judged the moves, because then the stored rank
    /// would order moves within a tier.
    pub fn meaningful_rank(&self, move_id: &str) -> Option<u32> {
        let found = self.moves().find(|one| one.move_id == move_id);
        found.filter(|_| self.verdict.is_none())?.rank
    }
}

/// The outcome after moves were approved: they are ranked with their marks, and their findings no
/// longer need approval.
pub fn approve(outcome: &Outcome, approved: &BTreeSet<String>) -> Outcome {
    let Conclusion::Ranked(ranked) = &outcome.conclusion else { return outcome.clone() };
    let was_placed = ranked.moves().filter(|one| one.rank.is_some());
    let accepted: BTreeSet<String> =
        was_placed.map(|one| &one.move_id).chain(approved).cloned().collect();
    let before =
        MoveRanking { recommended: ranked.recommended.clone(), other: ranked.other.clone() };
    let verdict = ranked.verdict.as_ref().map(|verdict| verdict.approve(&accepted));
    let after = match &verdict {
        Some(verdict) => rank_by_verdict(ranked.moves().cloned(), verdict),
        None => rank(ranked.moves().cloned(), FindingAcceptance::These(&accepted)),
    };
    let mut missing = ranked.missing.clone();
    if verdict.is_none() {
        if let Some(sentence) = before.shortfall() {
            missing.retain(|line| *line != sentence);
        }
        missing.extend(after.shortfall());
    }
    let findings = outcome.findings.iter().map(|finding| accept(finding, approved)).collect();
    let MoveRanking { recommended, other } = after;
    let verdict = verdict.map(Box::new);
    let ranked = ConsultResult { recommended, other, missing, verdict, ..(**ranked).clone() };
    Outcome::new(findings, Conclusion::Ranked(Box::new(ranked)))
}

/// Lowers an accepted finding from `Escalate` to `Warn`.
pub(crate) fn accept(finding: &RunFinding, accepted: &BTreeSet<String>) -> RunFinding {
    let waits =
        finding.severity == FindingSeverity::Escalate && accepted.contains(&finding.subject);
    let severity = if waits { FindingSeverity::Warn } else { finding.severity };
    RunFinding { severity, ..finding.clone() }
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
