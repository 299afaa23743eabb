//! The state of a consultation, folded from its events. Pure: reads neither the clock nor the
//! terminal.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::consult::{DO_NOTHING_ID, EvidenceSource};
use moothall_core::debate::{DebateDegradation, DebateStance};
use moothall_core::model::TokenUsage;
use moothall_core::sandbox::IsolationClass;
use moothall_core::view::{FallbackUse, is_extra_call, is_move_id, move_number, move_of};
use moothall_core::{
    EffectId, FindingSeverity, MicroUsd, PauseReason, RoundStatus, RunEventBody, RunVerdict,
};
use moothall_store::StoredEvent;

use crate::display::{self, LAYERS};

/// Index of the debate stage.
const DEBATE: usize = 3;

/// Limit for lanes and agents on the screen. Committees have fewer.
const MAX_LANES: usize = 64;

/// Limit for the reasons kept for weaker isolation.
const MAX_FALLBACK_REASONS: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConsultProgress {
    pub(crate) ticker: String,
    pub(crate) source: EvidenceSource,
    pub(crate) rounds: u32,
    pub(crate) moves: u32,
    /// Expected number of calls, without retries.
    pub(crate) expected_calls: u32,
    pub(crate) layers: [StageState; LAYERS.len()],
    /// Agents of the stage that started last.
    pub(crate) agents: Vec<AgentProgress>,
    /// Ordered by the number in the move's id.
    pub(crate) lanes: BTreeMap<(u32, String), DebateProgress>,
    /// Completed calls, without retries.
    pub(crate) calls: u32,
    /// Retries and rewrites.
    pub(crate) extra_calls: u32,
    pub(crate) failed_calls: u32,
    pub(crate) usage: TokenUsage,
    pub(crate) cost: MicroUsd,
    pub(crate) unpriced_calls: u32,
    /// The weakest isolation of any debate.
    pub(crate) weakest: Option<IsolationClass>,
    /// Why isolation is weaker than configured.
    pub(crate) fallbacks: BTreeSet<String>,
    /// Answers that fallbacks gave instead of unavailable models.
    pub(crate) model_fallbacks: Vec<FallbackUse>,
    /// Answers that could not be used, and the problem of the last one.
    pub(crate) rejected_answers: u32,
    pub(crate) last_rejection: Option<String>,
    pub(crate) last_turn: Option<TurnPreview>,
    pub(crate) end: Option<ConsultEndState>,
    /// Start time and call count for the estimate of the remaining time.
    rate_baseline: Option<(u64, u32)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum StageState {
    #[default]
    Waiting,
    Running,
    Done,
}

/// An agent of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentProgress {
    pub(crate) id: String,
    pub(crate) persona: String,
    /// The documents it produced; `None` until it is done.
    pub(crate) outputs: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DebateProgress {
    pub(crate) title: Option<String>,
    /// Completed half rounds; `None` if the debate has not started.
    pub(crate) halves: Option<u32>,
    /// The side that is writing now.
    pub(crate) writing: Option<DebateSide>,
    /// The last stance of each decision maker.
    pub(crate) stances: BTreeMap<String, DebateStance>,
    /// Whether the debate is over.
    pub(crate) is_over: bool,
    /// The score and the maximum score, if every decision maker gave scores.
    pub(crate) score: Option<(u32, u32)>,
    pub(crate) degraded: bool,
    /// Whether findings on its numbers or citations prevent it from being ranked.
    pub(crate) held: bool,
    pub(crate) class: Option<IsolationClass>,
}

/// A side of a debate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DebateSide {
    Critic,
    DecisionMakers,
}

/// The beginning of the last debate turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnPreview {
    pub(crate) move_id: String,
    pub(crate) role: String,
    pub(crate) round: u32,
    pub(crate) preview: String,
}

/// Why the run is not progressing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConsultEndState {
    Ranked(RunVerdict),
    Finished(RunVerdict),
    Failed,
    Cancelled,
    Paused(PauseReason),
}

impl ConsultProgress {
    pub(crate) fn event(&mut self, stored: &StoredEvent) {
        FallbackUse::count(&mut self.model_fallbacks, &stored.event.body);
        match &stored.event.body {
            RunEventBody::ConsultStarted {
                ticker, rounds, moves, provenance, est_calls, ..
            } => {
                self.ticker.clone_from(ticker);
                self.source = *provenance;
                (self.rounds, self.moves, self.expected_calls) = (*rounds, *moves, *est_calls);
            }
            RunEventBody::LayerStart { layer, .. } => {
                self.layer(*layer, StageState::Running);
                self.agents.clear();
                if usize::from(*layer) == DEBATE {
                    self.rate_baseline = Some((stored.at_ms, self.calls));
                }
            }
            RunEventBody::LayerComplete { layer, .. } => self.layer(*layer, StageState::Done),
            RunEventBody::AgentStart { agent_id, persona, .. } => {
                if self.agents.len() < MAX_LANES {
                    let (id, persona) = (agent_id.clone(), persona.clone());
                    self.agents.push(AgentProgress { id, persona, outputs: None });
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
                    let holds = !rewrite
                        && flagged.iter().any(|one| one.severity >= FindingSeverity::Escalate);
                    self.lane(move_id, |lane| lane.held = holds);
                }
            }
            RunEventBody::MovesReviewed { vetoed, added, .. } => {
                self.lanes.retain(|(_, move_id), _| !vetoed.contains(move_id));
                added.iter().for_each(|move_id| self.lane(move_id, |_| {}));
            }
            RunEventBody::Isolation { move_id, class, fallback, .. } => {
                self.weakest = Some(self.weakest.map_or(*class, |weakest| weakest.min(*class)));
                if self.fallbacks.len() < MAX_FALLBACK_REASONS {
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
                let writing = match status {
                    RoundStatus::CriticResponding => Some(DebateSide::Critic),
                    RoundStatus::DmResponding => Some(DebateSide::DecisionMakers),
                    RoundStatus::CriticResponded | RoundStatus::DmResponded => None,
                };
                self.lane(move_id, |lane| {
                    lane.halves = lane.halves.max(Some(halves));
                    lane.writing = writing;
                });
            }
            RunEventBody::SandboxTurn { move_id, round, role, preview, stance, .. } => {
                self.last_turn = Some(TurnPreview {
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
                    lane.is_over = true;
                    lane.writing = None;
                    lane.score =
                        DebateDegradation::is_scored(degraded).then_some((*score, *out_of));
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
                self.end = Some(ConsultEndState::Ranked(*verdict));
            }
            RunEventBody::RunFinished { verdict } => {
                self.end = Some(ConsultEndState::Finished(*verdict))
            }
            RunEventBody::RunFailed { .. } => self.end = Some(ConsultEndState::Failed),
            RunEventBody::RunCancelled => self.end = Some(ConsultEndState::Cancelled),
            RunEventBody::RunPaused { reason, .. } => {
                self.end = Some(ConsultEndState::Paused(*reason))
            }
            RunEventBody::OutputRejected { effect_id, problems } => {
                self.rejected_answers = self.rejected_answers.saturating_add(1);
                let rejection = display::rejection(effect_id, problems);
                self.last_rejection = Some(format!("{effect_id}: {rejection}"));
            }
            RunEventBody::RunStarted { .. }
            | RunEventBody::AttemptStarted { .. }
            | RunEventBody::CodeGenerated { .. }
            | RunEventBody::Executed { .. }
            | RunEventBody::Judged { .. }
            | RunEventBody::Critiqued { .. }
            | RunEventBody::Calculated { .. }
            | RunEventBody::VerdictUpdated { .. } => {}
        }
    }

    /// Called when this process resumes the run.
    pub(crate) fn mark_resumed(&mut self, at_ms: u64) {
        self.end = None;
        if self.rate_baseline.is_some() {
            self.rate_baseline = Some((at_ms, self.calls));
        }
    }

    /// Sets the titles of moves, which events do not contain.
    pub(crate) fn name(&mut self, titles: impl IntoIterator<Item = (String, String)>) {
        for (move_id, title) in titles {
            self.lane(&move_id, |lane| lane.title = Some(title.clone()));
        }
    }

    pub(crate) fn has_unnamed_moves(&self) -> bool {
        self.lanes.values().any(|lane| lane.title.is_none())
    }

    /// Whether debates have started and moves lack titles.
    pub(crate) fn needs_titles(&self) -> bool {
        self.layers[DEBATE] == StageState::Running && self.has_unnamed_moves()
    }

    pub(crate) fn scored(&self) -> usize {
        self.lanes.values().filter(|lane| lane.is_over).count()
    }

    /// Remaining time at the rate of the debates so far; `None` while there are too few calls for
    /// an estimate.
    pub(crate) fn remaining_ms(&self, now_ms: u64) -> Option<u64> {
        let (from_ms, from_calls) = self.rate_baseline?;
        let calls = self.calls.saturating_sub(from_calls);
        let left = self.expected_calls.saturating_sub(self.calls);
        if self.end.is_some() || calls < MIN_CALLS_FOR_ESTIMATE {
            return None;
        }
        let took = u128::from(now_ms.saturating_sub(from_ms));
        u64::try_from(took.saturating_mul(u128::from(left)) / u128::from(calls)).ok()
    }

    fn layer(&mut self, layer: u8, progress: StageState) {
        if let Some(place) = self.layers.get_mut(usize::from(layer)) {
            *place = progress;
        }
    }

    /// Changes the lane of a move. Repeats, doing nothing and planted moves have none.
    fn lane(&mut self, move_id: &str, change: impl FnOnce(&mut DebateProgress)) {
        if !is_move_id(move_id) || move_id == DO_NOTHING_ID {
            return;
        }
        let key = (move_number(move_id), move_id.to_owned());
        if self.lanes.len() < MAX_LANES || self.lanes.contains_key(&key) {
            change(self.lanes.entry(key).or_default());
        }
    }

    fn call(&mut self, effect_id: &EffectId) {
        let counted = match is_extra_call(effect_id) {
            true => &mut self.extra_calls,
            false => &mut self.calls,
        };
        *counted = counted.saturating_add(1);
    }
}

/// Fewer calls give no useful estimate.
const MIN_CALLS_FOR_ESTIMATE: u32 = 8;
