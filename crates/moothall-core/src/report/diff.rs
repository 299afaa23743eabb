//! Differences between two consultations: moves, scores, facts and gaps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::consult_report::ConsultReport;
use crate::consult::{MIN_SIMILAR_PERCENT, Move, RankedMove, similarity_percent};
use crate::evidence::{CalendarDay, DataGap, Fact, FactId, FactSheet};
use crate::verdict::{StabilityReport, TierList, VerdictTier};

/// All differences. Unchanged items are only counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsultDiff {
    /// The dates of the evidence, if they differ.
    pub as_of: Option<ValueDiff<Option<CalendarDay>>>,
    /// Moves that were added, removed or changed, by tier or rank in the second consultation, then
    /// in the first.
    pub moves: Vec<MoveDiff>,
    /// The number of unchanged moves.
    pub moves_unchanged: usize,
    /// Changed facts from filings, for periods that both have.
    pub facts: Vec<FactDiff>,
    /// The number of unchanged facts, including derived ones.
    pub facts_unchanged: usize,
    /// The number of derived facts that differ or exist in only one.
    pub derived_changed: usize,
    /// Periods with facts only in the second, and the number of facts.
    pub periods_appeared: BTreeMap<String, usize>,
    /// Periods with facts only in the first, and the number of facts.
    pub periods_went: BTreeMap<String, usize>,
    /// Descriptions of gaps that only the second has.
    pub gaps_appeared: Vec<String>,
    /// Descriptions of gaps that only the first has.
    pub gaps_went: Vec<String>,
    /// How well the verdicts agree, if panels judged the same moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stability: Option<StabilityReport>,
}

/// A value in the first and in the second consultation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueDiff<T> {
    /// The first value.
    pub before: T,
    /// The second value.
    pub after: T,
}

/// A move in both consultations, or in one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MoveDiff {
    /// The kind of change.
    pub change: DiffKind,
    /// Its position in the first.
    pub before: Option<MovePlace>,
    /// Its position in the second.
    pub after: Option<MovePlace>,
    /// Scores that differ, by decision maker and metric.
    pub scores: Vec<ScoreDiff>,
}

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiffKind {
    /// Only the second has it.
    Appeared,
    /// Only the first has it.
    Went,
    /// Both have it, but it differs.
    Changed,
    /// A later filing restates the value for the same period.
    Restated,
}

/// A move that both consultations have, or one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct MoveMatch {
    /// The move in the first consultation.
    pub before: Option<MovePlace>,
    /// The move in the second consultation.
    pub after: Option<MovePlace>,
}

/// A move and its rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct MovePlace {
    /// `m7`.
    pub move_id: String,
    /// Its title.
    pub title: String,
    /// The rank, starting at 1; `None` if it is held back or was not debated.
    pub rank: Option<u32>,
    /// Whether it is recommended.
    pub recommended: bool,
    /// The sum of its scores.
    pub total: Option<u32>,
    /// Its tier (`lead`, `middle` or `behind`) if a panel judged it. Then the rank means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub tier: Option<String>,
}

/// A score in both consultations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScoreDiff {
    /// The decision maker.
    pub decision_maker: String,
    /// The metric.
    pub metric: String,
    /// The first score.
    pub before: Option<u8>,
    /// The second score.
    pub after: Option<u8>,
}

/// A fact in both consultations, or in one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactDiff {
    /// The fact's id.
    pub id: FactId,
    /// The kind of change.
    pub change: DiffKind,
    /// The first value, formatted for display.
    pub before: Option<String>,
    /// The second value, formatted for display.
    pub after: Option<String>,
}

/// Compares two consultations, finished or not.
///
/// Moves are matched by similarity ([`similarity_percent`]); equal ids only break ties.
pub fn consult_diff(before: &ConsultReport, after: &ConsultReport) -> ConsultDiff {
    let (moves, moves_unchanged) = moves(before, after);
    let facts = facts(sheet(before), sheet(after));
    let (old, new) = (gaps(before), gaps(after));
    let as_of = ValueDiff { before: before.as_of(), after: after.as_of() };
    ConsultDiff {
        as_of: (as_of.before != as_of.after).then_some(as_of),
        moves,
        moves_unchanged,
        facts: facts.listed,
        facts_unchanged: facts.unchanged,
        derived_changed: facts.derived,
        periods_appeared: facts.appeared,
        periods_went: facts.went,
        gaps_appeared: new.difference(&old).cloned().collect(),
        gaps_went: old.difference(&new).cloned().collect(),
        stability: stability(before, after),
    }
}

/// Compares two verdicts of equal moves.
fn stability(before: &ConsultReport, after: &ConsultReport) -> Option<StabilityReport> {
    let tiers = |view: &ConsultReport| Some(view.ranked.as_ref()?.verdict.as_ref()?.tiers.clone());
    let (one, other) = (tiers(before)?, tiers(after)?);
    let judged = |tiers: &TierList| -> BTreeSet<String> {
        tiers.estimates.iter().map(|one| one.move_id.clone()).collect()
    };
    let ids = judged(&one);
    let proposal =
        |view: &ConsultReport, id: &str| view.find_move(id).map(|found| found.proposal.clone());
    let is_equal = |id: &String| proposal(before, id) == proposal(after, id);
    let has_same_moves = ids == judged(&other) && ids.iter().all(is_equal);
    has_same_moves.then(|| StabilityReport::of(&[&one, &other])).flatten()
}

impl ConsultDiff {
    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.as_of.is_none()
            && self.moves.is_empty()
            && self.facts.is_empty()
            && self.derived_changed == 0
            && self.periods_appeared.is_empty()
            && self.periods_went.is_empty()
            && self.gaps_appeared.is_empty()
            && self.gaps_went.is_empty()
    }
}

/// All moves of two consultations, matched by similarity as in [`consult_diff`] and ordered by tier
/// or rank in the second consultation, then in the first.
pub fn matched_moves(before: &ConsultReport, after: &ConsultReport) -> Vec<MoveMatch> {
    let matches = matches(before, after).into_iter();
    let places = matches.map(|(was, is)| MoveMatch {
        before: was.map(|was| move_place(before, was).0),
        after: is.map(|is| move_place(after, is).0),
    });
    let mut places: Vec<MoveMatch> = places.collect();
    places.sort_by_key(|one| (order(&one.after), order(&one.before)));
    places
}

/// Tiers first, in which moves have no order.
fn order(place: &Option<MovePlace>) -> (bool, Option<VerdictTier>, u32) {
    let Some(place) = place else { return (true, None, u32::MAX) };
    let tiers = [VerdictTier::Lead, VerdictTier::Middle, VerdictTier::Behind];
    let tier = tiers.into_iter().find(|tier| place.tier.as_deref() == Some(tier.text()));
    (tier.is_none(), tier, place.rank.unwrap_or(u32::MAX))
}

fn moves(before: &ConsultReport, after: &ConsultReport) -> (Vec<MoveDiff>, usize) {
    let mut compared: Vec<MoveDiff> = Vec::new();
    let mut unchanged = 0;
    for (was, is) in matches(before, after) {
        let was = was.map(|was| move_place(before, was));
        let is = is.map(|is| move_place(after, is));
        let (change, scores) = match (&was, &is) {
            (Some(was), Some(is)) => {
                let scores = scores(&was.1, &is.1);
                let same = |place: &MovePlace| {
                    (place.rank, place.recommended, place.total, place.tier.clone())
                };
                if scores.is_empty() && same(&was.0) == same(&is.0) {
                    unchanged += 1;
                    continue;
                }
                (DiffKind::Changed, scores)
            }
            (Some(_), None) => (DiffKind::Went, Vec::new()),
            (None, _) => (DiffKind::Appeared, Vec::new()),
        };
        let (before, after) = (was.map(|was| was.0), is.map(|is| is.0));
        compared.push(MoveDiff { change, before, after, scores });
    }
    compared.sort_by_key(|one| (order(&one.after), order(&one.before)));
    (compared, unchanged)
}

/// Every move of both consultations: pairs of similar moves, then moves of only the first,
/// then moves of only the second.
fn matches<'a>(
    before: &'a ConsultReport,
    after: &'a ConsultReport,
) -> Vec<(Option<&'a Move>, Option<&'a Move>)> {
    let (old, new): (Vec<&Move>, Vec<&Move>) = (before.moves().collect(), after.moves().collect());
    let (mut old_left, mut new_left) = (vec![true; old.len()], vec![true; new.len()]);
    let mut found = Vec::new();
    for (one, other) in pairs(&old, &new) {
        if old_left[one] && new_left[other] {
            (old_left[one], new_left[other]) = (false, false);
            found.push((Some(old[one]), Some(new[other])));
        }
    }
    let left = |left: Vec<bool>| move |(at, _): &(usize, &&'a Move)| left.get(*at) == Some(&true);
    found.extend(old.iter().enumerate().filter(left(old_left)).map(|(_, one)| (Some(*one), None)));
    found.extend(new.iter().enumerate().filter(left(new_left)).map(|(_, one)| (None, Some(*one))));
    found
}

/// All pairs of similar moves, most similar first.
fn pairs(old: &[&Move], new: &[&Move]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (one, was) in old.iter().enumerate() {
        for (other, is) in new.iter().enumerate() {
            let alike = similarity_percent(was, is);
            if alike >= MIN_SIMILAR_PERCENT {
                pairs.push((Reverse(alike), was.move_id != is.move_id, one, other));
            }
        }
    }
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, _, one, other)| (one, other)).collect()
}

type Scores = BTreeMap<(String, String), u8>;

fn move_place(view: &ConsultReport, of: &Move) -> (MovePlace, Scores) {
    let is_it = |one: &&RankedMove| one.move_id == of.move_id;
    let ranked = view.ranked.as_ref();
    let recommended = ranked.and_then(|ranked| ranked.recommended.iter().find(is_it));
    let found = recommended.or_else(|| ranked?.other.iter().find(is_it));
    let debated = found.and_then(|found| found.debated.as_ref());
    let cards = debated.iter().flat_map(|debated| &debated.scorecards);
    let scores = cards.flat_map(|(who, card)| {
        card.scores.iter().map(move |(metric, score)| ((who.clone(), metric.clone()), *score))
    });
    let verdict = ranked.and_then(|ranked| ranked.verdict.as_ref());
    let tier = verdict.and_then(|verdict| verdict.estimate(&of.move_id)?.tier);
    let place = MovePlace {
        tier: tier.map(|tier| tier.text().to_owned()),
        move_id: of.move_id.clone(),
        title: of.proposal.title.clone(),
        rank: ranked.and_then(|ranked| ranked.meaningful_rank(&of.move_id)),
        recommended: recommended.is_some(),
        total: debated.and_then(|debated| debated.score()),
    };
    (place, scores.collect())
}

fn scores(before: &Scores, after: &Scores) -> Vec<ScoreDiff> {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let compared = keys.into_iter().map(|key| ScoreDiff {
        decision_maker: key.0.clone(),
        metric: key.1.clone(),
        before: before.get(key).copied(),
        after: after.get(key).copied(),
    });
    compared.filter(|score| score.before != score.after).collect()
}

fn sheet(view: &ConsultReport) -> Option<&FactSheet> {
    view.evidence()?.sheet.as_ref()
}

#[derive(Default)]
struct FactDiffs {
    listed: Vec<FactDiff>,
    unchanged: usize,
    derived: usize,
    appeared: BTreeMap<String, usize>,
    went: BTreeMap<String, usize>,
}

fn facts(before: Option<&FactSheet>, after: Option<&FactSheet>) -> FactDiffs {
    let mut compared = FactDiffs::default();
    let periods = |sheet: Option<&FactSheet>| -> BTreeSet<_> {
        sheet.iter().flat_map(|sheet| sheet.facts.keys()).map(|id| id.period).collect()
    };
    let (old, new) = (periods(before), periods(after));
    let keys = |sheet: Option<&'_ FactSheet>| -> BTreeSet<FactId> {
        sheet.iter().flat_map(|sheet| sheet.facts.keys()).cloned().collect()
    };
    for id in keys(before).union(&keys(after)) {
        let was = before.and_then(|sheet| sheet.fact(id));
        let is = after.and_then(|sheet| sheet.fact(id));
        if !old.contains(&id.period) {
            *compared.appeared.entry(id.period.to_string()).or_default() += 1;
        } else if !new.contains(&id.period) {
            *compared.went.entry(id.period.to_string()).or_default() += 1;
        } else if was.map(|fact| fact.value) == is.map(|fact| fact.value) {
            compared.unchanged += 1;
        } else if was.or(is).is_none_or(|fact| fact.filed().is_none()) {
            compared.derived += 1;
        } else {
            compared.listed.push(FactDiff {
                id: id.clone(),
                change: change(was, is),
                before: before.and_then(|sheet| sheet.display_value(id)),
                after: after.and_then(|sheet| sheet.display_value(id)),
            });
        }
    }
    compared
}

fn change(was: Option<&Fact>, is: Option<&Fact>) -> DiffKind {
    match (was, is) {
        (None, _) => DiffKind::Appeared,
        (_, None) => DiffKind::Went,
        (Some(_), Some(is)) => {
            let restated = is.filed().is_some_and(|filed| filed.restated_from.is_some());
            if restated { DiffKind::Restated } else { DiffKind::Changed }
        }
    }
}

/// Missing data of the fact sheet, the evidence and the run.
fn gaps(view: &ConsultReport) -> BTreeSet<String> {
    let of_sheet = sheet(view).into_iter().flat_map(|sheet| &sheet.gaps);
    let of_sheet = of_sheet.map(|DataGap { id, reason }| format!("{id}: {reason}"));
    let of_evidence = view.evidence().into_iter().flat_map(|evidence| evidence.missing.clone());
    let of_run = view.ranked.iter().flat_map(|ranked| ranked.missing.clone());
    of_sheet.chain(of_evidence).chain(of_run).collect()
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
