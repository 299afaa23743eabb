//! What a call costs, in whole millionths of a dollar and never too little.

use moothall_core::MicroUsd;
use moothall_core::model::{ModelRequest, Usage};
use serde::Deserialize;

const TOKENS_PER_PRICE: u128 = 1_000_000;

/// Prices in dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Prompt tokens.
    #[serde(with = "moothall_core::money::dollars")]
    pub input: MicroUsd,
    /// Answer tokens, thinking included.
    #[serde(with = "moothall_core::money::dollars")]
    pub output: MicroUsd,
    /// Prompt tokens read from a cache; as `input` where the provider has no cache price.
    #[serde(default, with = "moothall_core::money::dollars_option")]
    pub cache_read: Option<MicroUsd>,
    /// Prompt tokens written to a five-minute cache.
    #[serde(default, with = "moothall_core::money::dollars_option")]
    pub cache_write_5m: Option<MicroUsd>,
    /// Prompt tokens written to a one-hour cache.
    #[serde(default, with = "moothall_core::money::dollars_option")]
    pub cache_write_1h: Option<MicroUsd>,
}

impl Price {
    fn of(&self, usage: &Usage) -> MicroUsd {
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

    fn dearest_input(&self) -> MicroUsd {
        [Some(self.input), self.cache_write_5m, self.cache_write_1h]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or(self.input)
    }
}

/// The prices of a model, which may rise for long prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// For prompts up to the threshold.
    pub base: Price,
    /// The threshold in prompt tokens, and the prices above it.
    pub above: Option<(u64, Price)>,
}

impl Prices {
    pub(super) fn new(base: Price, above: Option<(u64, Price)>) -> Self {
        Self { base, above }
    }

    /// Nothing costs anything.
    pub fn free() -> Self {
        Self { base: Price::default(), above: None }
    }

    /// Whether nothing costs anything.
    pub fn is_free(&self) -> bool {
        *self == Self::free()
    }

    /// What a call cost.
    pub fn cost(&self, usage: &Usage) -> MicroUsd {
        self.tier(usage.prompt()).of(usage)
    }

    /// The most that one try of a request can cost: every prompt byte a token, written to the
    /// dearest cache, and the longest answer.
    pub fn cost_at_most(&self, request: &ModelRequest) -> MicroUsd {
        let prompt = request.prompt_tokens_at_most();
        let usage =
            Usage { input: prompt, output: u64::from(request.max_tokens), ..Usage::default() };
        let price = self.tier(prompt);
        Price { input: price.dearest_input(), ..*price }.of(&usage)
    }

    fn tier(&self, prompt_tokens: u64) -> &Price {
        match &self.above {
            Some((threshold, price)) if prompt_tokens > *threshold => price,
            _ => &self.base,
        }
    }
}
