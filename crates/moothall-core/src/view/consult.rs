//! Where a consultation stands.

use serde::{Deserialize, Serialize};

use super::debates::{Check, MoveView, Round, Turn};
use crate::consult::EvidenceSource;
use crate::event::{Gathered, RunEventBody};

/// Layers: gather, infer, analyse, debate, rank.
const LAYERS: u8 = 5;

/// A consultation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ConsultView {
    /// The ticker, or the name of a company that has none.
    pub ticker: String,
    /// Whether `ticker` is a ticker, under which there are facts.
    pub listed: bool,
    /// Rounds of each debate.
    pub rounds: u32,
    /// Moves that there shall be.
    pub expected_moves: u32,
    /// Where the evidence comes from.
    pub source: EvidenceSource,
    /// Calls that it takes, without those that ask again.
    pub expected_calls: u32,
    /// Whom it is about and what there is to go on, when that was gathered.
    pub gathered: Option<Gathered>,
    /// Gather, infer, analyse, debate, rank.
    pub layers: Vec<Layer>,
    /// In the order in which they began.
    pub agents: Vec<Agent>,
    /// Documents other than moves whose claims were checked.
    pub checks: Vec<Check>,
    /// By number.
    pub moves: Vec<MoveView>,
    /// The recommended moves, best first; empty before the end.
    pub recommended: Vec<String>,
    /// All others.
    pub other: Vec<String>,
}

/// How far something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Progress {
    /// Not begun.
    Waiting,
    /// Begun.
    Running,
    /// Done.
    Done,
}

/// A layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Layer {
    /// From 0.
    pub layer: u8,
    /// How far it is.
    pub state: Progress,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// The documents that it made.
    pub artifacts: Vec<String>,
}

/// An agent of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Agent {
    /// The layer.
    pub layer: u8,
    /// `analyst_3`.
    pub agent_id: String,
    /// What people call it.
    pub persona: String,
    /// How far it is.
    pub state: Progress,
    /// When it began.
    pub started_at: Option<String>,
    /// When it was done.
    pub ended_at: Option<String>,
    /// The documents that it made.
    pub outputs: Vec<String>,
}

impl ConsultView {
    /// As a consultation starts; nothing for any other event.
    pub(super) fn new(body: &RunEventBody) -> Option<Self> {
        let RunEventBody::ConsultStarted { ticker, listed, rounds, moves, provenance, est_calls } =
            body
        else {
            return None;
        };
        let layer = |layer| Layer {
            layer,
            state: Progress::Waiting,
            started_at: None,
            ended_at: None,
            artifacts: Vec::new(),
        };
        Some(Self {
            ticker: ticker.clone(),
            listed: *listed,
            rounds: *rounds,
            expected_moves: *moves,
            source: *provenance,
            expected_calls: *est_calls,
            gathered: None,
            layers: (0..LAYERS).map(layer).collect(),
            agents: Vec::new(),
            checks: Vec::new(),
            moves: Vec::new(),
            recommended: Vec::new(),
            other: Vec::new(),
        })
    }

    pub(super) fn apply(&mut self, body: &RunEventBody, at: &str) {
        match body {
            RunEventBody::LayerStart { layer, .. } => {
                if let Some(layer) = self.layers.get_mut(usize::from(*layer)) {
                    layer.state = Progress::Running;
                    layer.started_at = Some(at.to_owned());
                }
            }
            RunEventBody::LayerComplete { layer, artifacts, gathered, .. } => {
                if let Some(gathered) = gathered {
                    self.gathered = Some(gathered.as_ref().clone());
                }
                if let Some(layer) = self.layers.get_mut(usize::from(*layer)) {
                    layer.state = Progress::Done;
                    layer.ended_at = Some(at.to_owned());
                    layer.artifacts.clone_from(artifacts);
                }
            }
            RunEventBody::AgentStart { layer, agent_id, persona } => self.agents.push(Agent {
                layer: *layer,
                agent_id: agent_id.clone(),
                persona: persona.clone(),
                state: Progress::Running,
                started_at: Some(at.to_owned()),
                ended_at: None,
                outputs: Vec::new(),
            }),
            RunEventBody::AgentComplete { agent_id, outputs, titles, .. } => {
                if let Some(agent) = self.agents.iter_mut().find(|one| one.agent_id == *agent_id) {
                    agent.state = Progress::Done;
                    agent.ended_at = Some(at.to_owned());
                    agent.outputs.clone_from(outputs);
                }
                for move_id in outputs.iter().filter_map(|document| move_of(document)) {
                    let one = self.one(move_id);
                    one.analyst = Some(agent_id.clone());
                    one.title = titles.get(move_id).cloned();
                }
            }
            RunEventBody::ClaimChecked {
                document, numbers, supported, flagged, rewrite, ..
            } => {
                let check = Check {
                    document: document.clone(),
                    numbers: *numbers,
                    supported: *supported,
                    findings: flagged.clone(),
                    rewrite: *rewrite,
                };
                self.checked(check);
            }
            RunEventBody::MovesReviewed { vetoed, edited, added, titles, .. } => {
                vetoed.iter().for_each(|move_id| self.one(move_id).vetoed = true);
                for move_id in edited.iter().chain(added) {
                    let one = self.one(move_id);
                    one.title = titles.get(move_id).cloned().or_else(|| one.title.take());
                    one.by_person = true;
                }
            }
            RunEventBody::Isolation { move_id, class, .. } => {
                let one = self.one(move_id);
                one.isolation = Some(one.isolation.map_or(*class, |before| before.min(*class)));
            }
            RunEventBody::SandboxRound { move_id, round, status } => {
                self.round(move_id, *round).status = Some(*status);
            }
            RunEventBody::SandboxTurn {
                effect_id,
                move_id,
                thread,
                round,
                role,
                preview,
                stance,
                cites,
            } => {
                let turn = Turn {
                    turn_id: effect_id.clone(),
                    at: at.to_owned(),
                    thread: thread.clone(),
                    round: *round,
                    role: role.clone(),
                    preview: preview.clone(),
                    stance: *stance,
                    cites: cites.clone(),
                };
                self.round(move_id, *round).spoke(&turn);
                self.one(move_id).last_turn = Some(turn);
            }
            RunEventBody::SandboxScored { move_id, .. } => self.one(move_id).scored(body),
            RunEventBody::PipelineComplete { recommended, other, .. } => {
                self.recommended.clone_from(recommended);
                self.other.clone_from(other);
            }
            _ => {}
        }
    }

    fn checked(&mut self, check: Check) {
        if let Some(move_id) = move_of(&check.document) {
            self.one(move_id).checked(check);
            return;
        }
        match self.checks.iter_mut().find(|one| one.document == check.document) {
            Some(before) => *before = check,
            None => self.checks.push(check),
        }
    }

    fn round(&mut self, move_id: &str, round: u32) -> &mut Round {
        self.one(move_id).round(round)
    }

    /// The move, which is put in its place where it is new.
    fn one(&mut self, move_id: &str) -> &mut MoveView {
        let place = |one: &MoveView| (move_number(&one.move_id), one.move_id.clone());
        let wanted = (move_number(move_id), move_id.to_owned());
        let at = match self.moves.binary_search_by_key(&wanted, place) {
            Ok(at) => at,
            Err(at) => {
                self.moves.insert(at, MoveView::new(move_id));
                at
            }
        };
        &mut self.moves[at]
    }
}

/// The move that a document is: `m7` of `m7.md`.
pub fn move_of(document: &str) -> Option<&str> {
    let id = document.strip_suffix(".md")?;
    let digits = id.strip_prefix('m')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(id)
}

/// `m10` comes after `m9`; what has no number comes last.
pub fn move_number(move_id: &str) -> u32 {
    move_id.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(u32::MAX)
}
