//! The reply of a model and its token usage.

use serde::{Deserialize, Serialize};

use super::failure::FailureKind;
use super::request::ModelName;
use crate::MicroUsd;

/// The reply of a model. Contains nothing that differs between identical replies; latency and
/// retries are recorded separately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelReply {
    /// The reply's text.
    pub text: String,
    /// Why the model stopped.
    pub stop: StopReason,
    /// The model name reported by the provider.
    pub model: String,
    /// Token counts of this call.
    pub usage: TokenUsage,
    /// Where the numbers in `usage` come from.
    pub usage_basis: UsageBasis,
    /// Cost of the call; `None` if the price is unknown.
    pub cost_micro_usd: Option<MicroUsd>,
    /// The fallback that answered; `None` if the requested model did. Boxed because it is rare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<ModelFallback>>,
}

/// A fallback that answered instead of the requested model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFallback {
    /// The model that answered.
    pub model: ModelName,
    /// Why the requested model did not answer.
    pub reason: FailureKind,
}

/// Why a model stopped generating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The reply is complete.
    End,
    /// The reply reached `max_tokens`.
    MaxTokens,
    /// Any other reason reported by the provider.
    Other,
}

/// Token counts of one call. The input counts do not overlap; `reasoning` is part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub struct TokenUsage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Prompt tokens read from the provider's cache.
    pub cache_read: u64,
    /// Prompt tokens written to a five-minute cache.
    pub cache_write_5m: u64,
    /// Prompt tokens written to a one-hour cache.
    pub cache_write_1h: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
}

impl TokenUsage {
    /// All prompt tokens, cached or not.
    pub fn prompt(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write_5m, self.cache_write_1h]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Prompt and output tokens.
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// Adds the counts of two calls.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write_5m: self.cache_write_5m.saturating_add(other.cache_write_5m),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

/// The source of the numbers in a [`TokenUsage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(ts_rs::TS)]
pub enum UsageBasis {
    /// Reported by the provider, and plausible.
    Reported,
    /// Our estimate; the provider reported none.
    Estimated,
    /// Upper bounds; the provider reported more than the request can have used.
    Bounded,
}
