//! A move and its debate.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::debate::{Degradation, Objection, Stance};
use crate::event::{RoundStatus, RunEventBody};
use crate::sandbox::IsolationClass;
use crate::{EffectId, Finding, Severity};

/// A move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MoveView {
    /// `m7`.
    pub move_id: String,
    /// What it is called, when its author is done.
    pub title: Option<String>,
    /// Who proposed it: `analyst_3`, or `you`.
    pub analyst: Option<String>,
    /// What code found in it.
    pub check: Option<Check>,
    /// Whether code keeps it out of the ranking until a person looked.
    pub held: bool,
    /// Whether a person does not want it debated.
    pub vetoed: bool,
    /// Whether a person edited or added it.
    pub by_person: bool,
    /// The weakest walls around its debate.
    pub isolation: Option<IsolationClass>,
    /// Rounds that began.
    pub rounds: Vec<Round>,
    /// The last thing that was said.
    pub last_turn: Option<Turn>,
    /// How it was scored.
    pub scored: Option<Scored>,
}

/// One round of a debate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Round {
    /// From 1.
    pub round: u32,
    /// Who has spoken.
    pub status: Option<RoundStatus>,
    /// By decision maker; `all` for an opening that is the same for everyone.
    pub threads: BTreeMap<String, Cell>,
}

/// One round of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Cell {
    /// The critic's turn.
    pub critic: Option<EffectId>,
    /// The decision maker's.
    pub reply: Option<EffectId>,
    /// Where the decision maker stands.
    pub stance: Option<Stance>,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Turn {
    /// The call.
    pub turn_id: EffectId,
    /// When.
    pub at: String,
    /// The decision maker whose thread it is, or `all`.
    pub thread: String,
    /// From 1.
    pub round: u32,
    /// `critic` or the decision maker.
    pub role: String,
    /// The beginning of it.
    pub preview: String,
    /// Where the decision maker stands.
    pub stance: Option<Stance>,
    /// The evidence that was cited.
    pub cites: Vec<String>,
}

/// The scores of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Scored {
    /// The sum of all scores.
    pub score: u32,
    /// The highest sum there can be.
    pub out_of: u32,
    /// Scores by decision maker and metric.
    pub breakdown: BTreeMap<String, BTreeMap<String, u8>>,
    /// How far the sums of the decision makers are apart.
    pub spread: u32,
    /// Rounds that every thread came through.
    pub rounds_done: u32,
    /// What is not as it should be.
    pub degraded: Vec<Degradation>,
    /// The hardest objection that still stands.
    pub key_objection: Option<Objection>,
}

impl MoveView {
    pub(super) fn new(move_id: &str) -> Self {
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
        }
    }

    pub(super) fn checked(&mut self, check: Check) {
        let is_grave = check.findings.iter().any(|one| one.severity >= Severity::Escalate);
        self.held = is_grave && !check.rewrite;
        self.check = Some(check);
    }

    /// The round, which is put in its place where it is new.
    pub(super) fn round(&mut self, round: u32) -> &mut Round {
        let at = match self.rounds.binary_search_by_key(&round, |one| one.round) {
            Ok(at) => at,
            Err(at) => {
                self.rounds.insert(at, Round { round, status: None, threads: BTreeMap::new() });
                at
            }
        };
        &mut self.rounds[at]
    }

    pub(super) fn scored(&mut self, body: &RunEventBody) {
        let RunEventBody::SandboxScored {
            score,
            out_of,
            breakdown,
            rounds_done,
            degraded,
            key_objection,
            ..
        } = body
        else {
            return;
        };
        let sums = breakdown.values().map(|scores| scores.values().map(|s| u32::from(*s)).sum());
        let (least, most) =
            sums.fold((u32::MAX, 0), |(least, most), sum: u32| (least.min(sum), most.max(sum)));
        self.scored = Some(Scored {
            score: *score,
            out_of: *out_of,
            breakdown: breakdown.clone(),
            spread: most.saturating_sub(least),
            rounds_done: *rounds_done,
            degraded: degraded.clone(),
            key_objection: key_objection.clone(),
        });
    }
}

impl Round {
    pub(super) fn spoke(&mut self, turn: &Turn) {
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

/// What code found in a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Check {
    /// `F1.md`, `m3.md`.
    pub document: String,
    /// Numbers that were read.
    pub numbers: u32,
    /// Of these, supported or marked as assumptions.
    pub supported: u32,
    /// What is flagged.
    pub findings: Vec<Finding>,
    /// Whether its author is asked to write it again.
    pub rewrite: bool,
}
