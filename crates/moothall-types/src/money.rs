//! Money as whole millionths of a US dollar: budgets are added and compared exactly, never in
//! floating point.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount of US dollars in millionths.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[derive(ts_rs::TS)]
pub struct MicroUsd(u64);

const MICROS_PER_DOLLAR: u64 = 1_000_000;

impl MicroUsd {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// An amount given in millionths of a dollar.
    pub const fn new(micros: u64) -> Self {
        Self(micros)
    }

    /// The amount in millionths of a dollar.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The sum, held at the largest amount instead of wrapping around.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, held at zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for MicroUsd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::saturating_add)
    }
}

impl fmt::Display for MicroUsd {
    /// At least cents, and as many further digits as the amount has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        f.write_str(&self.decimal())
    }
}

impl MicroUsd {
    /// The amount without the dollar sign, such as `2.50` or `0.000125`.
    pub fn decimal(self) -> String {
        let mut text = format!("{}.{:06}", self.0 / MICROS_PER_DOLLAR, self.0 % MICROS_PER_DOLLAR);
        while text.ends_with('0') && text.len() > text.find('.').map_or(0, |dot| dot + 3) {
            text.pop();
        }
        text
    }
}

/// What a run has spent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// Money that was billed, or may have been.
    pub usd: MicroUsd,
    /// Tokens that were used, or may have been.
    pub tokens: u64,
    /// How much of `usd` is the worst case of tries whose bill nobody knows, because the answer
    /// broke off.
    pub uncertain_usd: MicroUsd,
    /// Calls whose price is unknown, so that `usd` says nothing about them.
    pub unpriced_calls: u64,
}

impl Spent {
    /// Counts one try; without a price it counts as unpriced.
    pub fn count(&mut self, usd: Option<MicroUsd>, tokens: u64) {
        match usd {
            Some(usd) => self.usd = self.usd.saturating_add(usd),
            None => self.unpriced_calls = self.unpriced_calls.saturating_add(1),
        }
        self.tokens = self.tokens.saturating_add(tokens);
    }

    /// Counts the worst case of one try whose bill nobody knows.
    pub fn count_uncertain(&mut self, usd: Option<MicroUsd>, tokens: u64) {
        self.uncertain_usd = self.uncertain_usd.saturating_add(usd.unwrap_or_default());
        self.count(usd, tokens);
    }
}

/// A text that is not an amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount of dollars; write it like 2.50, with at most six decimals")]
pub struct InvalidAmount(String);

impl FromStr for MicroUsd {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        let invalid = || InvalidAmount(text.chars().take(40).collect());
        let digits = text.trim();
        let digits = digits.strip_prefix('$').unwrap_or(digits);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || fraction.len() > 6 || !all_digits(whole) || !all_digits(fraction) {
            return Err(invalid());
        }
        let dollars: u64 = whole.parse().map_err(|_| invalid())?;
        let micros: u64 = format!("{fraction:0<6}").parse().map_err(|_| invalid())?;
        dollars
            .checked_mul(MICROS_PER_DOLLAR)
            .and_then(|d| d.checked_add(micros))
            .map(Self)
            .ok_or_else(invalid)
    }
}

/// Reads and writes dollars the way people write them in files: `2.5`, `3` or `"$2.50"`; written as
/// `"2.50"`.
pub mod dollars {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::MicroUsd;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Whole(u64),
        Decimal(f64),
        Text(String),
    }

    /// Serialises as a decimal string.
    pub fn serialize<S: Serializer>(amount: &MicroUsd, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&amount.decimal())
    }

    /// Accepts a number or a string.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MicroUsd, D::Error> {
        let text = match Written::deserialize(deserializer)? {
            Written::Whole(dollars) => dollars.to_string(),
            // The shortest decimal that reads back as this float is what the person typed.
            Written::Decimal(dollars) => dollars.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(de::Error::custom)
    }
}

/// As [`dollars`], for an amount that may be absent.
pub mod dollars_option {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::MicroUsd;

    #[derive(Deserialize)]
    struct Amount(#[serde(with = "super::dollars")] MicroUsd);

    /// Serialises as a decimal string or nothing.
    pub fn serialize<S: Serializer>(
        amount: &Option<MicroUsd>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match amount {
            Some(amount) => super::dollars::serialize(amount, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Accepts a number, a string or nothing.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<MicroUsd>, D::Error> {
        Ok(Option::<Amount>::deserialize(deserializer)?.map(|Amount(amount)| amount))
    }
}

#[cfg(test)]
#[path = "money_tests.rs"]
mod tests;
