//! What the demonstration model says in a consultation: deterministic words for every role, made
//! from the request alone.
//!
//! It reads the evidence that stands in its prompt and quotes true numbers under their ids, so the
//! checks of code have something to find. Two of the board's fifteen moves show what happens where
//! they do: one has a wrong number at first and is mended by its rewrite, one keeps a projection
//! that is not marked as an assumption. Every text says that it is a demonstration.

mod debate;
mod facts;
mod moves;
mod quotes;
mod readings;
mod topics;

use crate::Sha256Hex;
use crate::model::{ModelRequest, Purpose, Role};

/// What every text of the demonstration ends with.
const MARK: &str = "(demonstration)";

/// The answer to a request of this workflow; nothing for requests of others.
pub fn answer(request: &ModelRequest) -> Option<String> {
    match request.purpose {
        Purpose::SynthesizeFinancials => Some(readings::financials()),
        Purpose::SynthesizeNews => Some(readings::news()),
        Purpose::InferFinancial => Some(readings::financial(first_turn(request))),
        Purpose::InferTrend => Some(readings::trend(first_turn(request))),
        Purpose::Analyst => moves::answer(request),
        Purpose::Critic => debate::critic(request),
        Purpose::DecisionMaker => debate::decision_maker(request),
        Purpose::Score => debate::score(request),
        Purpose::ScoreNothing | Purpose::ScoreBaseline => debate::score_alone(request),
        _ => None,
    }
}

/// A block of the instructions.
fn system(request: &ModelRequest, at: usize) -> &str {
    request.system.get(at).map_or("", |block| &block.text)
}

fn first_turn(request: &ModelRequest) -> &str {
    request.turns.first().map_or("", |turn| &turn.block.text)
}

/// What was asked last.
fn last_question(request: &ModelRequest) -> &str {
    let asked = request.turns.iter().rev().find(|turn| turn.role == Role::User);
    asked.map_or("", |turn| &turn.block.text)
}

/// A number below `end` that looks like chance and is the same for the same words.
fn chance(words: &[&str], end: usize) -> usize {
    let digest = Sha256Hex::of(words.join("\n").as_bytes()).to_string();
    let number = digest.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    usize::try_from(number.unwrap_or(0)).unwrap_or(0) % end.max(1)
}

#[cfg(test)]
#[path = "demonstration_tests.rs"]
mod tests;
