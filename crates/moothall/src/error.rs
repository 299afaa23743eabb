//! The error that a person sees: one line that says what is wrong, one that says how to cure it,
//! and an exit code for scripts.

use std::fmt;
use std::process::ExitCode;

use moothall_core::ErrorCode;
use moothall_core::causes;
use moothall_core::text::escaped_lines;

/// How the program ended, for scripts. The numbers are a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The work is done, and the verdict, if there is one, is positive.
    Fine = 0,
    /// The work is done and the verdict is negative. Nothing broke.
    VerdictNegative = 1,
    /// The request cannot be understood: flags, configuration, keys, input files. Trying again
    /// changes nothing.
    Usage = 2,
    /// The work stands still until a person decides.
    NeedsPerson = 3,
    /// Something broke on the way: a provider, the network, a sandbox, a disk.
    Failed = 4,
    /// The budget ended the work; what exists so far is a partial result.
    BudgetStopped = 5,
    /// The person stopped the work, usually with Ctrl-C.
    Cancelled = 130,
}

impl Exit {
    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command gives up.
///
/// It is a `std::error::Error`, so `?` lifts it into `anyhow::Error`, and `CliError::from` takes it
/// out again together with its exit code and hint, even from under a `context`. An `anyhow::Error`
/// that holds none is [`Exit::Failed`].
#[derive(Debug)]
pub struct CliError {
    /// Exit code of the program.
    pub exit: Exit,
    /// What is wrong: lower case, no full stop, no cause.
    pub message: String,
    /// The cure, when we know it.
    pub hint: Option<String>,
    /// What it is, for programs that ask over HTTP, where it is more than the exit code says.
    pub(crate) code: Option<ErrorCode>,
    source: Option<anyhow::Error>,
}

impl CliError {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, code: None, source: None }
    }

    /// An error of [`Exit::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// An error of [`Exit::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
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

    /// The whole error as text for stderr, ending with a line break.
    ///
    /// Control characters are escaped: messages quote files and replies that others wrote, and
    /// those must not drive the terminal.
    pub fn render(&self) -> String {
        let mut text = escaped_lines(&format!("error: {}", self.words()));
        text.push('\n');
        if let Some(hint) = &self.hint {
            text.push_str("hint: ");
            text.push_str(&escaped_lines(hint));
            text.push('\n');
        }
        text
    }

    /// What is wrong and why, as it came: nothing is escaped.
    pub(crate) fn words(&self) -> String {
        let mut text = self.message.clone();
        let mut last = self.message.clone();
        for error in causes(self) {
            let words = error.to_string().trim_end().to_owned();
            // Many errors of the ecosystem already print their cause; it is said once.
            if !last.ends_with(&words) {
                text.push_str(": ");
                text.push_str(&words);
            }
            last = words;
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
            return Self::without_outermost(Exit::Failed, None, error);
        };
        let outermost = error.chain().next().is_some_and(|cause| cause.is::<Self>());
        let (exit, hint, code) = (inner.exit, inner.hint.clone(), inner.code);
        if !outermost {
            return Self { code, ..Self::without_outermost(exit, hint, error) };
        }
        error.downcast().unwrap_or_else(|error| Self::without_outermost(exit, hint, error))
    }
}

impl CliError {
    /// The outermost message becomes the message; the chain is kept, and `render` says the
    /// outermost part only once.
    fn without_outermost(exit: Exit, hint: Option<String>, error: anyhow::Error) -> Self {
        Self { exit, message: error.to_string(), hint, code: None, source: Some(error) }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
