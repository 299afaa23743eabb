//! The terms of a consultation: what its user says beside ticker and committee.

use serde::{Deserialize, Serialize};

use super::moves::Proposal;
use super::proposals;
use crate::text::is_hidden;
use crate::tokens_expected;

/// The longest brief, in characters.
pub const MAX_BRIEF_CHARS: usize = 8_000;

/// The most moves that a user may add, at the beginning and again when the moves are reviewed.
pub const MAX_ADDED_MOVES: usize = 15;

/// A brief may fill this part of the smallest window.
const BRIEF_WINDOW_PART: u64 = 8;

/// What the user says. Runs of before have none of it, and their questions stay the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// A question, goals, constraints, in the user's words. Analysts read it; it is no evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// The user's own moves, numbered behind those of the analysts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Proposal>,
    /// Asks a person before the moves are debated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pause_after_moves: bool,
    /// Scores m0, doing nothing, beside the moves.
    #[serde(default, skip_serializing_if = "is_false")]
    pub do_nothing: bool,
    /// Scores every move without a debate as well.
    #[serde(default, skip_serializing_if = "is_false")]
    pub baseline: bool,
}

/// Why the terms cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTerms {
    /// A brief that cannot be read out.
    #[error("the brief cannot be used: {0}")]
    Brief(String),
    /// A move of the user's that cannot be tried.
    #[error("the added moves cannot be used: {0}")]
    AddedMove(String),
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Terms {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many moves the user added.
    pub fn added(&self) -> u32 {
        u32::try_from(self.moves.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn validate(&self, window_tokens: u32) -> Result<(), InvalidTerms> {
        if let Some(brief) = &self.brief {
            let hidden = |c: char| !matches!(c, '\n' | '\t') && is_hidden(c);
            if brief.trim().is_empty() {
                return Err(InvalidTerms::Brief("it is empty".to_owned()));
            }
            let long = brief.chars().count();
            if long > MAX_BRIEF_CHARS {
                let why = format!("it has {long} characters; {MAX_BRIEF_CHARS} are the most");
                return Err(InvalidTerms::Brief(why));
            }
            if brief.chars().any(hidden) {
                let why = "it has control characters or hidden ones".to_owned();
                return Err(InvalidTerms::Brief(why));
            }
            if tokens_expected(brief) > u64::from(window_tokens) / BRIEF_WINDOW_PART {
                let why = format!("it is too long for a window of {window_tokens} tokens");
                return Err(InvalidTerms::Brief(why));
            }
        }
        if self.moves.len() > MAX_ADDED_MOVES {
            let why = format!("there are {}; {MAX_ADDED_MOVES} are the most", self.moves.len());
            return Err(InvalidTerms::AddedMove(why));
        }
        for (place, one) in (1..).zip(&self.moves) {
            if let Some(fault) = proposals::own_fault(one) {
                return Err(InvalidTerms::AddedMove(format!("number {place}: {fault}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
