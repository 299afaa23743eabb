//! Problems in a configuration. All of them are reported together, each with its location and, if
//! known, a hint.

use std::fmt;

use serde::Serialize;

use crate::error::CliError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigProblem {
    /// The location and the problem, such as ``moothall.toml:7: unknown key `budgt.usd` ``.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// Warnings do not stop commands. `config check` reports both warnings and errors.
    #[serde(skip)]
    pub(crate) is_warning: bool,
}

impl ConfigProblem {
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

/// An invalid configuration with at least one problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    first: ConfigProblem,
    others: Vec<ConfigProblem>,
}

impl ConfigError {
    /// Returns `None` without problems. Errors are sorted before warnings.
    pub(crate) fn from_problems(mut problems: Vec<ConfigProblem>) -> Option<Self> {
        problems.sort_by_key(|problem| problem.is_warning);
        let mut problems = problems.into_iter();
        problems.next().map(|first| Self { first, others: problems.collect() })
    }

    /// All problems: file, `.env`, environment, flags; warnings last.
    pub fn problems(&self) -> impl Iterator<Item = &ConfigProblem> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl From<ConfigProblem> for ConfigError {
    fn from(problem: ConfigProblem) -> Self {
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
