//! Planted controls: cases with a known order, which a working panel gets right.
//!
//! A known-bad move must score below the median of the moves, and a weakened copy below its
//! original. Controls detect a broken panel, not a mediocre one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::card_table::{CardTable, CaseKind, InvalidCard};
use crate::debate::Scorecard;

/// Fewer controls than this cannot show that a panel works.
const MIN_CONTROLS: usize = 4;
/// A member that misses this many controls is left out.
const MISSES_OF_A_MEMBER: usize = 3;
/// A panel with fewer members fails.
pub(crate) const MIN_MEMBERS: usize = 3;

/// A planted case and its cards, by member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlCase {
    /// Unique among the controls.
    pub id: String,
    /// The expected order, and the original of a copy.
    pub kind: ControlKind,
    /// The members' cards.
    pub cards: BTreeMap<String, Scorecard>,
    /// The cards of the original, scored in the same form; empty for a known-bad move.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub original_cards: BTreeMap<String, Scorecard>,
}

/// How a control was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ControlKind {
    /// A move that the fact sheet refutes.
    KnownBad,
    /// A weakened copy of this move.
    WeakenedCopy(String),
}

/// Whether a control was caught.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ControlResult {
    /// The control.
    pub id: String,
    /// How it was made.
    pub kind: ControlKind,
    /// Whether the mean of the whole panel has the expected order.
    pub is_caught: bool,
    /// Members whose own cards have the expected order.
    pub caught_by: BTreeSet<String>,
}

/// What the controls show about the panel, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum PanelCheck {
    /// All controls were caught.
    Passed,
    /// One was missed, or there were too few.
    Doubtful,
    /// Two or more were missed, or too few members are left.
    Failed,
}

/// The results of all controls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ControlReport {
    /// What the controls show.
    pub check: PanelCheck,
    /// Each control.
    pub results: Vec<ControlResult>,
    /// Members that missed three or more controls. Their cards do not count, unless the panel
    /// fails because too few members are left.
    pub left_out: BTreeSet<String>,
}

impl ControlReport {
    /// Compares the controls with the first debates in `table`. The cards of all members count,
    /// because leaving out members first would let a panel pass by luck.
    pub fn of(table: &CardTable, controls: &[ControlCase]) -> Result<Self, InvalidCard> {
        let panel = PanelScores::of(table);
        let results: Vec<ControlResult> =
            controls.iter().map(|control| panel.check(control)).collect::<Result<_, _>>()?;
        let missed = results.iter().filter(|result| !result.is_caught).count();
        let check = match missed {
            0 if results.len() >= MIN_CONTROLS => PanelCheck::Passed,
            0 | 1 => PanelCheck::Doubtful,
            _ => PanelCheck::Failed,
        };
        let misses = |member: &str| {
            results.iter().filter(|result| !result.caught_by.contains(member)).count()
        };
        let members = table.judges().iter().map(|judge| &judge.id);
        let left_out = members.filter(|member| misses(member) >= MISSES_OF_A_MEMBER);
        Ok(Self { check, left_out: left_out.cloned().collect(), results })
    }

    /// The warning that every output shows next to the verdict; `None` if the panel passed.
    pub fn warning(&self) -> Option<String> {
        let planted = self.results.len();
        let missed: Vec<String> =
            self.results.iter().filter(|one| !one.is_caught).map(|one| one.kind.text()).collect();
        let count = missed.len();
        let reason = match (self.check, count) {
            (PanelCheck::Passed, _) => return None,
            (PanelCheck::Doubtful, 0) => {
                format!("Only {planted} controls were planted; {MIN_CONTROLS} are needed.")
            }
            (PanelCheck::Doubtful, _) => format!(
                "The panel missed {count} of {planted} planted controls ({}).",
                missed.join(", ")
            ),
            (PanelCheck::Failed, 0 | 1) => {
                format!("Fewer than {MIN_MEMBERS} members of the panel gave usable scores.")
            }
            (PanelCheck::Failed, _) => {
                format!("The panel missed {count} of {planted} planted controls.")
            }
        };
        let consequence = match self.check {
            PanelCheck::Failed => {
                "No move is recommended; the order below is shown for inspection only."
            }
            PanelCheck::Passed | PanelCheck::Doubtful => "Treat the tiers with care.",
        };
        Some(format!("{reason} {consequence}"))
    }
}

/// The panel's mean score of each control, in tenths of a point. A control without cards has none.
pub fn control_scores(table: &CardTable, controls: &[ControlCase]) -> BTreeMap<String, i32> {
    let panel = PanelScores::of(table);
    let centre = mean(panel.leniency.iter().filter_map(|mean| *mean));
    let score = |control: &ControlCase| {
        let points = panel.points(control, &control.cards).ok()?;
        let points = panel.panel_mean(&points)? + centre?;
        Some((control.id.clone(), (points * 10.0).round() as i32))
    };
    controls.iter().filter_map(score).collect()
}

impl ControlKind {
    /// The control as users see it: `weakened copy of m2`.
    pub fn text(&self) -> String {
        match self {
            Self::KnownBad => "known-bad move".to_owned(),
            Self::WeakenedCopy(original) => format!("weakened copy of {original}"),
        }
    }
}

/// Points of one case by member, in the order of the table's members.
type MemberPoints = Vec<Option<f64>>;

/// The scores of the moves' first debates.
struct PanelScores<'a> {
    table: &'a CardTable,
    model_of: Vec<usize>,
    models: usize,
    /// Each member's mean over the moves.
    leniency: MemberPoints,
    /// By move.
    moves: Vec<MemberPoints>,
}

impl<'a> PanelScores<'a> {
    fn of(table: &'a CardTable) -> Self {
        let (model_of, models) = table.models();
        let cases = table.cases().iter().enumerate();
        let moves = cases.filter(|(_, case)| case.kind != CaseKind::DoNothing);
        let moves: Vec<MemberPoints> =
            moves.filter_map(|(index, _)| table.points(index).into_iter().next()).collect();
        let own = |judge| moves.iter().filter_map(move |one: &MemberPoints| *one.get(judge)?);
        let leniency = (0..model_of.len()).map(|judge| mean(own(judge))).collect();
        Self { table, model_of, models, leniency, moves }
    }

    fn check(&self, control: &ControlCase) -> Result<ControlResult, InvalidCard> {
        let cards = self.points(control, &control.cards)?;
        let original = self.points(control, &control.original_cards)?;
        let is_below = |value: Option<f64>, line: Option<f64>| {
            value.zip(line).is_some_and(|(value, line)| value < line)
        };
        let (line, lines): (Option<f64>, MemberPoints) = match control.kind {
            ControlKind::KnownBad => {
                let of_panel = self.moves.iter().filter_map(|one| self.panel_mean(one));
                let own = |judge| self.moves.iter().filter_map(move |one| *one.get(judge)?);
                let lines = (0..self.model_of.len()).map(|judge| median(own(judge).collect()));
                (median(of_panel.collect()), lines.collect())
            }
            ControlKind::WeakenedCopy(_) => (self.panel_mean(&original), original),
        };
        let members = self.table.judges().iter().zip(cards.iter().zip(&lines));
        let caught_by = members.filter(|(_, (card, line))| is_below(**card, **line));
        Ok(ControlResult {
            id: control.id.clone(),
            kind: control.kind.clone(),
            is_caught: is_below(self.panel_mean(&cards), line),
            caught_by: caught_by.map(|(judge, _)| judge.id.clone()).collect(),
        })
    }

    /// The cards in points; a missing card is `None`.
    fn points(
        &self,
        control: &ControlCase,
        cards: &BTreeMap<String, Scorecard>,
    ) -> Result<MemberPoints, InvalidCard> {
        let judges = self.table.judges();
        let is_member = |id: &String| judges.iter().any(|judge| judge.id == *id);
        if let Some(stranger) = cards.keys().find(|id| !is_member(id)) {
            return Err(InvalidCard::UnknownMember(stranger.clone()));
        }
        let scale = self.table.scale();
        let points =
            |card: Option<&Scorecard>, member: &String| match card.map(|one| scale.sum(one)) {
                Some(Ok(sum)) => Ok(sum.map(|sum| scale.points(sum))),
                Some(Err(())) => {
                    Err(InvalidCard::Scores { move_id: control.id.clone(), member: member.clone() })
                }
                None => Ok(None),
            };
        judges.iter().map(|judge| points(cards.get(&judge.id), &judge.id)).collect()
    }

    /// The mean over models of each model's mean. Centred: a missing card of a lenient
    /// member does not lower it.
    fn panel_mean(&self, points: &MemberPoints) -> Option<f64> {
        let centred = points.iter().zip(&self.leniency);
        let centred: MemberPoints = centred.map(|(card, mean)| Some((*card)? - (*mean)?)).collect();
        let of_model = |model: usize| {
            let own = centred.iter().zip(&self.model_of).filter(move |(_, of)| **of == model);
            mean(own.filter_map(|(card, _)| *card))
        };
        mean((0..self.models).filter_map(of_model))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values.get((values.len() - 1) / 2)?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
#[path = "controls_tests.rs"]
mod tests;
