//! The verdict: moves in tiers, because scores of a panel cannot carry a ranking.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::card_table::{CardTable, CaseKind, PanelCase};
use super::chances::{MoveChances, NormalEstimate, chances};
use super::controls::{ControlReport, MIN_MEMBERS, PanelCheck};
use super::estimate::{
    CaseEstimate, MIN_MOVES, NoiseAllowances, PanelEstimate, VarianceComponents,
};
use super::normal::normal_quantile;
use super::panel_label::PanelLabel;
use crate::consult::RECOMMENDED;

/// A lower chance to be among the best three puts a move behind, in thousandths.
const BEHIND_BELOW: u32 = 50;
/// The chance from which one move counts as better than another, in thousandths.
const TOLD_APART_FROM: u32 = 950;
/// A lower chance to beat doing nothing is reported, in thousandths.
const BEATS_NOTHING_FROM: u32 = 800;

/// Settings of a verdict; probabilities in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictRules {
    /// The probability with which the lead contains the best move.
    pub lead: u32,
    /// The probability with which an interval contains the true value.
    pub interval: u32,
    /// Noise that the cards do not show.
    pub allowances: NoiseAllowances,
}

impl Default for VerdictRules {
    fn default() -> Self {
        Self { lead: 900, interval: 950, allowances: NoiseAllowances::default() }
    }
}

/// A tier, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum VerdictTier {
    /// The fewest moves that together contain the best one with the required probability.
    Lead,
    /// The other moves.
    Middle,
    /// Moves whose chance to be among the best three is below 5 %.
    Behind,
}

/// What the panel found out about one case. Scores are in tenths of a point, chances in
/// thousandths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MoveEstimate {
    /// `m7`; `m0` for doing nothing.
    pub move_id: String,
    /// Its part in the verdict.
    pub kind: CaseKind,
    /// The estimated score.
    pub score: i32,
    /// The interval around the score; `None` with too few moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<ScoreInterval>,
    /// Chance to be the best; `None` if it is in no tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance_best: Option<u32>,
    /// Chance to be among the best three moves; `None` if it is in no tier and for doing nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance_top3: Option<u32>,
    /// Chance to be better than doing nothing; `None` if that was not scored or is this case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance_above_do_nothing: Option<u32>,
    /// Number of debates that the panel scored.
    pub debates: u32,
    /// The tier; `None` for a move that is held back, and with too few moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<VerdictTier>,
}

impl MoveEstimate {
    /// Whether the panel did not show that the move is better than doing nothing.
    pub fn is_not_shown_to_beat_doing_nothing(&self) -> bool {
        self.chance_above_do_nothing.is_some_and(|chance| chance < BEATS_NOTHING_FROM)
    }
}

/// The interval that contains the true value with the configured probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ScoreInterval {
    /// In tenths of a point, within the scale.
    pub low: i32,
    /// In tenths of a point, within the scale.
    pub high: i32,
}

/// Two moves that the panel can tell apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MovePair {
    /// The better move.
    pub better: String,
    /// The worse move.
    pub worse: String,
}

/// The verdict in one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum VerdictHeadline {
    /// Moves lead, and doing nothing is not among them.
    Lead {
        /// Their number.
        moves: u32,
    },
    /// Doing nothing is in the lead.
    DoNothingInLead,
    /// The panel failed its controls.
    PanelFailed,
    /// There are too few moves for tiers.
    TooFewMoves,
}

impl VerdictHeadline {
    /// The sentence that every output shows.
    pub fn text(self) -> String {
        match self {
            Self::Lead { moves: 1 } => "1 move leads".to_owned(),
            Self::Lead { moves } => {
                format!("{moves} moves lead; the panel cannot tell them apart")
            }
            Self::DoNothingInLead => {
                "doing nothing cannot be told apart from the best moves".to_owned()
            }
            Self::PanelFailed => "no verdict: the panel failed its controls".to_owned(),
            Self::TooFewMoves => format!("no tiers: fewer than {MIN_MOVES} moves were scored"),
        }
    }
}

/// The verdict of a panel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TierList {
    /// The verdict in one sentence.
    pub headline: VerdictHeadline,
    /// How independent the panel is.
    pub panel: PanelLabel,
    /// The panel's mean score over the first debates, in tenths of a point: estimates are pulled
    /// towards it.
    pub mean_score: i32,
    /// All scored cases, in the order of the table.
    pub estimates: Vec<MoveEstimate>,
    /// Cases without a card, in the order of the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_scored: Vec<String>,
    /// Pairs that differ with 95 % confidence, in the order of the table.
    pub told_apart: Vec<MovePair>,
    /// Members whose cards were left out because more than a fifth are missing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub members_with_missing_cards: BTreeSet<String>,
    /// The planted controls and what follows from them.
    pub controls: ControlReport,
    /// Where the differences between scores come from.
    pub components: VarianceComponents,
    /// Noise that the cards do not show.
    pub allowances: NoiseAllowances,
    /// The share of the differences between scores that is not noise, in thousandths.
    pub reliability: u32,
}

impl TierList {
    /// Derives the verdict from the cards. Members that miss too many controls or too many cards
    /// are left out first; if fewer than three are left, the panel fails.
    pub fn of(
        table: &CardTable,
        rules: &VerdictRules,
        panel: PanelLabel,
        controls: ControlReport,
    ) -> Self {
        let members_with_missing_cards = table.members_with_missing_cards();
        let left_out = members_with_missing_cards.union(&controls.left_out).cloned().collect();
        let without = table.without(&left_out);
        let is_large_enough = without.judges().len() >= MIN_MEMBERS;
        // A failed panel decides nothing; all of its cards are shown for inspection.
        let table = if is_large_enough { without } else { table.clone() };
        let check = if is_large_enough { controls.check } else { PanelCheck::Failed };
        let controls = ControlReport { check, ..controls };
        let estimate = PanelEstimate::of(&table, &rules.allowances);
        let scored: Vec<ScoredCase<'_>> = ScoredCase::all(&table, &estimate);
        let is_scored = |case: &PanelCase| scored.iter().any(|one| one.case == case);
        let not_scored = table.cases().iter().filter(|case| !is_scored(case));
        let not_scored = not_scored.map(|case| case.move_id.clone()).collect();
        let scale = IntervalScale::of(&table, &estimate, rules);
        let mut estimates: Vec<MoveEstimate> =
            scored.iter().map(|one| one.estimate(&scored, &scale)).collect();
        assign_tiers(&scored, &mut estimates, rules.lead);
        Self {
            headline: headline(&estimates, controls.check),
            panel,
            mean_score: in_tenths(estimate.centre),
            estimates,
            not_scored,
            told_apart: told_apart(&scored),
            members_with_missing_cards,
            controls,
            components: estimate.components,
            allowances: rules.allowances,
            reliability: in_thousandths(estimate.reliability),
        }
    }

    /// The moves of a tier, and doing nothing if it is in it, by estimate. The order within a tier
    /// means nothing.
    pub fn tier(&self, tier: VerdictTier) -> Vec<&MoveEstimate> {
        by_estimate(self.estimates.iter().filter(|one| one.tier == Some(tier)))
    }

    /// All moves by estimate, best first; without doing nothing.
    pub fn moves_by_estimate(&self) -> Vec<&MoveEstimate> {
        by_estimate(self.estimates.iter().filter(|one| one.kind != CaseKind::DoNothing))
    }

    /// Up to three moves of the lead, by estimate; none if the panel failed its controls.
    pub fn recommended(&self) -> Vec<&MoveEstimate> {
        let mut moves = self.tier(VerdictTier::Lead);
        moves.retain(|one| one.kind == CaseKind::Move && self.controls.check != PanelCheck::Failed);
        moves.truncate(RECOMMENDED);
        moves
    }
}

/// Equal scores stay in the order of the table.
fn by_estimate<'a>(moves: impl Iterator<Item = &'a MoveEstimate>) -> Vec<&'a MoveEstimate> {
    let mut moves: Vec<&MoveEstimate> = moves.collect();
    moves.sort_by_key(|one| Reverse(one.score));
    moves
}

fn headline(estimates: &[MoveEstimate], check: PanelCheck) -> VerdictHeadline {
    let lead = || estimates.iter().filter(|one| one.tier == Some(VerdictTier::Lead));
    match u32::try_from(lead().count()).unwrap_or(u32::MAX) {
        _ if check == PanelCheck::Failed => VerdictHeadline::PanelFailed,
        0 => VerdictHeadline::TooFewMoves,
        _ if lead().any(|one| one.kind == CaseKind::DoNothing) => VerdictHeadline::DoNothingInLead,
        moves => VerdictHeadline::Lead { moves },
    }
}

/// A case with its estimate.
struct ScoredCase<'a> {
    case: &'a PanelCase,
    found: CaseEstimate,
    /// `None` with too few moves.
    contestant: Option<NormalEstimate>,
}

impl<'a> ScoredCase<'a> {
    fn all(table: &'a CardTable, estimate: &PanelEstimate) -> Vec<Self> {
        let scored = |(case, found): (&'a PanelCase, &Option<CaseEstimate>)| {
            let found = (*found)?;
            let is_move = case.kind != CaseKind::DoNothing;
            let contestant =
                found.variance.map(|variance| NormalEstimate::new(found.mean, variance, is_move));
            Some(Self { case, found, contestant })
        };
        table.cases().iter().zip(&estimate.cases).filter_map(scored).collect()
    }

    /// The case if it can be in a tier.
    fn in_tiers(&self) -> Option<&NormalEstimate> {
        self.contestant.as_ref().filter(|_| self.case.kind != CaseKind::HeldMove)
    }

    /// The estimate, without what depends on the other moves' chances.
    fn estimate(&self, all: &[Self], scale: &IntervalScale) -> MoveEstimate {
        let do_nothing = all.iter().find(|one| one.case.kind == CaseKind::DoNothing);
        let do_nothing = do_nothing.filter(|_| self.case.kind != CaseKind::DoNothing);
        let do_nothing = do_nothing.and_then(|one| one.contestant);
        let above = self.contestant.zip(do_nothing).map(|(one, other)| one.chance_above(&other));
        MoveEstimate {
            move_id: self.case.move_id.clone(),
            kind: self.case.kind,
            score: in_tenths(scale.centre + self.found.mean),
            interval: self.found.variance.map(|variance| scale.interval(self.found.mean, variance)),
            chance_best: None,
            chance_top3: None,
            chance_above_do_nothing: above.map(in_thousandths),
            debates: u32::try_from(self.found.debates).unwrap_or(u32::MAX),
            tier: None,
        }
    }
}

/// Converts estimates to scores with intervals.
struct IntervalScale {
    centre: f64,
    lowest: f64,
    highest: f64,
    /// Standard deviations on each side.
    width: f64,
}

impl IntervalScale {
    fn of(table: &CardTable, estimate: &PanelEstimate, rules: &VerdictRules) -> Self {
        let (lowest, highest) = table.scale().range();
        let width = normal_quantile(0.5 + f64::from(rules.interval) / 2_000.0);
        Self { centre: estimate.centre, lowest, highest, width }
    }

    fn interval(&self, mean: f64, variance: f64) -> ScoreInterval {
        let (middle, reach) = (self.centre + mean, self.width * variance.sqrt());
        let tenths = |points: f64| in_tenths(points.max(self.lowest).min(self.highest));
        ScoreInterval { low: tenths(middle - reach), high: tenths(middle + reach) }
    }
}

/// Compares only rounded values: the last bit of a number must not decide.
fn assign_tiers(scored: &[ScoredCase<'_>], estimates: &mut [MoveEstimate], lead: u32) {
    let contestants: Vec<NormalEstimate> =
        scored.iter().filter_map(|one| one.in_tiers().copied()).collect();
    let mut chances = chances(&contestants).into_iter();
    for (one, estimate) in scored.iter().zip(&mut *estimates) {
        let found = one.in_tiers().and_then(|_| chances.next());
        let Some(MoveChances { best, top }) = found else { continue };
        let is_behind = in_thousandths(top) < BEHIND_BELOW;
        estimate.chance_best = Some(in_thousandths(best));
        estimate.chance_top3 = (estimate.kind == CaseKind::Move).then(|| in_thousandths(top));
        estimate.tier = Some(if is_behind { VerdictTier::Behind } else { VerdictTier::Middle });
    }
    let mut candidates: Vec<&mut MoveEstimate> =
        estimates.iter_mut().filter(|one| one.tier.is_some()).collect();
    candidates.sort_by_key(|one| (Reverse(one.chance_best), Reverse(one.score)));
    let mut together = 0;
    for one in candidates {
        if together >= lead {
            break;
        }
        together += one.chance_best.unwrap_or(0);
        one.tier = Some(VerdictTier::Lead);
    }
}

fn told_apart(scored: &[ScoredCase<'_>]) -> Vec<MovePair> {
    let in_tiers = || scored.iter().filter_map(|one| Some((&one.case.move_id, one.in_tiers()?)));
    let pairs = in_tiers().flat_map(|one| in_tiers().map(move |other| (one, other)));
    let pairs = pairs.filter(|((_, one), (_, other))| {
        in_thousandths(one.chance_above(other)) >= TOLD_APART_FROM
    });
    pairs
        .map(|((better, _), (worse, _))| MovePair { better: better.clone(), worse: worse.clone() })
        .collect()
}

fn in_tenths(points: f64) -> i32 {
    (points * 10.0).round() as i32
}

fn in_thousandths(probability: f64) -> u32 {
    (probability * 1_000.0).round() as u32
}

#[cfg(test)]
#[path = "tiers_tests.rs"]
mod tests;
