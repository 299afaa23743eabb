//! The error shown to users: a message, a hint, and an exit code for scripts.

use std::fmt;
use std::process::ExitCode;

use moothall_core::ErrorCode;
use moothall_core::causes;
use moothall_core::text::escaped_lines;

/// Exit codes for scripts. The numbers are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CliExit {
    /// Success, with a positive result if there is one.
    Fine = 0,
    /// The command succeeded, but the result is negative.
    VerdictNegative = 1,
    /// Invalid flags, configuration, keys or input files. Retrying does not help.
    Usage = 2,
    /// A person must decide.
    NeedsPerson = 3,
    /// A provider, the network, a sandbox or a disk failed.
    Failed = 4,
    /// Stopped by the budget; the result is partial.
    BudgetStopped = 5,
    /// Stopped by the user, usually with Ctrl-C.
    Cancelled = 130,
}

impl CliExit {
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<CliExit> for ExitCode {
    fn from(exit: CliExit) -> Self {
        Self::from(exit.code())
    }
}

/// The error of a command.
///
/// It implements `std::error::Error`, so `?` converts it to `anyhow::Error`, and `CliError::from`
/// extracts it again with its exit code and hint, even below a `context`. Any other `anyhow::Error`
/// becomes [`CliExit::Failed`].
#[derive(Debug)]
pub struct CliError {
    pub exit: CliExit,
    /// What is wrong: lower case, no full stop, without the cause.
    pub message: String,
    /// How to fix it, if known.
    pub hint: Option<String>,
    /// Error code for HTTP clients, if it is more specific than the exit code.
    pub(crate) code: Option<ErrorCode>,
    /// Whether the command only says why it stopped, such as a pause that the user requested.
    is_notice: bool,
    source: Option<anyhow::Error>,
}

impl CliError {
    pub fn new(exit: CliExit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
            code: None,
            is_notice: false,
            source: None,
        }
    }

    /// Why a command stopped before its end although nothing is wrong.
    pub(crate) fn notice(exit: CliExit, message: impl Into<String>) -> Self {
        Self { is_notice: true, ..Self::new(exit, message) }
    }

    /// An error of [`CliExit::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(CliExit::Usage, message)
    }

    /// An error of [`CliExit::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(CliExit::Failed, message)
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn with_code(mut self, code: ErrorCode) -> Self {
        self.code = Some(code);
        self
    }

    #[must_use]
    pub fn with_source(mut self, source: impl Into<anyhow::Error>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The complete error for stderr, ending with a line break.
    ///
    /// Control characters are escaped, because messages quote untrusted files and replies that must
    /// not control the terminal.
    pub fn render(&self) -> String {
        let label = if self.is_notice { "" } else { "error: " };
        let mut text = escaped_lines(&format!("{label}{}", self.full_message()));
        text.push('\n');
        if let Some(hint) = &self.hint {
            text.push_str("hint: ");
            text.push_str(&escaped_lines(hint));
            text.push('\n');
        }
        text
    }

    /// The message with its causes, not escaped.
    pub(crate) fn full_message(&self) -> String {
        let mut text = self.message.clone();
        let mut last = self.message.clone();
        for error in causes(self) {
            let cause = error.to_string().trim_end().to_owned();
            // Many errors already include their cause; do not repeat it.
            if !last.ends_with(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
            last = cause;
        }
        text
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(AsRef::as_ref)
    }
}

impl From<anyhow::Error> for CliError {
    fn from(error: anyhow::Error) -> Self {
        let Some(inner) = error.chain().find_map(|cause| cause.downcast_ref::<Self>()) else {
            return Self::without_outermost(CliExit::Failed, None, error);
        };
        let outermost = error.chain().next().is_some_and(|cause| cause.is::<Self>());
        let (exit, hint, code) = (inner.exit, inner.hint.clone(), inner.code);
        let is_notice = inner.is_notice;
        if !outermost {
            return Self { code, is_notice, ..Self::without_outermost(exit, hint, error) };
        }
        error.downcast().unwrap_or_else(|error| Self::without_outermost(exit, hint, error))
    }
}

impl CliError {
    /// Uses the outermost message; the source keeps the whole chain, and `render` skips the
    /// repeated part.
    fn without_outermost(exit: CliExit, hint: Option<String>, error: anyhow::Error) -> Self {
        let outer = Self::new(exit, error.to_string());
        Self { hint, source: Some(error), ..outer }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
