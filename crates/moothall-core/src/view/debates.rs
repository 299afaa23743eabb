//! The view of a move and its debate.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::debate::{CalculationResult, DebateDegradation, DebateStance, Objection};
use crate::event::{RoundStatus, RunEventBody};
use crate::sandbox::IsolationClass;
use crate::{EffectId, FindingSeverity, RunFinding};

/// A move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MoveView {
    /// `m7`.
    pub move_id: String,
    /// The title, once its author has finished.
    pub title: Option<String>,
    /// The author: `analyst_3`, or `you`.
    pub analyst: Option<String>,
    /// The claim check.
    pub check: Option<ClaimCheckView>,
    /// Whether the claim check keeps it out of the ranking until it is reviewed.
    pub held: bool,
    /// Whether a reviewer removed it from the debates.
    pub vetoed: bool,
    /// Whether a reviewer edited or added it.
    pub by_person: bool,
    /// The weakest isolation class of its debate.
    pub isolation: Option<IsolationClass>,
    /// The rounds started.
    pub rounds: Vec<RoundView>,
    /// The last message.
    pub last_turn: Option<TurnView>,
    /// The scores.
    pub scored: Option<MoveScores>,
    /// The calculations of its debate, in the order in which they ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<CalculationResult>>"))]
    pub calculations: Vec<CalculationResult>,
}

/// One round of a debate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RoundView {
    /// The number, starting at 1.
    pub round: u32,
    /// Which side has answered.
    pub status: Option<RoundStatus>,
    /// By decision maker; `all` for the shared opening.
    pub threads: BTreeMap<String, ThreadRoundView>,
}

/// One round of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ThreadRoundView {
    /// The critic's turn.
    pub critic: Option<EffectId>,
    /// The decision maker's turn.
    pub reply: Option<EffectId>,
    /// The decision maker's stance.
    pub stance: Option<DebateStance>,
}

/// A message in a debate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TurnView {
    /// The call.
    pub turn_id: EffectId,
    /// The time.
    pub at: String,
    /// The decision maker of the thread, or `all`.
    pub thread: String,
    /// The round, starting at 1.
    pub round: u32,
    /// `critic` or the decision maker.
    pub role: String,
    /// The beginning of the message.
    pub preview: String,
    /// The decision maker's stance.
    pub stance: Option<DebateStance>,
    /// The cited evidence.
    pub cites: Vec<String>,
}

/// The scores of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MoveScores {
    /// The sum of all scores; `None` if a decision maker gave none.
    pub score: Option<u32>,
    /// The highest possible sum.
    pub out_of: u32,
    /// Scores by decision maker and metric.
    pub breakdown: BTreeMap<String, BTreeMap<String, u8>>,
    /// The difference between the highest and the lowest sum of a decision maker.
    pub spread: u32,
    /// The number of rounds completed by every thread.
    pub rounds_done: u32,
    /// Problems of the debate.
    pub degraded: Vec<DebateDegradation>,
    /// The hardest open objection.
    pub key_objection: Option<Objection>,
    /// Why each decision maker gave its scores; empty in runs of version 0.1.
    pub reasoning: BTreeMap<String, String>,
}

impl MoveView {
    pub(crate) fn new(move_id: &str) -> Self {
        Self {
            move_id: move_id.to_owned(),
            title: None,
            analyst: None,
            check: None,
            held: false,
            vetoed: false,
            by_person: false,
            isolation: None,
            rounds: Vec::new(),
            last_turn: None,
            scored: None,
            calculations: Vec::new(),
        }
    }

    pub(crate) fn checked(&mut self, check: ClaimCheckView) {
        let is_grave = check.findings.iter().any(|one| one.severity >= FindingSeverity::Escalate);
        self.held = is_grave && !check.rewrite;
        self.check = Some(check);
    }

    /// Finds the round, or inserts it in order.
    pub(crate) fn round(&mut self, round: u32) -> &mut RoundView {
        let at = match self.rounds.binary_search_by_key(&round, |one| one.round) {
            Ok(at) => at,
            Err(at) => {
                self.rounds.insert(at, RoundView { round, status: None, threads: BTreeMap::new() });
                at
            }
        };
        &mut self.rounds[at]
    }

    pub(crate) fn scored(&mut self, body: &RunEventBody) {
        let RunEventBody::SandboxScored {
            score,
            out_of,
            breakdown,
            rounds_done,
            degraded,
            key_objection,
            reasoning,
            ..
        } = body
        else {
            return;
        };
        let given = breakdown.values().filter(|scores| !scores.is_empty());
        let sums = given.map(|scores| scores.values().map(|s| u32::from(*s)).sum());
        let (least, most) =
            sums.fold((u32::MAX, 0), |(least, most), sum: u32| (least.min(sum), most.max(sum)));
        self.scored = Some(MoveScores {
            score: DebateDegradation::is_scored(degraded).then_some(*score),
            out_of: *out_of,
            breakdown: breakdown.clone(),
            spread: most.saturating_sub(least),
            rounds_done: *rounds_done,
            degraded: degraded.clone(),
            key_objection: key_objection.clone(),
            reasoning: reasoning.clone(),
        });
    }
}

impl RoundView {
    pub(crate) fn add_turn(&mut self, turn: &TurnView) {
        let cell = self.threads.entry(turn.thread.clone()).or_default();
        match turn.role.as_str() {
            "critic" => cell.critic = Some(turn.turn_id.clone()),
            _ => {
                cell.reply = Some(turn.turn_id.clone());
                cell.stance = turn.stance;
            }
        }
    }
}

/// The claim check of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ClaimCheckView {
    /// `F1.md`, `m3.md`.
    pub document: String,
    /// The number of numbers found.
    pub numbers: u32,
    /// How many of them are supported or marked as assumptions.
    pub supported: u32,
    /// Findings about the others.
    pub findings: Vec<RunFinding>,
    /// Whether the author is asked to rewrite it.
    pub rewrite: bool,
}
