//! Progress in lines, for pipes and logs: what a person would want to be told, not what happened.

use crate::display;
use moothall_core::{RoundStatus, RunEventBody, Severity};
use moothall_store::StoredEvent;

use super::board::Board;
use super::draw::{calls, money};

/// The line for an event, where it is worth one: some forty for a whole consultation. The board has
/// seen it; `reasons_before` is how many reasons for weaker walls were known before.
pub(super) fn plain(board: &Board, reasons_before: usize, stored: &StoredEvent) -> Option<String> {
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
            let grave = flagged.iter().any(|one| one.severity >= Severity::Escalate);
            grave.then(|| display::event(stored))
        }
        // Fifteen debates without a sandbox have one reason.
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
