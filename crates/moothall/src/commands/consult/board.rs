//! Where a consultation stands, folded from its events. Nothing here reads a clock or a terminal.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::consult::EvidenceSource;
use moothall_core::debate::Stance;
use moothall_core::model::Usage;
use moothall_core::sandbox::IsolationClass;
use moothall_core::view::{asks_again, move_number, move_of};
use moothall_core::{
    EffectId, MicroUsd, PauseReason, RoundStatus, RunEventBody, Severity, Verdict,
};
use moothall_store::StoredEvent;

/// Layers: gather, infer, analyse, debate, rank.
pub(super) const LAYERS: [&str; 5] = ["gather", "infer", "analyse", "debate", "rank"];

/// The layer in which moves are debated.
const DEBATE: usize = 3;

/// The most lanes and agents that are drawn; a committee makes fewer.
const MOST_LANES: usize = 64;

/// The most reasons that are kept for walls that were not as wanted.
const MOST_REASONS: usize = 8;

/// Where a consultation stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Board {
    pub(super) ticker: String,
    pub(super) source: EvidenceSource,
    pub(super) rounds: u32,
    pub(super) moves: u32,
    /// Calls that it takes, without those that ask again.
    pub(super) expected_calls: u32,
    pub(super) layers: [Progress; LAYERS.len()],
    /// Those of the layer that was begun last.
    pub(super) agents: Vec<Agent>,
    /// By the number in the move's id.
    pub(super) lanes: BTreeMap<(u32, String), Lane>,
    /// Calls that came to an end, without those that ask again.
    pub(super) calls: u32,
    /// Calls that asked again or asked for a rewrite.
    pub(super) extra_calls: u32,
    pub(super) failed_calls: u32,
    pub(super) usage: Usage,
    pub(super) cost: MicroUsd,
    pub(super) unpriced_calls: u32,
    /// The weakest walls around any debate.
    pub(super) weakest: Option<IsolationClass>,
    /// Why walls are not what was wanted.
    pub(super) fallbacks: BTreeSet<String>,
    pub(super) last_words: Option<Words>,
    pub(super) end: Option<End>,
    /// Since when, and since how many calls, the pace is measured.
    pace_from: Option<(u64, u32)>,
}

/// How far something is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Progress {
    #[default]
    Waiting,
    Running,
    Done,
}

/// An agent of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Agent {
    pub(super) id: String,
    pub(super) persona: String,
    /// The documents that it made, when it is done.
    pub(super) outputs: Option<Vec<String>>,
}

/// One move and its debate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) title: Option<String>,
    /// Half rounds that are done; nothing where the debate has not begun.
    pub(super) halves: Option<u32>,
    /// The last stance of each decision maker.
    pub(super) stances: BTreeMap<String, Stance>,
    /// What was scored, and out of what.
    pub(super) score: Option<(u32, u32)>,
    pub(super) degraded: bool,
    /// Whether its numbers or citations keep it from being ranked.
    pub(super) held: bool,
    pub(super) class: Option<IsolationClass>,
}

/// The beginning of what was said last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) move_id: String,
    pub(super) role: String,
    pub(super) round: u32,
    pub(super) preview: String,
}

/// Why nothing follows for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Ranked(Verdict),
    Finished(Verdict),
    Failed,
    Cancelled,
    Paused(PauseReason),
}

impl Board {
    /// Something happened.
    pub(super) fn event(&mut self, stored: &StoredEvent) {
        match &stored.event.body {
            RunEventBody::ConsultStarted {
                ticker, rounds, moves, provenance, est_calls, ..
            } => {
                self.ticker.clone_from(ticker);
                self.source = *provenance;
                (self.rounds, self.moves, self.expected_calls) = (*rounds, *moves, *est_calls);
            }
            RunEventBody::LayerStart { layer, .. } => {
                self.layer(*layer, Progress::Running);
                self.agents.clear();
                if usize::from(*layer) == DEBATE {
                    self.pace_from = Some((stored.at_ms, self.calls));
                }
            }
            RunEventBody::LayerComplete { layer, .. } => self.layer(*layer, Progress::Done),
            RunEventBody::AgentStart { agent_id, persona, .. } => {
                if self.agents.len() < MOST_LANES {
                    let (id, persona) = (agent_id.clone(), persona.clone());
                    self.agents.push(Agent { id, persona, outputs: None });
                }
            }
            RunEventBody::AgentComplete { agent_id, outputs, .. } => {
                if let Some(agent) = self.agents.iter_mut().find(|agent| agent.id == *agent_id) {
                    agent.outputs = Some(outputs.clone());
                }
                for document in outputs {
                    if let Some(move_id) = move_of(document) {
                        self.lane(move_id, |_| {});
                    }
                }
            }
            RunEventBody::ClaimChecked { document, flagged, rewrite, .. } => {
                if let Some(move_id) = move_of(document) {
                    let holds =
                        !rewrite && flagged.iter().any(|one| one.severity >= Severity::Escalate);
                    self.lane(move_id, |lane| lane.held = holds);
                }
            }
            RunEventBody::MovesReviewed { vetoed, added, .. } => {
                self.lanes.retain(|(_, move_id), _| !vetoed.contains(move_id));
                added.iter().for_each(|move_id| self.lane(move_id, |_| {}));
            }
            RunEventBody::Isolation { move_id, class, fallback, .. } => {
                self.weakest = Some(self.weakest.map_or(*class, |weakest| weakest.min(*class)));
                if self.fallbacks.len() < MOST_REASONS {
                    self.fallbacks.extend(fallback.iter().cloned());
                }
                self.lane(move_id, |lane| {
                    lane.class = Some(lane.class.map_or(*class, |before| before.min(*class)));
                });
            }
            RunEventBody::SandboxRound { move_id, round, status } => {
                let before = round.saturating_sub(1).saturating_mul(2);
                let halves = match status {
                    RoundStatus::CriticResponding => before,
                    RoundStatus::CriticResponded | RoundStatus::DmResponding => {
                        before.saturating_add(1)
                    }
                    RoundStatus::DmResponded => before.saturating_add(2),
                };
                self.lane(move_id, |lane| lane.halves = lane.halves.max(Some(halves)));
            }
            RunEventBody::SandboxTurn { move_id, round, role, preview, stance, .. } => {
                self.last_words = Some(Words {
                    move_id: move_id.clone(),
                    role: role.clone(),
                    round: *round,
                    preview: preview.clone(),
                });
                if let Some(stance) = stance {
                    self.lane(move_id, |lane| {
                        lane.stances.insert(role.clone(), *stance);
                    });
                }
            }
            RunEventBody::SandboxScored { move_id, score, out_of, degraded, .. } => {
                self.lane(move_id, |lane| {
                    lane.score = Some((*score, *out_of));
                    lane.degraded = !degraded.is_empty();
                });
            }
            RunEventBody::ModelReplied { effect_id, usage, cost_micro_usd, .. } => {
                self.call(effect_id);
                self.usage = self.usage.plus(usage);
                match cost_micro_usd {
                    Some(cost) => self.cost = self.cost.saturating_add(*cost),
                    None => self.unpriced_calls = self.unpriced_calls.saturating_add(1),
                }
            }
            RunEventBody::ModelFailed { effect_id, .. } => {
                self.call(effect_id);
                self.failed_calls = self.failed_calls.saturating_add(1);
            }
            RunEventBody::PipelineComplete { verdict, .. } => {
                self.end = Some(End::Ranked(*verdict));
            }
            RunEventBody::RunFinished { verdict } => self.end = Some(End::Finished(*verdict)),
            RunEventBody::RunFailed { .. } => self.end = Some(End::Failed),
            RunEventBody::RunCancelled => self.end = Some(End::Cancelled),
            RunEventBody::RunPaused { reason, .. } => self.end = Some(End::Paused(*reason)),
            RunEventBody::RunStarted { .. }
            | RunEventBody::OutputRejected { .. }
            | RunEventBody::AttemptStarted { .. }
            | RunEventBody::CodeGenerated { .. }
            | RunEventBody::Executed { .. }
            | RunEventBody::Judged { .. }
            | RunEventBody::Critiqued { .. } => {}
        }
    }

    /// The run goes on in this process from here.
    pub(super) fn go_on(&mut self, at_ms: u64) {
        self.end = None;
        if self.pace_from.is_some() {
            self.pace_from = Some((at_ms, self.calls));
        }
    }

    /// What moves are called; events do not say.
    pub(super) fn name(&mut self, titles: impl IntoIterator<Item = (String, String)>) {
        for (move_id, title) in titles {
            self.lane(&move_id, |lane| lane.title = Some(title.clone()));
        }
    }

    /// Whether there are moves without a name.
    pub(super) fn has_unnamed_moves(&self) -> bool {
        self.lanes.values().any(|lane| lane.title.is_none())
    }

    /// Whether debates are under way and their moves have no names yet.
    pub(super) fn wants_names(&self) -> bool {
        self.layers[DEBATE] == Progress::Running && self.has_unnamed_moves()
    }

    /// Moves that are scored.
    pub(super) fn scored(&self) -> usize {
        self.lanes.values().filter(|lane| lane.score.is_some()).count()
    }

    /// How long the rest takes at the pace of the debates so far; nothing where there is no pace
    /// to speak of.
    pub(super) fn left_ms(&self, now_ms: u64) -> Option<u64> {
        let (from_ms, from_calls) = self.pace_from?;
        let calls = self.calls.saturating_sub(from_calls);
        let left = self.expected_calls.saturating_sub(self.calls);
        if self.end.is_some() || calls < LEAST_CALLS_FOR_PACE {
            return None;
        }
        let took = u128::from(now_ms.saturating_sub(from_ms));
        u64::try_from(took.saturating_mul(u128::from(left)) / u128::from(calls)).ok()
    }

    fn layer(&mut self, layer: u8, progress: Progress) {
        if let Some(place) = self.layers.get_mut(usize::from(layer)) {
            *place = progress;
        }
    }

    fn lane(&mut self, move_id: &str, change: impl FnOnce(&mut Lane)) {
        let key = (move_number(move_id), move_id.to_owned());
        if self.lanes.len() < MOST_LANES || self.lanes.contains_key(&key) {
            change(self.lanes.entry(key).or_default());
        }
    }

    fn call(&mut self, effect_id: &EffectId) {
        let counted = match asks_again(effect_id) {
            true => &mut self.extra_calls,
            false => &mut self.calls,
        };
        *counted = counted.saturating_add(1);
    }
}

/// Fewer calls say nothing about the pace.
const LEAST_CALLS_FOR_PACE: u32 = 8;
