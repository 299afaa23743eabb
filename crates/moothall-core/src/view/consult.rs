//! The view of a consultation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::debates::{ClaimCheckView, MoveView, RoundView, TurnView};
use crate::consult::{CloseCall, DO_NOTHING_ID, EvidenceSource};
use crate::event::{EvidenceSummary, RunEventBody};
use crate::verdict::{StabilityReport, TierList};

/// Gather, infer, analyze, debate, rank.
const LAYERS: u8 = 5;

/// A consultation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ConsultView {
    /// The ticker, or the company's name if it has none.
    pub ticker: String,
    /// Whether `ticker` is a ticker, so that facts can be looked up.
    pub listed: bool,
    /// The number of rounds per debate.
    pub rounds: u32,
    /// The planned number of moves.
    pub expected_moves: u32,
    /// The source of the evidence.
    pub source: EvidenceSource,
    /// The estimated number of model calls, without retries.
    pub expected_calls: u32,
    /// The company and a summary of the evidence, once gathered.
    pub gathered: Option<EvidenceSummary>,
    /// The layers: gather, infer, analyze, debate, rank.
    pub layers: Vec<StageView>,
    /// The agents, in the order they started.
    pub agents: Vec<AgentView>,
    /// Claim checks of documents other than moves.
    pub checks: Vec<ClaimCheckView>,
    /// The moves, ordered by number.
    pub moves: Vec<MoveView>,
    /// The recommended moves, best first; empty until the end.
    pub recommended: Vec<String>,
    /// All other moves.
    pub other: Vec<String>,
    /// Neighbours in the ranking that are too close to call.
    #[serde(default)]
    pub close_calls: Vec<CloseCall>,
    /// Debates besides the first one of each move: repeats (`m7/d2`), doing nothing (`m0`) and
    /// planted moves (`control-1`).
    #[serde(default)]
    pub other_debates: Vec<MoveView>,
    /// The panel's verdict after the last finished stage.
    #[serde(default)]
    pub verdict: Option<VerdictView>,
}

/// The verdict of a panel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct VerdictView {
    /// The finished stage, starting at 1.
    pub stage: u32,
    /// The moves that are debated again now; empty if the verdict is final.
    pub again: Vec<String>,
    /// The verdict in one sentence.
    pub headline: String,
    /// The warning about the panel's controls, if any.
    pub warning: Option<String>,
    /// How well repeated verdicts agree, if everything was repeated.
    #[serde(default)]
    pub stability: Option<StabilityReport>,
    /// The panel's mean score of each planted control, by its id, in tenths of a point.
    #[serde(default)]
    pub control_scores: BTreeMap<String, i32>,
    /// Tiers, intervals and controls.
    pub tiers: TierList,
}

/// The progress of a layer or an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum StageProgress {
    /// Not started.
    Waiting,
    /// Started.
    Running,
    /// Finished.
    Done,
}

/// A layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct StageView {
    /// The number, starting at 0.
    pub layer: u8,
    /// The progress.
    pub state: StageProgress,
    /// The start time.
    pub started_at: Option<String>,
    /// The end time.
    pub ended_at: Option<String>,
    /// The documents it produced.
    pub artifacts: Vec<String>,
}

/// An agent of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AgentView {
    /// The layer.
    pub layer: u8,
    /// `analyst_3`.
    pub agent_id: String,
    /// The display name.
    pub persona: String,
    /// The progress.
    pub state: StageProgress,
    /// The start time.
    pub started_at: Option<String>,
    /// The end time.
    pub ended_at: Option<String>,
    /// The documents it produced.
    pub outputs: Vec<String>,
}

impl ConsultView {
    /// The initial view; `None` if the event does not start a consultation.
    pub(crate) fn new(body: &RunEventBody) -> Option<Self> {
        let RunEventBody::ConsultStarted { ticker, listed, rounds, moves, provenance, est_calls } =
            body
        else {
            return None;
        };
        let layer = |layer| StageView {
            layer,
            state: StageProgress::Waiting,
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
            close_calls: Vec::new(),
            other_debates: Vec::new(),
            verdict: None,
        })
    }

    pub(crate) fn apply(&mut self, body: &RunEventBody, at: &str) {
        match body {
            RunEventBody::LayerStart { layer, .. } => {
                if let Some(layer) = self.layers.get_mut(usize::from(*layer)) {
                    layer.state = StageProgress::Running;
                    layer.started_at = Some(at.to_owned());
                }
            }
            RunEventBody::LayerComplete { layer, artifacts, gathered, .. } => {
                if let Some(gathered) = gathered {
                    self.gathered = Some(gathered.as_ref().clone());
                }
                if let Some(layer) = self.layers.get_mut(usize::from(*layer)) {
                    layer.state = StageProgress::Done;
                    layer.ended_at = Some(at.to_owned());
                    layer.artifacts.clone_from(artifacts);
                }
            }
            RunEventBody::AgentStart { layer, agent_id, persona } => self.agents.push(AgentView {
                layer: *layer,
                agent_id: agent_id.clone(),
                persona: persona.clone(),
                state: StageProgress::Running,
                started_at: Some(at.to_owned()),
                ended_at: None,
                outputs: Vec::new(),
            }),
            RunEventBody::AgentComplete { agent_id, outputs, titles, .. } => {
                if let Some(agent) = self.agents.iter_mut().find(|one| one.agent_id == *agent_id) {
                    agent.state = StageProgress::Done;
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
                let check = ClaimCheckView {
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
                let turn = TurnView {
                    turn_id: effect_id.clone(),
                    at: at.to_owned(),
                    thread: thread.clone(),
                    round: *round,
                    role: role.clone(),
                    preview: preview.clone(),
                    stance: *stance,
                    cites: cites.clone(),
                };
                self.round(move_id, *round).add_turn(&turn);
                self.one(move_id).last_turn = Some(turn);
            }
            RunEventBody::Calculated { move_id, calculation, .. } => {
                self.one(move_id).calculations.push((**calculation).clone());
            }
            RunEventBody::SandboxScored { move_id, .. } => self.one(move_id).scored(body),
            RunEventBody::VerdictUpdated {
                stage,
                again,
                headline,
                warning,
                stability,
                control_scores,
                tiers,
            } => {
                self.verdict = Some(VerdictView {
                    stage: *stage,
                    again: again.clone(),
                    headline: headline.clone(),
                    warning: warning.clone(),
                    stability: *stability,
                    control_scores: control_scores.clone(),
                    tiers: (**tiers).clone(),
                });
            }
            RunEventBody::PipelineComplete { recommended, other, close_calls, .. } => {
                self.recommended.clone_from(recommended);
                self.other.clone_from(other);
                self.close_calls.clone_from(close_calls);
            }
            _ => {}
        }
    }

    fn checked(&mut self, check: ClaimCheckView) {
        if let Some(move_id) = move_of(&check.document) {
            self.one(move_id).checked(check);
            return;
        }
        match self.checks.iter_mut().find(|one| one.document == check.document) {
            Some(before) => *before = check,
            None => self.checks.push(check),
        }
    }

    fn round(&mut self, move_id: &str, round: u32) -> &mut RoundView {
        self.one(move_id).round(round)
    }

    /// Finds the move, or inserts it in order; another debate is added at the end.
    fn one(&mut self, move_id: &str) -> &mut MoveView {
        if !is_move_id(move_id) || move_id == DO_NOTHING_ID {
            let list = &mut self.other_debates;
            let known = list.iter().position(|one| one.move_id == move_id);
            let at = known.unwrap_or(list.len());
            if known.is_none() {
                list.push(MoveView::new(move_id));
            }
            return &mut list[at];
        }
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

/// The move id of a move's document: `m7` for `m7.md`.
pub fn move_of(document: &str) -> Option<&str> {
    document.strip_suffix(".md").filter(|id| is_move_id(id))
}

/// Whether this is the id of a move, such as `m7`.
pub fn is_move_id(id: &str) -> bool {
    let digits = id.strip_prefix('m').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number to sort moves by, so that `m10` comes after `m9`; ids without a number come last.
pub fn move_number(move_id: &str) -> u32 {
    move_id.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(u32::MAX)
}
