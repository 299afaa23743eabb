//! How a consultation reaches its verdict: who is on the panel, which debates are repeated, and
//! which controls are planted.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::board::panel;
use super::committee::{Committee, CommitteeMember, InvalidCommittee, count};
use crate::model::ModelName;
use crate::verdict::{DebateSchedule, MIN_MOVES, NoiseAllowances, VerdictRules};

/// Limits of a plan. Known-bad moves are made from as many templates.
const MAX_STAGES: usize = 5;
const MAX_AGAIN: u32 = 30;
const MAX_ROUNDS: usize = 20;
const MAX_KNOWN_BAD: usize = 3;
const MAX_WEAKENED: usize = 5;

/// How often debates and panel can be repeated.
pub const MAX_REPEAT: u32 = 5;

/// Members of a panel.
pub(crate) const PANEL_MEMBERS: (usize, usize) = (3, 9);

/// How a new run reaches its verdict if neither its flags nor its committee say so.
const DEFAULT_MODE: VerdictMode = VerdictMode::Full;

/// How a verdict is reached. A committee without a plan has no panel: its moves are ranked by the
/// scores of the decision makers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerdictPlan {
    /// How many of the best moves are debated again in each stage; empty for no repeats.
    pub again: Vec<u32>,
    /// Rounds of a repeated debate, of the debate about doing nothing and of planted moves.
    pub rounds_again: u32,
    /// The repeats end when the lead has at most this many moves.
    pub stop_at: u32,
    /// The probability with which the lead contains the best move.
    pub lead: ChanceLevel,
    /// The probability with which an interval contains the true value.
    pub interval: ChanceLevel,
    /// Planted controls.
    pub controls: ControlPlan,
    /// Whether members also state chances about later filings: one call for each member. New runs
    /// without this key ask for forecasts; stored runs without it were made without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecasts: Option<bool>,
    /// Whether forecasts also ask if the company announces a move of the lead. Never taken from a
    /// committee file: new runs with forecasts ask, and runs of earlier versions did not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub announcements: bool,
    /// Errors of these models that a benchmark measured. Never taken from a committee file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowances: Option<NoiseAllowances>,
    /// How often debates and panel happen for the same moves, to see how well verdicts agree.
    #[serde(skip_serializing_if = "is_once")]
    pub repeat: u32,
}

fn is_once(repeat: &u32) -> bool {
    *repeat == 1
}

impl Default for VerdictPlan {
    fn default() -> Self {
        let DebateSchedule { again, stop_at } = DebateSchedule::default();
        let VerdictRules { lead, interval, .. } = VerdictRules::default();
        Self {
            again,
            rounds_again: 4,
            stop_at,
            lead: ChanceLevel(lead),
            interval: ChanceLevel(interval),
            controls: ControlPlan::default(),
            forecasts: None,
            announcements: false,
            allowances: None,
            repeat: 1,
        }
    }
}

/// How many controls are planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ControlPlan {
    /// Moves that the fact sheet refutes.
    pub known_bad: u32,
    /// Weakened copies of moves.
    pub weakened: u32,
}

impl Default for ControlPlan {
    fn default() -> Self {
        Self { known_bad: 2, weakened: 3 }
    }
}

/// A probability in thousandths. Committee files write it as a fraction (`0.9`), stored runs as
/// thousandths (`900`), because stored forms have no fractions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChanceLevel(u32);

impl ChanceLevel {
    /// In thousandths.
    pub fn thousandths(self) -> u32 {
        self.0
    }
}

impl<'de> Deserialize<'de> for ChanceLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChanceVisitor;

        impl Visitor<'_> for ChanceVisitor {
            type Value = ChanceLevel;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability such as 0.9")
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<ChanceLevel, E> {
                match (0.0..=1.0).contains(&value) {
                    true => Ok(ChanceLevel((value * 1_000.0).round() as u32)),
                    false => Err(E::custom("a probability is between 0 and 1")),
                }
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<ChanceLevel, E> {
                u32::try_from(value).map(ChanceLevel).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<ChanceLevel, E> {
                u32::try_from(value).map(ChanceLevel).map_err(E::custom)
            }
        }

        let level = deserializer.deserialize_any(ChanceVisitor)?;
        match level.0 {
            0..=1_000 => Ok(level),
            _ => Err(D::Error::custom("a probability is between 0 and 1")),
        }
    }
}

impl VerdictPlan {
    /// Which moves are debated again, and when that ends.
    pub fn schedule(&self) -> DebateSchedule {
        DebateSchedule { again: self.again.clone(), stop_at: self.stop_at }
    }

    /// The rules that turn cards into tiers.
    pub fn rules(&self) -> VerdictRules {
        VerdictRules {
            lead: self.lead.0,
            interval: self.interval.0,
            allowances: self.allowances.unwrap_or_default(),
        }
    }

    /// Whether members of this run state chances about later filings.
    pub fn asks_forecasts(&self) -> bool {
        self.forecasts == Some(true)
    }

    pub(crate) fn validate(&self) -> Result<(), InvalidCommittee> {
        count("stages in `again`", self.again.len(), 0, MAX_STAGES)?;
        for moves in &self.again {
            count("moves in a stage of `again`", *moves as usize, 1, MAX_AGAIN as usize)?;
        }
        count("rounds_again", self.rounds_again as usize, 1, MAX_ROUNDS)?;
        count("moves in `stop_at`", self.stop_at as usize, 1, MAX_AGAIN as usize)?;
        count("known-bad controls", self.controls.known_bad as usize, 0, MAX_KNOWN_BAD)?;
        count("weakened controls", self.controls.weakened as usize, 0, MAX_WEAKENED)?;
        count("passes in `repeat`", self.repeat as usize, 1, MAX_REPEAT as usize)?;
        for (what, level) in [("lead", self.lead), ("interval", self.interval)] {
            if !(500..=995).contains(&level.0) {
                return Err(InvalidCommittee::Chance(what));
            }
        }
        Ok(())
    }
}

/// How a verdict is reached, as users choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictMode {
    /// A blind panel scores all moves, and the best ones are debated again.
    Full,
    /// A blind panel scores all moves after one debate each.
    Panel,
    /// No panel: moves are ranked by the scores of the decision makers.
    Off,
}

impl VerdictMode {
    /// The name in flags and stored forms.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Panel => "panel",
            Self::Off => "off",
        }
    }
}

/// What a user requests for the verdict of one run; empty for what the committee says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerdictRequest {
    /// How the verdict is reached.
    pub mode: Option<VerdictMode>,
    /// Moves to debate again in each stage.
    pub again: Option<Vec<u32>>,
    /// Models that are dealt to the members of the panel in turn.
    pub panel_models: Vec<ModelName>,
    /// How often debates and panel happen.
    pub repeat: Option<u32>,
    /// How many moves the run debates; `None` for as many as the committee makes.
    pub moves: Option<u32>,
}

/// Requests for a verdict that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerdictConflict {
    /// Repeats or models for a panel that is turned off.
    #[error("a run without a panel has no repeats and no panel models")]
    NoPanel,
    /// Repeats in a run without repeats.
    #[error("a verdict of one debate for each move has no repeats")]
    NoRepeats,
}

impl Committee {
    /// How a run of this committee reaches its verdict.
    pub fn verdict_mode(&self) -> VerdictMode {
        match &self.verdict {
            None => VerdictMode::Off,
            Some(plan) if plan.again.is_empty() => VerdictMode::Panel,
            Some(_) => VerdictMode::Full,
        }
    }

    /// Why the panel of this committee is less independent than it could be. Members without a model
    /// of their own share the default model with everyone else.
    pub fn panel_warnings(&self) -> Vec<&'static str> {
        if self.panel.is_empty() {
            return Vec::new();
        }
        let members = &self.panel;
        let first =
            |member: &CommitteeMember| member.model.as_ref().map(|models| models.first().clone());
        let models: BTreeSet<Option<ModelName>> = members.iter().map(first).collect();
        let mut debating = self.decision_makers.iter().chain([&self.critic]);
        let is_shared = debating.any(|one| models.contains(&first(one)));
        [
            (models.len() < 3, "the panel has fewer than three models"),
            (is_shared, "a model of the panel also speaks in the debates"),
        ]
        .into_iter()
        .filter_map(|(is, warning)| is.then_some(warning))
        .collect()
    }

    /// The committee as a run without further requests uses it: with a panel and a plan.
    #[must_use]
    pub fn with_default_verdict(mut self) -> Self {
        // An empty request contradicts nothing.
        let _ = self.request_verdict(&VerdictRequest::default());
        self
    }

    /// Applies what a user requests for one new run. Afterwards the committee has either a plan and a
    /// panel or neither, and nothing is left to defaults: the stored run keeps its meaning.
    pub fn request_verdict(&mut self, request: &VerdictRequest) -> Result<(), VerdictConflict> {
        let VerdictRequest { mode, again, panel_models, repeat, moves } = request;
        let is_asked = again.is_some() || !panel_models.is_empty() || repeat.is_some();
        let has_own = self.verdict.is_some() || !self.panel.is_empty();
        let mode = match mode {
            Some(mode) => Some(*mode),
            None if has_own => None,
            None if is_asked => Some(VerdictMode::Full),
            None => Some(DEFAULT_MODE),
        };
        if mode == Some(VerdictMode::Off) {
            (self.verdict, self.panel) = (None, Vec::new());
            return if is_asked { Err(VerdictConflict::NoPanel) } else { Ok(()) };
        }
        let mut plan = self.verdict.take().unwrap_or_default();
        // Allowances of zero would make a verdict look certain.
        plan.allowances = None;
        match (mode, again) {
            (Some(VerdictMode::Panel), Some(_)) => return Err(VerdictConflict::NoRepeats),
            (Some(VerdictMode::Panel), None) => plan.again = Vec::new(),
            (_, Some(again)) => plan.again.clone_from(again),
            (Some(VerdictMode::Full), None) if plan.again.is_empty() => {
                plan.again = DebateSchedule::default().again;
            }
            _ => {}
        }
        // A few moves have no tiers that more debates could separate, and no lead to ask about.
        let moves = moves.unwrap_or_else(|| self.shares(None).iter().sum());
        let has_tiers = usize::try_from(moves).is_ok_and(|moves| moves >= MIN_MOVES);
        if !has_tiers && request.mode != Some(VerdictMode::Full) && again.is_none() {
            plan.again = Vec::new();
        }
        plan.forecasts = Some(plan.forecasts.unwrap_or(true) && has_tiers);
        plan.announcements = plan.asks_forecasts();
        plan.rounds_again = plan.rounds_again.min(self.rounds);
        plan.repeat = repeat.unwrap_or(plan.repeat);
        self.verdict = Some(plan);
        if self.panel.is_empty() {
            self.panel = self.with_free_ids(panel());
        }
        if !panel_models.is_empty() {
            for (member, model) in self.panel.iter_mut().zip(panel_models.iter().cycle()) {
                member.model = Some(model.clone().into());
            }
        }
        Ok(())
    }

    /// Members of a panel that comes from elsewhere. A committee without a panel may use their ids for
    /// other members.
    pub fn with_free_ids(&self, mut members: Vec<CommitteeMember>) -> Vec<CommitteeMember> {
        let others = self.analysts.iter().chain([&self.critic]).chain(&self.decision_makers);
        let taken: BTreeSet<&str> = others.map(|one| one.id.as_str()).collect();
        for member in &mut members {
            while taken.contains(member.id.as_str()) {
                member.id.push('_');
            }
        }
        members
    }
}

#[cfg(test)]
#[path = "verdict_plan_tests.rs"]
mod tests;
