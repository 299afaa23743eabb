//! An error of the program as an answer, and how much of it whoever asks is told.

use moothall_core::ErrorCode;
use moothall_core::access::Excess;
use moothall_server::{Problem, StatusCode};

use super::veil::Veil;
use crate::error::{CliError, Exit};

/// Whether whoever asks hears why something failed below. Causes name files and folders of this
/// machine, which are its user's to know and nobody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Causes {
    Told,
    /// They are in the log; what is told names none of these folders.
    Logged(Veil),
}

impl Causes {
    /// What is wrong, for whoever asks.
    pub(super) fn words(&self, error: &CliError) -> String {
        match self {
            Self::Told => error.words(),
            Self::Logged(veil) => veil.hide(&error.to_string()),
        }
    }

    /// The cure, for whoever asks.
    pub(super) fn hint(&self, hint: &str) -> String {
        match self {
            Self::Told => hint.to_owned(),
            Self::Logged(veil) => veil.hide(hint),
        }
    }

    /// An error of the program as an answer.
    pub(super) fn problem(&self, error: &CliError) -> Problem {
        if let Self::Logged(_) = self {
            let words = error.words();
            tracing::warn!(target: "moothall::serve", error = words, "a request was refused");
        }
        let (status, code) = match error.exit {
            Exit::Usage => (StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::Refused),
            Exit::BudgetStopped | Exit::NeedsPerson | Exit::VerdictNegative | Exit::Cancelled => {
                (StatusCode::CONFLICT, ErrorCode::Refused)
            }
            Exit::Failed | Exit::Fine => (StatusCode::BAD_GATEWAY, ErrorCode::Failed),
        };
        let status = match error.code {
            Some(ErrorCode::UnknownTicker) => StatusCode::NOT_FOUND,
            Some(
                ErrorCode::NoSandbox
                | ErrorCode::MoveChanged
                | ErrorCode::RunBusy
                | ErrorCode::ResumeElsewhere,
            ) => StatusCode::CONFLICT,
            _ => status,
        };
        let problem = Problem::new(status, error.code.unwrap_or(code), self.words(error));
        match &error.hint {
            Some(hint) => problem.with_hint(self.hint(hint)),
            None => problem,
        }
    }
}

/// What a token does not allow now. Nobody knows when a run ends; a minute is a fair time to ask again.
pub(super) fn beyond(excess: Excess) -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, excess.code(), excess.to_string())
        .with_hint(excess.hint())
        .retry_after(60)
}

#[cfg(test)]
#[path = "telling_tests.rs"]
mod tests;
