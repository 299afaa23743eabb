//! Options of a consultation, besides company and committee.

use serde::{Deserialize, Serialize};

use super::moves::Proposal;
use super::proposals;
use crate::text::is_hidden;
use crate::tokens_expected;

/// Maximum length of a brief, in characters.
pub const MAX_BRIEF_CHARS: usize = 8_000;

/// Maximum number of moves that a user may add at the start, and again in the review.
pub const MAX_ADDED_MOVES: usize = 15;

/// Divisor of the smallest context window that limits the tokens of a brief.
const BRIEF_WINDOW_PART: u64 = 8;

/// Options set by the user. Inputs of older runs have none, and their requests stay the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsultOptions {
    /// Question, goals and constraints in the user's words. Analysts read it, but it is not
    /// evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// The user's own moves, numbered after those of the analysts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Proposal>,
    /// Pauses for a review before the moves are debated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pause_after_moves: bool,
    /// Also scores doing nothing (m0).
    #[serde(default, skip_serializing_if = "is_false")]
    pub do_nothing: bool,
    /// Also scores every move without a debate.
    #[serde(default, skip_serializing_if = "is_false")]
    pub baseline: bool,
    /// Lets critic and decision makers attach calculations to their turns.
    #[serde(default, skip_serializing_if = "is_false")]
    pub calculations: bool,
}

/// Why options are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidConsultOptions {
    /// The brief is invalid.
    #[error("invalid brief: {0}")]
    Brief(String),
    /// A move added by the user is invalid.
    #[error("invalid added moves: {0}")]
    AddedMove(String),
}

fn is_false(value: &bool) -> bool {
    !value
}

impl ConsultOptions {
    /// Whether no option is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Number of moves that the user added.
    pub fn added(&self) -> u32 {
        u32::try_from(self.moves.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn validate(&self, window_tokens: u32) -> Result<(), InvalidConsultOptions> {
        if let Some(brief) = &self.brief {
            let hidden = |c: char| !matches!(c, '\n' | '\t') && is_hidden(c);
            if brief.trim().is_empty() {
                return Err(InvalidConsultOptions::Brief("it is empty".to_owned()));
            }
            let long = brief.chars().count();
            if long > MAX_BRIEF_CHARS {
                let why = format!("it has {long} characters (limit: {MAX_BRIEF_CHARS})");
                return Err(InvalidConsultOptions::Brief(why));
            }
            if brief.chars().any(hidden) {
                let why = "it contains control or hidden characters".to_owned();
                return Err(InvalidConsultOptions::Brief(why));
            }
            if tokens_expected(brief) > u64::from(window_tokens) / BRIEF_WINDOW_PART {
                let why = format!("it is too long for a context window of {window_tokens} tokens");
                return Err(InvalidConsultOptions::Brief(why));
            }
        }
        if self.moves.len() > MAX_ADDED_MOVES {
            let why = format!("too many: {} (limit: {MAX_ADDED_MOVES})", self.moves.len());
            return Err(InvalidConsultOptions::AddedMove(why));
        }
        for (place, one) in (1..).zip(&self.moves) {
            if let Some(fault) = proposals::user_move_fault(one) {
                return Err(InvalidConsultOptions::AddedMove(format!("move {place}: {fault}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
