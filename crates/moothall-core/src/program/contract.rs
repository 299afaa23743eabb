//! The contract of a program: what it must do to pass.

use std::fmt;
use std::str::FromStr;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::model::OutputSchema;
use crate::sandbox::GuestPath;

/// What a program must do in addition to exiting with 0. Checked where the program cannot
/// interfere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramContract {
    /// The expected output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<OutputExpectation>,
    /// A Python script that runs on the program's files in a separate sandbox and must exit with 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Files that must exist in the output directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<GuestPath>,
}

impl ProgramContract {
    /// Whether there are no requirements. Then a program can run, but not pass.
    pub fn is_empty(&self) -> bool {
        self.expect.is_none() && self.check.is_none() && self.outputs.is_empty()
    }
}

/// The expected standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "expect", rename_all = "snake_case", deny_unknown_fields)]
pub enum OutputExpectation {
    /// Exactly this text, ignoring trailing whitespace.
    Text {
        /// The text.
        text: String,
    },
    /// One JSON value that matches a schema.
    Schema {
        /// The schema.
        schema: OutputSchema,
    },
    /// Text that contains a match of this pattern, ignoring trailing whitespace.
    Pattern {
        /// The pattern.
        pattern: OutputPattern,
    },
}

/// A regular expression.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OutputPattern(Regex);

impl OutputPattern {
    /// Whether `text` contains a match. Takes linear time.
    pub fn is_found_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The pattern's source.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for OutputPattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for OutputPattern {}

impl fmt::Display for OutputPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OutputPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        Regex::new(text).map(Self).map_err(|error| InvalidPattern(error.to_string()))
    }
}

impl TryFrom<String> for OutputPattern {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, InvalidPattern> {
        text.parse()
    }
}

impl From<OutputPattern> for String {
    fn from(pattern: OutputPattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

/// An invalid or too large regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid regular expression: {0}")]
pub struct InvalidPattern(String);
