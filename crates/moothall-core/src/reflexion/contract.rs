//! What a program must do to pass, and whether it did.

use std::fmt;
use std::str::FromStr;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::model::OutputSchema;
use crate::sandbox::GuestPath;

/// What a program must do beside ending with 0. It is judged outside the program's reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// What it must print.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectation>,
    /// A Python script that is run on what the program left, in a sandbox of its own; it must end
    /// with 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Files it must leave in its output folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<GuestPath>,
}

impl Contract {
    /// Whether nothing is demanded. Then a program can run, but not pass.
    pub fn is_empty(&self) -> bool {
        self.expect.is_none() && self.check.is_none() && self.outputs.is_empty()
    }
}

/// What a program must print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "expect", rename_all = "snake_case", deny_unknown_fields)]
pub enum Expectation {
    /// This and nothing else; white space at the end does not count.
    Text {
        /// The text.
        text: String,
    },
    /// One JSON value that follows a schema.
    Schema {
        /// The schema.
        schema: OutputSchema,
    },
    /// Something that this pattern is found in; white space at the end does not count.
    Pattern {
        /// The pattern.
        pattern: Pattern,
    },
}

/// A regular expression.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// Whether it is found in `text`. The time is linear in the text's length.
    pub fn is_found_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        Regex::new(text).map(Self).map_err(|error| InvalidPattern(error.to_string()))
    }
}

impl TryFrom<String> for Pattern {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, InvalidPattern> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

/// A text that is not a regular expression, or one that is too large to use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a regular expression: {0}")]
pub struct InvalidPattern(String);
