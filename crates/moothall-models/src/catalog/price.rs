//! Costs of calls, in millionths of a dollar and rounded up.

use moothall_core::MicroUsd;
use moothall_core::model::{ModelRequest, TokenUsage};
use serde::Deserialize;

const TOKENS_PER_PRICE: u128 = 1_000_000;

/// Prices in dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenPrice {
    /// Prompt tokens.
    #[serde(with = "moothall_core::money::dollars")]
    pub input: MicroUsd,
    /// Output tokens, including reasoning.
    #[serde(with = "moothall_core::money::dollars")]
    pub output: MicroUsd,
    /// Prompt tokens read from a cache; defaults to `input`.
    #[serde(default, with = "moothall_core::money::dollars_option")]
    pub cache_read: Option<MicroUsd>,
    /// Prompt tokens written to a five-minute cache; defaults to `input`.
    #[serde(default, with = "moothall_core::money::dollars_option")]
    pub cache_write_5m: Option<MicroUsd>,
    /// Prompt tokens written to a one-hour cache; defaults to `cache_write_5m`.
    #[serde(default, with = "moothall_core::money::dollars_option")]
    pub cache_write_1h: Option<MicroUsd>,
}

impl TokenPrice {
    fn of(&self, usage: &TokenUsage) -> MicroUsd {
        let parts = [
            (usage.input, self.input),
            (usage.cache_read, self.cache_read.unwrap_or(self.input)),
            (usage.cache_write_5m, self.cache_write_5m.unwrap_or(self.input)),
            (
                usage.cache_write_1h,
                self.cache_write_1h.or(self.cache_write_5m).unwrap_or(self.input),
            ),
            (usage.output, self.output),
        ];
        let millionths: u128 = parts
            .iter()
            .map(|(tokens, price)| u128::from(*tokens) * u128::from(price.micros()))
            .fold(0, u128::saturating_add);
        MicroUsd::new(u64::try_from(millionths.div_ceil(TOKENS_PER_PRICE)).unwrap_or(u64::MAX))
    }

    fn max_input_price(&self) -> MicroUsd {
        [Some(self.input), self.cache_write_5m, self.cache_write_1h]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or(self.input)
    }
}

/// The prices of a model, which may be higher for long prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelPrices {
    /// Prices for prompts up to the threshold.
    pub base: TokenPrice,
    /// The threshold in prompt tokens, and the prices above it.
    pub above: Option<(u64, TokenPrice)>,
}

impl ModelPrices {
    pub(crate) fn new(base: TokenPrice, above: Option<(u64, TokenPrice)>) -> Self {
        Self { base, above }
    }

    pub fn free() -> Self {
        Self { base: TokenPrice::default(), above: None }
    }

    pub fn is_free(&self) -> bool {
        *self == Self::free()
    }

    /// The cost of a call.
    pub fn cost(&self, usage: &TokenUsage) -> MicroUsd {
        self.tier(usage.prompt()).of(usage)
    }

    /// Upper bound on the cost of one attempt: one token per prompt byte, at the highest
    /// cache-write price, and a reply of the maximum length.
    pub fn cost_at_most(&self, request: &ModelRequest) -> MicroUsd {
        let prompt = request.prompt_tokens_at_most();
        let usage = TokenUsage {
            input: prompt,
            output: u64::from(request.max_tokens),
            ..TokenUsage::default()
        };
        let price = self.tier(prompt);
        TokenPrice { input: price.max_input_price(), ..*price }.of(&usage)
    }

    fn tier(&self, prompt_tokens: u64) -> &TokenPrice {
        match &self.above {
            Some((threshold, price)) if prompt_tokens > *threshold => price,
            _ => &self.base,
        }
    }
}
