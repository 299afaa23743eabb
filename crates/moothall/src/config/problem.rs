//! What is wrong with a configuration: all of it at once, each with its place and, where we know
//! it, its cure.

use std::fmt;

use serde::Serialize;

use crate::error::CliError;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What is wrong and where, such as ``moothall.toml:7: unknown key `budgt.usd` ``.
    pub message: String,
    /// How to cure it.
    pub hint: Option<String>,
    /// Whether commands run all the same. `config check` names warnings and errors alike.
    #[serde(skip)]
    pub(crate) is_warning: bool,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, is_warning: false }
    }

    #[must_use]
    pub(crate) fn into_warning(mut self) -> Self {
        self.is_warning = true;
        self
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A configuration that cannot be used. There is at least one problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    first: Problem,
    others: Vec<Problem>,
}

impl ConfigError {
    /// `None` if there is nothing wrong. Errors come before warnings.
    pub(crate) fn from_problems(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by_key(|problem| problem.is_warning);
        let mut problems = problems.into_iter();
        problems.next().map(|first| Self { first, others: problems.collect() })
    }

    /// All problems: those of the file first, then `.env`, the environment and the flags; warnings
    /// come last.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { first: problem, others: Vec::new() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.message)
    }
}

impl std::error::Error for ConfigError {}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        let more = match error.others.len() {
            0 => None,
            1 => Some("`moothall config check` shows 1 more problem".to_owned()),
            count => Some(format!("`moothall config check` shows {count} more problems")),
        };
        let hints: Vec<String> = error.first.hint.into_iter().chain(more).collect();
        let cli_error = Self::usage(error.first.message);
        if hints.is_empty() { cli_error } else { cli_error.with_hint(hints.join("\nhint: ")) }
    }
}
