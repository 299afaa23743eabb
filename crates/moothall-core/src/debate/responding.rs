//! The event that a side of a debate has started to answer. The engine publishes it when it really
//! starts a call; it is not part of a step, so replays and guests do not depend on it.

use crate::model::CallPurpose;
use crate::{Effect, EffectId, RoundStatus, RunEvent, RunEventBody};

/// The event for a call that starts now: which side of which debate answers in which round. `None`
/// for other calls. The calls of a half round have the same event, which is published once.
pub fn responding_event(id: &EffectId, effect: &Effect) -> Option<RunEvent> {
    let Effect::CallModel(request) = effect else { return None };
    let status = match request.purpose {
        CallPurpose::Critic => RoundStatus::CriticResponding,
        CallPurpose::DecisionMaker => RoundStatus::DmResponding,
        _ => return None,
    };
    // `m7/round-3/critic/D2` or `m7/round-3/D2`; `m7/d2/round-3/D2` in a repeated debate.
    let (move_id, behind) = id.as_str().split_once("/round-")?;
    let round = behind.split('/').next()?.parse().ok()?;
    let move_id = move_id.to_owned();
    Some(RunEvent::of_run(RunEventBody::SandboxRound { move_id, round, status }))
}

#[cfg(test)]
#[path = "responding_tests.rs"]
mod tests;
