//! The panel's cards by move, debate and member, checked when they are added.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::consult::committee::TOP_LEVEL;
use crate::debate::{ScoreBasis, Scorecard};

/// A member with fewer than this share of its cards, in percent, is left out.
const MIN_CARDS_PERCENT: usize = 80;

/// A member of the panel, with the model that answers for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelJudge {
    /// The member's id: `P1`.
    pub id: String,
    /// The model, by its full name. Members with the same model share its errors.
    pub model: String,
}

/// What is scored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelCase {
    /// `m7`.
    pub move_id: String,
    /// Whether it can be in a tier.
    pub kind: CaseKind,
}

/// The part that a case has in the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CaseKind {
    /// A move.
    Move,
    /// A move that checks hold back: it is debated and scored, but in no tier.
    HeldMove,
    /// Doing nothing: it is in a tier, but never debated again and never recommended.
    DoNothing,
}

/// The scores that one member gave one move after one debate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelCard {
    /// The move.
    pub move_id: String,
    /// The number of its debate, starting at 1. Repeats of a whole run count on.
    pub debate: u32,
    /// The member's id.
    pub member: String,
    /// The scores; a card without scores counts as missing.
    pub scorecard: Scorecard,
}

/// Why cards are not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCard {
    /// Two members or two cases have the same id.
    #[error("the panel has `{0}` twice")]
    RepeatedId(String),
    /// A card for a case that is not in the table.
    #[error("a card scores `{0}`, which the panel does not score")]
    UnknownCase(String),
    /// A card from a member that is not on the panel.
    #[error("a card is from `{0}`, who is not on the panel")]
    UnknownMember(String),
    /// Two cards of one member for the same debate.
    #[error("`{member}` scored debate {debate} of `{move_id}` twice")]
    RepeatedCard {
        /// The move.
        move_id: String,
        /// The number of the debate.
        debate: u32,
        /// The member.
        member: String,
    },
    /// Scores that are not those of the metrics, or neutral scores that no member gave.
    #[error("the card of `{member}` for `{move_id}` does not score every metric from 1 to 10")]
    Scores {
        /// The move.
        move_id: String,
        /// The member.
        member: String,
    },
}

/// The scale of the cards: which metrics, and how many points the highest scores are worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardScale {
    metrics: BTreeSet<String>,
    top_score: u32,
}

impl CardScale {
    /// `top_score` is the highest score of a move: 120 for the built-in committee.
    pub fn new(metrics: impl IntoIterator<Item = String>, top_score: u32) -> Self {
        Self { metrics: metrics.into_iter().collect(), top_score }
    }

    /// The lowest and the highest score in points.
    pub(crate) fn range(&self) -> (f64, f64) {
        let top = f64::from(self.top_score);
        (top / f64::from(TOP_LEVEL), top)
    }

    /// The card's sum of scores, `None` if it is missing, `Err` if it is not a valid card.
    pub(crate) fn sum(&self, card: &Scorecard) -> Result<Option<u32>, ()> {
        if card.basis == ScoreBasis::NotScored {
            return Ok(None);
        }
        let known = card.scores.len() == self.metrics.len()
            && card.scores.keys().all(|metric| self.metrics.contains(metric));
        let in_range = card.scores.values().all(|score| (1..=TOP_LEVEL).contains(score));
        if known && in_range && card.basis != ScoreBasis::Neutral && !self.metrics.is_empty() {
            Ok(Some(card.sum()))
        } else {
            Err(())
        }
    }

    /// A sum of scores in points: the mean of the metrics, on the scale of `top_score`.
    pub(crate) fn points(&self, sum: u32) -> f64 {
        let most = self.metrics.len() as f64 * f64::from(TOP_LEVEL);
        f64::from(sum) * f64::from(self.top_score) / most
    }
}

/// Cards of one debate: a sum of scores for each member, in the order of the members.
type DebateCards = Vec<Option<u32>>;

/// All cards of a panel. The order of the members and of the cases is part of the table: results
/// are computed in this order, and the earlier case wins a tie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardTable {
    scale: CardScale,
    judges: Vec<PanelJudge>,
    cases: Vec<PanelCase>,
    /// By case, then by the number of the debate.
    cards: Vec<BTreeMap<u32, DebateCards>>,
}

impl CardTable {
    /// A table without cards, for cases in the order of their numbers. Doing nothing is a case,
    /// planted controls are not.
    pub fn new(
        scale: CardScale,
        judges: Vec<PanelJudge>,
        cases: Vec<PanelCase>,
    ) -> Result<Self, InvalidCard> {
        reject_repeated(judges.iter().map(|judge| &judge.id))?;
        reject_repeated(cases.iter().map(|case| &case.move_id))?;
        let cards = vec![BTreeMap::new(); cases.len()];
        Ok(Self { scale, judges, cases, cards })
    }

    /// Adds a card. A card without scores only notes that the debate took place.
    pub fn add(&mut self, card: &PanelCard) -> Result<(), InvalidCard> {
        let PanelCard { move_id, debate, member, scorecard } = card;
        let judge = self.judges.iter().position(|judge| judge.id == *member);
        let judge = judge.ok_or_else(|| InvalidCard::UnknownMember(member.clone()))?;
        let sum = self.scale.sum(scorecard).map_err(|()| InvalidCard::Scores {
            move_id: move_id.clone(),
            member: member.clone(),
        })?;
        let case = self.cases.iter().position(|case| case.move_id == *move_id);
        let debates = case.and_then(|case| self.cards.get_mut(case));
        let debates = debates.ok_or_else(|| InvalidCard::UnknownCase(move_id.clone()))?;
        let cards = debates.entry(*debate).or_insert_with(|| vec![None; self.judges.len()]);
        let cell = cards.get_mut(judge);
        let cell = cell.ok_or_else(|| InvalidCard::UnknownMember(member.clone()))?;
        if cell.is_some() {
            let (move_id, member) = (move_id.clone(), member.clone());
            return Err(InvalidCard::RepeatedCard { move_id, debate: *debate, member });
        }
        *cell = sum;
        Ok(())
    }

    /// The members, in order.
    pub fn judges(&self) -> &[PanelJudge] {
        &self.judges
    }

    /// The cases, in order.
    pub fn cases(&self) -> &[PanelCase] {
        &self.cases
    }

    /// The scale of the cards.
    pub fn scale(&self) -> &CardScale {
        &self.scale
    }

    /// The same table without the cards of these members.
    pub fn without(&self, members: &BTreeSet<String>) -> Self {
        let stays: Vec<bool> = self.judges.iter().map(|one| !members.contains(&one.id)).collect();
        let judges = kept(&self.judges, &stays);
        let debates = |debates: &BTreeMap<u32, DebateCards>| {
            debates.iter().map(|(number, cards)| (*number, kept(cards, &stays))).collect()
        };
        let cards = self.cards.iter().map(debates).collect();
        Self { scale: self.scale.clone(), judges, cases: self.cases.clone(), cards }
    }

    /// Members that did not give more than a fifth of their cards.
    pub fn members_with_missing_cards(&self) -> BTreeSet<String> {
        let debates = || self.cards.iter().flat_map(BTreeMap::values);
        let wanted = debates().count();
        let is_short = |(index, _): &(usize, &PanelJudge)| {
            let given = debates().filter(|cards| matches!(cards.get(*index), Some(Some(_))));
            given.count() * 100 < wanted * MIN_CARDS_PERCENT
        };
        let short = self.judges.iter().enumerate().filter(is_short);
        short.map(|(_, judge)| judge.id.clone()).collect()
    }

    /// For each member, the index of its model; and the number of models.
    pub(crate) fn models(&self) -> (Vec<usize>, usize) {
        let mut names: Vec<&str> = Vec::new();
        let mut models = Vec::with_capacity(self.judges.len());
        for judge in &self.judges {
            let known = names.iter().position(|name| *name == judge.model);
            models.push(known.unwrap_or(names.len()));
            if known.is_none() {
                names.push(&judge.model);
            }
        }
        (models, names.len())
    }

    /// The cards of a case in points, by debate and member; debates without a card are left out.
    pub(crate) fn points(&self, case: usize) -> Vec<Vec<Option<f64>>> {
        let debates = self.cards.get(case).into_iter().flat_map(BTreeMap::values);
        let points = |cards: &DebateCards| {
            cards.iter().map(|sum| sum.map(|sum| self.scale.points(sum))).collect()
        };
        debates.filter(|cards| cards.iter().any(Option::is_some)).map(points).collect()
    }
}

fn kept<T: Clone>(all: &[T], stays: &[bool]) -> Vec<T> {
    all.iter().zip(stays).filter(|(_, stays)| **stays).map(|(one, _)| one.clone()).collect()
}

fn reject_repeated<'a>(ids: impl Iterator<Item = &'a String>) -> Result<(), InvalidCard> {
    let mut seen = BTreeSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(InvalidCard::RepeatedId(id.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "card_table_tests.rs"]
mod tests;
