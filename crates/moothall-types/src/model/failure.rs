//! Why a call gave no usable reply, as data that a journal can hold.

use serde::{Deserialize, Serialize};

use crate::MicroUsd;

/// A call without a usable reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{kind}: {detail}")]
pub struct ModelFailure {
    /// The class, which decides whether a retry can help.
    pub kind: FailureKind,
    /// What the provider or the network said, shortened and with keys removed.
    pub detail: String,
    /// The HTTP status, where one was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the provider asked us to wait. Not written: it differs between two equal runs.
    #[serde(skip)]
    pub retry_after_ms: Option<u64>,
    /// The most that all tries of this call can have cost; absent where the price is unknown. Not
    /// written: it depends on how often it was tried.
    #[serde(skip)]
    pub cost_at_most_micro_usd: Option<MicroUsd>,
}

/// The longest detail we keep. Providers echo prompts in errors, and errors go to logs.
const MAX_DETAIL_CHARS: usize = 300;

impl ModelFailure {
    /// A failure with nothing but its class and a text.
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

    /// Adds the provider's wish for a pause.
    #[must_use]
    pub fn with_retry_after_ms(self, retry_after_ms: Option<u64>) -> Self {
        Self { retry_after_ms, ..self }
    }
}

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[derive(ts_rs::TS)]
pub enum FailureKind {
    /// 429: too many requests or tokens.
    RateLimited,
    /// 529 or 503: the provider has no room at the moment.
    Overloaded,
    /// Any other 5xx.
    Server,
    /// The connection could not be made or broke before the answer began.
    Transport,
    /// No answer within the timeout.
    TimedOut,
    /// The answer began and broke off.
    Truncated,
    /// The answer is not what the wire promises: broken JSON, an HTML page, missing fields.
    Malformed,
    /// A complete answer with no text in it.
    EmptyReply,
    /// The key is missing, wrong or not allowed to use this model.
    Auth,
    /// The provider says that the prompt does not fit its window.
    ContextOverflow,
    /// The provider cut the prompt in silence; the answer is to a question we did not ask.
    ContextTruncated,
    /// The model or its filter declined to answer.
    Refused,
    /// The provider does not accept the request as it is.
    BadRequest,
    /// The call could exceed the run's budget, so it was not made.
    OverBudget,
    /// A dollar budget cannot be kept for a model without a price, so the call was not made.
    PriceUnknown,
    /// There is no such provider or recording, so the call was not made.
    NotFound,
}

impl FailureKind {
    /// Whether the same request may succeed if it is simply sent again.
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

    /// Whether a person can cure it while the run stands still: with more money, or with a key or an
    /// account that the provider accepts, the same question may be answered.
    pub fn waits_for_cure(self) -> bool {
        matches!(self, Self::Auth | Self::OverBudget)
    }

    /// Whether the provider tells us to slow down.
    pub fn asks_for_less(self) -> bool {
        matches!(self, Self::RateLimited | Self::Overloaded)
    }

    /// What the word is in files and on screen.
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
