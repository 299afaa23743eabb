//! Names and classification of event kinds.

use super::RunEventBody;
use crate::EffectId;

impl RunEventBody {
    /// The event's name in files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::ModelReplied { .. } => "model_replied",
            Self::ModelFailed { .. } => "model_failed",
            Self::OutputRejected { .. } => "output_rejected",
            Self::AttemptStarted { .. } => "attempt_started",
            Self::CodeGenerated { .. } => "code_generated",
            Self::Executed { .. } => "executed",
            Self::Judged { .. } => "judged",
            Self::Critiqued { .. } => "critiqued",
            Self::ConsultStarted { .. } => "consult_started",
            Self::LayerStart { .. } => "layer_start",
            Self::LayerComplete { .. } => "layer_complete",
            Self::AgentStart { .. } => "agent_start",
            Self::AgentComplete { .. } => "agent_complete",
            Self::ClaimChecked { .. } => "claim_checked",
            Self::MovesReviewed { .. } => "moves_reviewed",
            Self::Isolation { .. } => "isolation",
            Self::SandboxRound { .. } => "sandbox_round",
            Self::SandboxTurn { .. } => "sandbox_turn",
            Self::Calculated { .. } => "calculated",
            Self::SandboxScored { .. } => "sandbox_scored",
            Self::VerdictUpdated { .. } => "verdict_updated",
            Self::PipelineComplete { .. } => "pipeline_complete",
            Self::RunPaused { .. } => "run_paused",
            Self::RunFinished { .. } => "run_finished",
            Self::RunFailed { .. } => "run_failed",
            Self::RunCancelled => "run_cancelled",
        }
    }

    /// The effect the event is about, if any.
    pub fn effect_id(&self) -> Option<&EffectId> {
        match self {
            Self::ModelReplied { effect_id, .. }
            | Self::ModelFailed { effect_id, .. }
            | Self::OutputRejected { effect_id, .. }
            | Self::AttemptStarted { effect_id, .. }
            | Self::CodeGenerated { effect_id, .. }
            | Self::Executed { effect_id, .. }
            | Self::Judged { effect_id, .. }
            | Self::Critiqued { effect_id, .. }
            | Self::ClaimChecked { effect_id, .. }
            | Self::MovesReviewed { effect_id, .. }
            | Self::Isolation { effect_id, .. }
            | Self::Calculated { effect_id, .. }
            | Self::SandboxTurn { effect_id, .. } => Some(effect_id),
            Self::RunStarted { .. }
            | Self::ConsultStarted { .. }
            | Self::LayerStart { .. }
            | Self::LayerComplete { .. }
            | Self::AgentStart { .. }
            | Self::AgentComplete { .. }
            | Self::SandboxRound { .. }
            | Self::SandboxScored { .. }
            | Self::VerdictUpdated { .. }
            | Self::PipelineComplete { .. }
            | Self::RunPaused { .. }
            | Self::RunFinished { .. }
            | Self::RunFailed { .. }
            | Self::RunCancelled => None,
        }
    }

    /// Whether this is the last event of a run.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::RunFinished { .. }
            | Self::PipelineComplete { .. }
            | Self::RunFailed { .. }
            | Self::RunCancelled => true,
            Self::RunStarted { .. }
            | Self::ModelReplied { .. }
            | Self::ModelFailed { .. }
            | Self::OutputRejected { .. }
            | Self::AttemptStarted { .. }
            | Self::CodeGenerated { .. }
            | Self::Executed { .. }
            | Self::Judged { .. }
            | Self::Critiqued { .. }
            | Self::ConsultStarted { .. }
            | Self::LayerStart { .. }
            | Self::LayerComplete { .. }
            | Self::AgentStart { .. }
            | Self::AgentComplete { .. }
            | Self::ClaimChecked { .. }
            | Self::MovesReviewed { .. }
            | Self::Isolation { .. }
            | Self::SandboxRound { .. }
            | Self::SandboxTurn { .. }
            | Self::Calculated { .. }
            | Self::SandboxScored { .. }
            | Self::VerdictUpdated { .. }
            | Self::RunPaused { .. } => false,
        }
    }
}
