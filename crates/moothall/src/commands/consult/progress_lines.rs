//! Progress as lines for pipes and logs, reduced to the events that matter to a user.

use crate::display;
use moothall_core::{FindingSeverity, RoundStatus, RunEventBody};
use moothall_store::StoredEvent;

use super::draw::{calls, money};
use super::progress::ConsultProgress;

/// The line for an event, if it deserves one: about forty per consultation. The board has already
/// processed the event; `reasons_before` is the number of fallback reasons known before it.
pub(crate) fn plain(
    board: &ConsultProgress,
    reasons_before: usize,
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
        RunEventBody::Isolation { fallback: Some(_), .. } => {
            (board.fallbacks.len() > reasons_before).then(|| display::event(stored))
        }
        RunEventBody::ConsultStarted { .. }
        | RunEventBody::AgentComplete { .. }
        | RunEventBody::MovesReviewed { .. }
        | RunEventBody::SandboxScored { .. }
        | RunEventBody::ModelFailed { .. }
        | RunEventBody::PipelineComplete { .. }
        | RunEventBody::RunPaused { .. }
        | RunEventBody::RunFailed { .. }
        | RunEventBody::RunCancelled => Some(display::event(stored)),
        RunEventBody::RunStarted { .. }
        | RunEventBody::ModelReplied { .. }
        | RunEventBody::OutputRejected { .. }
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
