//! The one reply type, and what it used.

use serde::{Deserialize, Serialize};

use crate::MicroUsd;

/// What a model answered. It holds nothing that differs between two identical answers: latency and
/// retries are kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelReply {
    /// The words.
    pub text: String,
    /// Why it stopped.
    pub stop: StopReason,
    /// The model as the provider names it in the answer.
    pub model: String,
    /// Tokens, for this call alone.
    pub usage: Usage,
    /// Where the numbers in `usage` come from.
    pub usage_basis: UsageBasis,
    /// What the call cost; absent where the price is unknown, because a guess would be worse.
    pub cost_micro_usd: Option<MicroUsd>,
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// It had said what it wanted.
    End,
    /// It was cut off at `max_tokens`.
    MaxTokens,
    /// The provider ended it for a reason we have no word for.
    Other,
}

/// Tokens of one call. The three input counts do not overlap; `reasoning` is a part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Prompt tokens read from the provider's cache.
    pub cache_read: u64,
    /// Prompt tokens written to a five-minute cache.
    pub cache_write_5m: u64,
    /// Prompt tokens written to a one-hour cache.
    pub cache_write_1h: u64,
    /// Tokens of the answer, thinking included.
    pub output: u64,
    /// How many of them were thinking.
    pub reasoning: u64,
}

impl Usage {
    /// All prompt tokens, however they were billed.
    pub fn prompt(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write_5m, self.cache_write_1h]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Prompt and answer.
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// The sum of two calls.
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

/// How far the numbers of a [`Usage`] can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(ts_rs::TS)]
pub enum UsageBasis {
    /// The provider reported them and they are possible.
    Reported,
    /// The provider reported none; these are our expectation.
    Estimated,
    /// The provider reported more than the request can have used; these are the most it can have
    /// been.
    Bounded,
}
