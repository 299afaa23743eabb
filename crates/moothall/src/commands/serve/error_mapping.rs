//! Maps [`CliError`] to HTTP problems and decides how much detail the client sees.

use moothall_core::ErrorCode;
use moothall_core::access::RunLimitError;
use moothall_server::{ApiProblem, StatusCode};

use super::path_redaction::PathRedactor;
use crate::error::{CliError, CliExit};

/// Whether clients see the causes of an error. Causes contain local paths, which only the user of
/// this machine may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ErrorDisclosure {
    Told,
    /// Causes are only logged, and paths are redacted from messages.
    Logged(PathRedactor),
}

impl ErrorDisclosure {
    /// The error message for the client.
    pub(crate) fn message(&self, error: &CliError) -> String {
        match self {
            Self::Told => error.full_message(),
            Self::Logged(redactor) => redactor.hide(&error.to_string()),
        }
    }

    /// The hint for the client.
    pub(crate) fn hint(&self, hint: &str) -> String {
        match self {
            Self::Told => hint.to_owned(),
            Self::Logged(redactor) => redactor.hide(hint),
        }
    }

    pub(crate) fn problem(&self, error: &CliError) -> ApiProblem {
        if let Self::Logged(_) = self {
            let message = error.full_message();
            tracing::warn!(target: "moothall::serve", error = message, "request refused");
        }
        let (status, code) = match error.exit {
            CliExit::Usage => (StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::Refused),
            CliExit::BudgetStopped
            | CliExit::NeedsPerson
            | CliExit::VerdictNegative
            | CliExit::Cancelled => (StatusCode::CONFLICT, ErrorCode::Refused),
            CliExit::Failed | CliExit::Fine => (StatusCode::BAD_GATEWAY, ErrorCode::Failed),
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
        let problem = ApiProblem::new(status, error.code.unwrap_or(code), self.message(error));
        match &error.hint {
            Some(hint) => problem.with_hint(self.hint(hint)),
            None => problem,
        }
    }
}

/// A token limit was exceeded. The end of a run cannot be predicted, so clients may retry after a
/// minute.
pub(crate) fn limit_problem(excess: RunLimitError) -> ApiProblem {
    ApiProblem::new(StatusCode::TOO_MANY_REQUESTS, excess.code(), excess.to_string())
        .with_hint(excess.hint())
        .retry_after(60)
}

#[cfg(test)]
#[path = "error_mapping_tests.rs"]
mod tests;
