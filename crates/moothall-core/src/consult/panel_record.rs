//! The panel's cards and the verdict that follows from them.
//!
//! The record has everything that the tiers depend on and is part of the result, so anyone can
//! derive them again, also after a person has approved a move that was held back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::forecasting::ForecastRecord;
use super::result::RECOMMENDED;
use crate::verdict::{
    CardScale, CardTable, CaseKind, ControlCase, ControlReport, InvalidCard, MoveEstimate,
    PanelCard, PanelCase, PanelCheck, PanelJudge, PanelLabel, StabilityReport, TierList,
    VerdictHeadline, VerdictRules, VerdictTier, control_scores,
};

/// What a person approves to accept the verdict of a panel that failed its controls.
pub const VERDICT_APPROVAL: &str = "verdict";

/// Everything that a verdict follows from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelRecord {
    /// Ids of the scored metrics.
    pub metrics: Vec<String>,
    /// The highest score of a move.
    pub top_score: u32,
    /// The members, with their models.
    pub judges: Vec<PanelJudge>,
    /// How independent they are.
    pub label: PanelLabel,
    /// Settings of the verdict.
    pub rules: VerdictRules,
    /// The scored cases, by number.
    pub cases: Vec<PanelCase>,
    /// The cards, without reasoning: that is in the answers.
    pub cards: Vec<PanelCard>,
    /// The planted controls, with their cards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<ControlCase>,
}

impl PanelRecord {
    /// Derives the verdict.
    pub fn tiers(&self) -> Result<TierList, InvalidCard> {
        let table = self.table()?;
        let controls = ControlReport::of(&table, &self.controls)?;
        Ok(TierList::of(&table, &self.rules, self.label, controls))
    }

    /// The panel's mean score of each planted control, in tenths of a point, on the scale of the
    /// moves' scores. Unlike those, it is not pulled towards the mean.
    pub fn control_scores(&self) -> BTreeMap<String, i32> {
        let table = self.table().ok();
        table.map(|table| control_scores(&table, &self.controls)).unwrap_or_default()
    }

    pub(crate) fn table(&self) -> Result<CardTable, InvalidCard> {
        let scale = CardScale::new(self.metrics.iter().cloned(), self.top_score);
        let mut table = CardTable::new(scale, self.judges.clone(), self.cases.clone())?;
        self.cards.iter().try_for_each(|card| table.add(card))?;
        Ok(table)
    }

    /// The same record after a person approved these moves.
    fn approved(&self, approved: &BTreeSet<String>) -> Self {
        let case = |case: &PanelCase| match case.kind {
            CaseKind::HeldMove if approved.contains(&case.move_id) => {
                PanelCase { kind: CaseKind::Move, ..case.clone() }
            }
            _ => case.clone(),
        };
        Self { cases: self.cases.iter().map(case).collect(), ..self.clone() }
    }
}

/// The verdict of a panel, with what it follows from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelVerdict {
    /// Tiers, intervals and controls.
    pub tiers: TierList,
    /// Finished stages: 1 after the first debates, and one for each stage of repeats.
    pub stages: u32,
    /// The cards.
    pub record: PanelRecord,
    /// Whether a person accepted the verdict although the panel failed its controls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    /// Chances about later filings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecasts: Option<Box<ForecastRecord>>,
    /// How well the pooled verdicts agree, if everything was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<StabilityReport>,
}

impl PanelVerdict {
    /// The verdict after a number of stages; `None` if the cards do not belong to the record.
    pub fn of(record: PanelRecord, stages: u32) -> Option<Self> {
        Some(Self {
            tiers: record.tiers().ok()?,
            stages,
            record,
            approved: false,
            stability: None,
            forecasts: None,
        })
    }

    /// One verdict from the cards of all passes. The controls are those of the pass that missed most,
    /// because a panel that fails once is not reliable.
    pub(crate) fn pooled(passes: &[Self], stages: u32) -> Option<Self> {
        let missed = |one: &Self| {
            let controls = &one.tiers.controls;
            let missed = controls.results.iter().filter(|control| !control.is_caught).count();
            (controls.check, missed)
        };
        // The first of equal passes. Its cards come first: controls are compared with first debates.
        let (at, worst) = passes.iter().enumerate().rev().max_by_key(|(_, one)| missed(one))?;
        let others = passes.iter().enumerate().filter(|(other, _)| *other != at);
        let ordered = std::iter::once(worst).chain(others.map(|(_, one)| one));
        let mut record = worst.record.clone();
        record.cards.clear();
        let mut before: BTreeMap<String, u32> = BTreeMap::new();
        for pass in ordered {
            let mut last = before.clone();
            for card in &pass.record.cards {
                let debate = card.debate + before.get(&card.move_id).copied().unwrap_or(0);
                let latest = last.entry(card.move_id.clone()).or_default();
                *latest = debate.max(*latest);
                record.cards.push(PanelCard { debate, ..card.clone() });
            }
            before = last;
        }
        let tiers: Vec<&TierList> = passes.iter().map(|one| &one.tiers).collect();
        let stability = StabilityReport::of(&tiers);
        Some(Self { stability, ..Self::of(record, stages)? })
    }

    /// The verdict after a person approved these moves, or the verdict itself.
    pub(crate) fn approve(&self, approved: &BTreeSet<String>) -> Self {
        let record = self.record.approved(approved);
        let derived = Self::of(record, self.stages).unwrap_or_else(|| self.clone());
        let is_approved = self.approved || approved.contains(VERDICT_APPROVAL);
        let (stability, forecasts) = (self.stability, self.forecasts.clone());
        Self { approved: is_approved && derived.is_failed(), stability, forecasts, ..derived }
    }

    /// Whether the panel failed its controls.
    pub fn is_failed(&self) -> bool {
        self.tiers.controls.check == PanelCheck::Failed
    }

    /// Up to three moves of the lead, by estimate. None if the panel failed, unless a person
    /// accepted its verdict.
    pub fn recommended(&self) -> Vec<&MoveEstimate> {
        if self.is_failed() && !self.approved {
            return Vec::new();
        }
        // With too few moves for tiers, the best estimates are all there is.
        let mut lead = match self.tiers.headline {
            VerdictHeadline::TooFewMoves => self.tiers.moves_by_estimate(),
            _ => self.tiers.tier(VerdictTier::Lead),
        };
        lead.retain(|one| one.kind == CaseKind::Move);
        lead.truncate(RECOMMENDED);
        lead
    }

    /// All moves: by tier and estimate, then those without a tier by estimate.
    pub fn order(&self) -> Vec<&MoveEstimate> {
        let mut moves = self.tiers.moves_by_estimate();
        // No tier comes last; the sort is stable, so estimates order the rest.
        moves.sort_by_key(|one| (one.tier.is_none(), one.tier));
        moves
    }

    /// The ids of all scored moves, best first.
    pub(crate) fn by_estimate(&self) -> Vec<String> {
        self.tiers.moves_by_estimate().into_iter().map(|one| one.move_id.clone()).collect()
    }

    /// The estimate of a move.
    pub fn estimate(&self, move_id: &str) -> Option<&MoveEstimate> {
        self.tiers.estimates.iter().find(|one| one.move_id == move_id)
    }
}

#[cfg(test)]
#[path = "panel_record_tests.rs"]
mod tests;
