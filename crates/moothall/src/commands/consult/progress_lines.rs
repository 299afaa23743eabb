//! Progress as lines for pipes and logs, reduced to the events that matter to a user.

use crate::display;
use moothall_core::sandbox::IsolationClass;
use moothall_core::{FindingSeverity, PauseReason, RoundStatus, RunEventBody};
use moothall_store::StoredEvent;

use super::draw::{calls, money};
use super::progress::ConsultProgress;

/// The number of notices of a board, and the class that was announced before the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownNotices {
    isolation: usize,
    models: usize,
    class: Option<IsolationClass>,
}

impl ShownNotices {
    pub(crate) fn of(board: &ConsultProgress, class: Option<IsolationClass>) -> Self {
        Self { isolation: board.fallbacks.len(), models: board.model_fallbacks.len(), class }
    }
}

/// The line for an event, if it deserves one: about forty per consultation. The board has already
/// processed the event; `before` is what it had shown before.
pub(crate) fn plain(
    board: &ConsultProgress,
    before: ShownNotices,
    stored: &StoredEvent,
) -> Option<String> {
    match &stored.event.body {
        RunEventBody::LayerComplete { layer, .. } => {
            let so_far = format!("{} · {}", calls(board), money(board, None));
            Some(format!("{}: done · {so_far}", display::layer(*layer)))
        }
        RunEventBody::SandboxRound { move_id, round, status } => {
            let is_last = *status == RoundStatus::DmResponded && *round == board.rounds;
            is_last.then(|| display::line(&format!("{move_id}: {round} rounds debated")))
        }
        RunEventBody::ClaimChecked { flagged, .. } => {
            let grave = flagged.iter().any(|one| one.severity >= FindingSeverity::Escalate);
            grave.then(|| display::event(stored))
        }
        // Fifteen debates without a sandbox share one reason, which is shown once.
        RunEventBody::Isolation { class, fallback: Some(_), .. } => {
            let is_new = board.fallbacks.len() > before.isolation && before.class != Some(*class);
            is_new.then(|| display::event(stored))
        }
        // A model answers hundreds of calls of an unavailable one.
        RunEventBody::ModelReplied { instead_of: Some(_), .. } => {
            let new = board.model_fallbacks.get(before.models);
            new.map(|one| display::line(&one.notice()))
        }
        RunEventBody::OutputRejected { effect_id, .. } => {
            Some(format!("{}: {}", display::line(effect_id.as_str()), display::event(stored)))
        }
        // The last message says it, with the command that continues the run.
        RunEventBody::RunPaused { reason: PauseReason::Person, .. } => None,
        RunEventBody::ConsultStarted { .. }
        | RunEventBody::AgentComplete { .. }
        | RunEventBody::MovesReviewed { .. }
        | RunEventBody::Calculated { .. }
        | RunEventBody::SandboxScored { .. }
        | RunEventBody::VerdictUpdated { .. }
        | RunEventBody::ModelFailed { .. }
        | RunEventBody::PipelineComplete { .. }
        | RunEventBody::RunPaused { .. }
        | RunEventBody::RunFailed { .. }
        | RunEventBody::RunCancelled => Some(display::event(stored)),
        RunEventBody::RunStarted { .. }
        | RunEventBody::ModelReplied { instead_of: None, .. }
        | RunEventBody::AttemptStarted { .. }
        | RunEventBody::CodeGenerated { .. }
        | RunEventBody::Executed { .. }
        | RunEventBody::Judged { .. }
        | RunEventBody::Critiqued { .. }
        | RunEventBody::LayerStart { .. }
        | RunEventBody::AgentStart { .. }
        | RunEventBody::Isolation { fallback: None, .. }
        | RunEventBody::SandboxTurn { .. }
        | RunEventBody::RunFinished { .. } => None,
    }
}
