//! Reading JSON out of a model's reply, and telling the model what was wrong with it.
//!
//! The order is fixed: stop reason, parse, full check, then one more question that shows the model
//! its error. Decoders drop ranges and patterns from schemas, so the full check is ours even where
//! a provider promises to enforce the schema. Prose is never searched for something that looks like
//! JSON.

use std::fmt;

use serde_json::Value;

use crate::fenced::fenced_blocks;
use crate::model::{ModelReply, ModelRequest, StopReason, Turn};

/// The most problems that are shown to a model or a person; the first few say enough.
pub const MAX_PROBLEMS: usize = 8;

/// Says what is wrong with a parsed answer; an empty list means that it is as asked.
///
/// What implementors promise: the same value gives the same problems, because a replay asks again.
pub trait OutputCheck: Send + Sync {
    /// The problems of `value`, most important first.
    fn problems(&self, value: &Value) -> Vec<String>;
}

impl<F: Fn(&Value) -> Vec<String> + Send + Sync> OutputCheck for F {
    fn problems(&self, value: &Value) -> Vec<String> {
        self(value)
    }
}

/// Why an answer is not the JSON it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputFault {
    /// The answer was cut off, so whatever parses is not what the model meant.
    CutOff,
    /// The answer is not JSON.
    NotJson {
        /// What the parser says.
        error: String,
    },
    /// The answer is JSON of another shape.
    Invalid {
        /// What is wrong with it.
        problems: Vec<String>,
    },
}

impl OutputFault {
    /// The problems as lines for a model, an event or a finding.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::CutOff => vec!["the answer was cut off before its end".to_owned()],
            Self::NotJson { error } => {
                vec![format!("the answer is not a single JSON value: {error}")]
            }
            Self::Invalid { problems } => problems.clone(),
        }
    }

    /// The rule that a finding about this fault names.
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

/// The JSON value of a reply, or why there is none.
pub fn read_json(reply: &ModelReply, check: &dyn OutputCheck) -> Result<Value, OutputFault> {
    if reply.stop == StopReason::MaxTokens {
        return Err(OutputFault::CutOff);
    }
    let value = parse(&reply.text).map_err(|error| OutputFault::NotJson { error })?;
    let mut problems = check.problems(&value);
    problems.truncate(MAX_PROBLEMS);
    if problems.is_empty() { Ok(value) } else { Err(OutputFault::Invalid { problems }) }
}

/// The same request with the faulty answer and its problems appended, so that the provider's cache
/// still serves the prefix.
pub fn ask_again(request: &ModelRequest, answer: &str, fault: &OutputFault) -> ModelRequest {
    let mut again = request.clone();
    // Providers refuse an assistant turn without text.
    if !answer.trim().is_empty() {
        again.turns.push(Turn::assistant(answer));
    }
    let problems: String =
        fault.problems().iter().map(|problem| format!("- {problem}\n")).collect();
    let shorter = if *fault == OutputFault::CutOff {
        " Be shorter, so that the answer is complete."
    } else {
        ""
    };
    again.turns.push(Turn::user(format!(
        "Your answer cannot be used:\n{problems}Answer again with one JSON value that follows the schema, and nothing else.{shorter}"
    )));
    again
}

/// The whole text as JSON, or else the only fenced block in it: small models like to wrap what they
/// were asked to give bare.
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
