//! Failed model calls, in a form that can be stored in the journal.

use serde::{Deserialize, Serialize};

use crate::MicroUsd;

/// A model call that gave no usable reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{kind}: {detail}")]
pub struct ModelFailure {
    /// The kind of failure, which decides whether it is retried.
    pub kind: FailureKind,
    /// The error message of the provider or network, shortened and with keys removed.
    pub detail: String,
    /// The HTTP status, if there was a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The delay requested by the provider. Not stored, because it differs between identical runs.
    #[serde(skip)]
    pub retry_after_ms: Option<u64>,
    /// Upper bound on the cost of all attempts of this call; `None` if the price is unknown. Not
    /// stored, because it depends on the number of attempts.
    #[serde(skip)]
    pub cost_at_most_micro_usd: Option<MicroUsd>,
}

/// Limited because providers echo prompts in errors, and errors are logged.
const MAX_DETAIL_CHARS: usize = 300;

impl ModelFailure {
    /// Creates a failure from its kind and a message.
    pub fn new(kind: FailureKind, detail: impl AsRef<str>) -> Self {
        let detail: String = detail
            .as_ref()
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(MAX_DETAIL_CHARS)
            .collect::<String>()
            .trim()
            .to_owned();
        Self { kind, detail, status: None, retry_after_ms: None, cost_at_most_micro_usd: None }
    }

    /// Adds the HTTP status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status: Some(status), ..self }
    }

    /// Sets the delay requested by the provider.
    #[must_use]
    pub fn with_retry_after_ms(self, retry_after_ms: Option<u64>) -> Self {
        Self { retry_after_ms, ..self }
    }
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[derive(ts_rs::TS)]
pub enum FailureKind {
    /// 429: too many requests or tokens.
    RateLimited,
    /// 529 or 503: the provider is overloaded.
    Overloaded,
    /// Any other 5xx.
    Server,
    /// The connection failed, or broke before the reply started.
    Transport,
    /// No reply within the timeout.
    TimedOut,
    /// The reply started but is incomplete.
    Truncated,
    /// The reply violates the API's format: broken JSON, an HTML page, missing fields.
    Malformed,
    /// A complete reply without text.
    EmptyReply,
    /// The API key is missing, wrong or not allowed to use this model.
    Auth,
    /// The provider reports that the prompt exceeds the context window.
    ContextOverflow,
    /// The provider truncated the prompt without an error, so the reply answers a different prompt.
    ContextTruncated,
    /// The model or a content filter refused to answer.
    Refused,
    /// The provider rejected the request.
    BadRequest,
    /// The call could exceed the run's budget and was not made.
    OverBudget,
    /// The model has no known price and the run has a dollar budget; the call was not made.
    PriceUnknown,
    /// The provider or recording does not exist; the call was not made.
    NotFound,
}

impl FailureKind {
    /// Whether the same request may succeed on a retry.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RateLimited
            | Self::Overloaded
            | Self::Server
            | Self::Transport
            | Self::TimedOut
            | Self::Truncated
            | Self::Malformed
            | Self::EmptyReply => true,
            Self::Auth
            | Self::ContextOverflow
            | Self::ContextTruncated
            | Self::Refused
            | Self::BadRequest
            | Self::OverBudget
            | Self::PriceUnknown
            | Self::NotFound => false,
        }
    }

    /// Whether the model never saw the request or its reply was lost, so the run must pause and send
    /// the same request again later. Other failures are results that a workflow may judge.
    pub fn pauses_run(self) -> bool {
        match self {
            Self::RateLimited
            | Self::Overloaded
            | Self::Server
            | Self::Transport
            | Self::TimedOut
            | Self::Truncated
            | Self::Malformed
            | Self::Auth
            | Self::OverBudget => true,
            Self::EmptyReply
            | Self::ContextOverflow
            | Self::ContextTruncated
            | Self::Refused
            | Self::BadRequest
            | Self::PriceUnknown
            | Self::NotFound => false,
        }
    }

    /// Whether a fallback is called instead: the model is unavailable to this run.
    pub fn allows_fallback(self) -> bool {
        self.pauses_run() && self != Self::OverBudget
    }

    /// Whether the provider asks for a lower request rate.
    pub fn is_throttling(self) -> bool {
        matches!(self, Self::RateLimited | Self::Overloaded)
    }

    /// The name used in files and output.
    pub fn code(self) -> &'static str {
        match self {
            Self::RateLimited => "rate-limited",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Transport => "transport",
            Self::TimedOut => "timed-out",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::EmptyReply => "empty-reply",
            Self::Auth => "auth",
            Self::ContextOverflow => "context-overflow",
            Self::ContextTruncated => "context-truncated",
            Self::Refused => "refused",
            Self::BadRequest => "bad-request",
            Self::OverBudget => "over-budget",
            Self::PriceUnknown => "price-unknown",
            Self::NotFound => "not-found",
        }
    }
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}
