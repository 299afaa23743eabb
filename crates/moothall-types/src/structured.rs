//! Parses and checks JSON in a model's reply, and builds the follow-up request if it is invalid.
//!
//! The order is fixed: stop reason, parse, full check, then one retry that shows the model its
//! error. Providers ignore ranges and patterns in schemas, so the full check is needed even if a
//! provider enforces the schema. Prose is never searched for fragments that look like JSON.

use std::fmt;

use serde_json::Value;

use crate::fenced::fenced_blocks;
use crate::model::{ModelReply, ModelRequest, PromptTurn, StopReason};

/// Limit on the problems shown to a model or a person.
pub const MAX_PROBLEMS: usize = 8;

/// Checks a parsed reply. An empty list means it is valid.
///
/// Implementations must be deterministic, because a replay checks again.
pub trait OutputCheck: Send + Sync {
    /// The problems of `value`, most important first.
    fn problems(&self, value: &Value) -> Vec<String>;
}

impl<F: Fn(&Value) -> Vec<String> + Send + Sync> OutputCheck for F {
    fn problems(&self, value: &Value) -> Vec<String> {
        self(value)
    }
}

/// Why a reply is not valid JSON output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputFault {
    /// The reply was cut off, so even JSON that parses may be incomplete.
    CutOff,
    /// The reply is not JSON.
    NotJson {
        /// The parser's error.
        error: String,
    },
    /// The JSON does not match the schema.
    Invalid {
        /// The problems found.
        problems: Vec<String>,
    },
}

impl OutputFault {
    /// The problems, one line each, for a model, an event or a finding.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::CutOff => vec!["the answer was cut off before its end".to_owned()],
            Self::NotJson { error } => {
                vec![format!("the answer is not a single JSON value: {error}")]
            }
            Self::Invalid { problems } => problems.clone(),
        }
    }

    /// The rule for findings about this fault.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::CutOff => "output.cut-off",
            Self::NotJson { .. } => "output.not-json",
            Self::Invalid { .. } => "output.schema",
        }
    }
}

impl fmt::Display for OutputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems().join("; "))
    }
}

/// Parses and checks the JSON value of a reply.
pub fn read_json(reply: &ModelReply, check: &dyn OutputCheck) -> Result<Value, OutputFault> {
    if reply.stop == StopReason::MaxTokens {
        return Err(OutputFault::CutOff);
    }
    let value = parse(&reply.text).map_err(|error| OutputFault::NotJson { error })?;
    let mut problems = check.problems(&value);
    problems.truncate(MAX_PROBLEMS);
    if problems.is_empty() { Ok(value) } else { Err(OutputFault::Invalid { problems }) }
}

/// Appends the faulty reply and its problems to the request. The prefix stays the same, so the
/// provider's cache still applies.
pub fn ask_again(request: &ModelRequest, answer: &str, fault: &OutputFault) -> ModelRequest {
    let mut again = request.clone();
    // Providers reject an assistant message without text.
    if !answer.trim().is_empty() {
        again.turns.push(PromptTurn::assistant(answer));
    }
    let problems: String =
        fault.problems().iter().map(|problem| format!("- {problem}\n")).collect();
    let shorter = if *fault == OutputFault::CutOff {
        " Be shorter, so that the answer is complete."
    } else {
        ""
    };
    again.turns.push(PromptTurn::user(format!(
        "Your answer cannot be used:\n{problems}Answer again with one JSON value that follows the schema, and nothing else.{shorter}"
    )));
    again
}

/// Parses the whole text, otherwise its only fenced block: small models often add a fence.
fn parse(text: &str) -> Result<Value, String> {
    let whole = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error.to_string(),
    };
    match fenced_blocks(text).as_slice() {
        [only] if only.closed => serde_json::from_str(only.text).map_err(|error| error.to_string()),
        _ => Err(whole),
    }
}

#[cfg(test)]
#[path = "structured_tests.rs"]
mod tests;
