//! Money in integer millionths of a US dollar, so that budgets are added and compared exactly.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount in millionths of a US dollar.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[derive(ts_rs::TS)]
pub struct MicroUsd(u64);

const MICROS_PER_DOLLAR: u64 = 1_000_000;

impl MicroUsd {
    /// Zero dollars.
    pub const ZERO: Self = Self(0);

    /// Creates an amount from millionths of a dollar.
    pub const fn new(micros: u64) -> Self {
        Self(micros)
    }

    /// The amount in millionths of a dollar.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Adds two amounts; saturates at the maximum.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Subtracts an amount; saturates at zero.
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
    /// At least two decimals, and more if the amount needs them.
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
pub struct SpendTotals {
    /// Cost that was or may have been billed.
    pub usd: MicroUsd,
    /// Tokens that were or may have been used.
    pub tokens: u64,
    /// The part of `usd` that is an upper bound for attempts whose bill is unknown because the
    /// reply broke off.
    pub uncertain_usd: MicroUsd,
    /// Calls without a known price, which `usd` does not include.
    pub unpriced_calls: u64,
}

impl SpendTotals {
    /// Counts one attempt. `None` means the price is unknown.
    pub fn count(&mut self, usd: Option<MicroUsd>, tokens: u64) {
        match usd {
            Some(usd) => self.usd = self.usd.saturating_add(usd),
            None => self.unpriced_calls = self.unpriced_calls.saturating_add(1),
        }
        self.tokens = self.tokens.saturating_add(tokens);
    }

    /// Counts the maximum cost of an attempt whose bill is unknown.
    pub fn count_uncertain(&mut self, usd: Option<MicroUsd>, tokens: u64) {
        self.uncertain_usd = self.uncertain_usd.saturating_add(usd.unwrap_or_default());
        self.count(usd, tokens);
    }
}

/// The text is not an amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid dollar amount; expected a number such as 2.50, with at most six decimals"
)]
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

/// Serde format for dollars in files: accepts `2.5`, `3` or `"$2.50"`, and writes `"2.50"`.
pub mod dollars {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::MicroUsd;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum DollarInput {
        Whole(u64),
        Decimal(f64),
        Text(String),
    }

    /// Serializes as a decimal string.
    pub fn serialize<S: Serializer>(amount: &MicroUsd, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&amount.decimal())
    }

    /// Accepts a number or a string.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MicroUsd, D::Error> {
        let text = match DollarInput::deserialize(deserializer)? {
            DollarInput::Whole(dollars) => dollars.to_string(),
            // The shortest decimal that parses to this float is what the user typed.
            DollarInput::Decimal(dollars) => dollars.to_string(),
            DollarInput::Text(text) => text,
        };
        text.parse().map_err(de::Error::custom)
    }
}

/// Like [`dollars`], for optional amounts.
pub mod dollars_option {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::MicroUsd;

    #[derive(Deserialize)]
    struct DollarAmount(#[serde(with = "super::dollars")] MicroUsd);

    /// Serializes as a decimal string or null.
    pub fn serialize<S: Serializer>(
        amount: &Option<MicroUsd>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match amount {
            Some(amount) => super::dollars::serialize(amount, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Accepts a number, a string or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<MicroUsd>, D::Error> {
        Ok(Option::<DollarAmount>::deserialize(deserializer)?.map(|DollarAmount(amount)| amount))
    }
}

#[cfg(test)]
#[path = "money_tests.rs"]
mod tests;
