//! Replies of the demo model in a consultation: deterministic text for every role, built from the
//! request alone.
//!
//! It reads the evidence in its prompt and cites real numbers with their ids, so the checks
//! have something to check. Two of the board's fifteen moves show what happens when a check fails:
//! one has a wrong number that its rewrite corrects, one keeps a projection that is not marked as
//! an assumption. Every text is marked as a demonstration.

mod calculations;
mod debate;
mod facts;
mod moves;
mod panel;
mod quotes;
mod readings;
mod topics;

use crate::Sha256Hex;
use crate::model::{CallPurpose, ModelRequest, PromptRole};

/// Ends every demo text.
const MARK: &str = "(demonstration)";

/// The reply to a request of this workflow; `None` for requests of other workflows.
pub fn answer(request: &ModelRequest) -> Option<String> {
    match request.purpose {
        CallPurpose::SynthesizeFinancials => Some(readings::financials()),
        CallPurpose::SynthesizeNews => Some(readings::news()),
        CallPurpose::InferFinancial => Some(readings::financial(first_turn(request))),
        CallPurpose::InferTrend => Some(readings::trend(first_turn(request))),
        CallPurpose::Analyst => moves::answer(request),
        CallPurpose::Critic => debate::critic(request),
        CallPurpose::DecisionMaker => debate::decision_maker(request),
        CallPurpose::Score => debate::score(request),
        CallPurpose::ScoreNothing | CallPurpose::ScoreBaseline => debate::score_alone(request),
        CallPurpose::PanelScore => panel::score(request),
        CallPurpose::Forecast => panel::forecasts(request),
        _ => None,
    }
}

fn system(request: &ModelRequest, at: usize) -> &str {
    request.system.get(at).map_or("", |block| &block.text)
}

fn first_turn(request: &ModelRequest) -> &str {
    request.turns.first().map_or("", |turn| &turn.block.text)
}

/// Text of the last user turn.
fn last_question(request: &ModelRequest) -> &str {
    let asked = request.turns.iter().rev().find(|turn| turn.role == PromptRole::User);
    asked.map_or("", |turn| &turn.block.text)
}

/// A pseudo-random number below `end`, always the same for the same `words`.
fn pseudo_random(words: &[&str], end: usize) -> usize {
    let digest = Sha256Hex::of(words.join("\n").as_bytes()).to_string();
    let number = digest.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    usize::try_from(number.unwrap_or(0)).unwrap_or(0) % end.max(1)
}

#[cfg(test)]
#[path = "demonstration_tests.rs"]
mod tests;
