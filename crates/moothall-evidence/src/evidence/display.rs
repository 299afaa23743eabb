//! Formats facts and gaps for documents that people read.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::data_check::GapReason;
use super::fact::{FactId, FactUnit};
use super::metric_order::metric_position;
use super::sheet::FactSheet;
use super::table::fixed;

/// The unit and the decimals of all amounts of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmountScale {
    unit: i64,
    word: &'static str,
    decimals: u32,
}

impl AmountScale {
    const ALL: [(i64, &str); 3] = [(1_000_000, " million"), (1_000, " thousand"), (1, "")];

    /// The largest unit in which the largest amount has at least four digits and the smallest is
    /// not lost. One decimal unless every amount has four digits.
    fn of(amounts: &[Decimal]) -> Self {
        let amounts = || amounts.iter().map(Decimal::abs).filter(|amount| !amount.is_zero());
        let (largest, smallest) =
            (amounts().max().unwrap_or_default(), amounts().min().unwrap_or_default());
        let fits =
            |unit: i64| largest >= Decimal::from(unit * 1_000) && smallest >= Decimal::new(unit, 1);
        let (unit, word) = Self::ALL.into_iter().find(|(unit, _)| fits(*unit)).unwrap_or((1, ""));
        let is_whole = unit == 1 || smallest >= Decimal::from(unit * 1_000);
        Self { unit, word, decimals: u32::from(!is_whole) }
    }

    fn text(self, amount: Decimal) -> String {
        let amount = amount.checked_div(Decimal::from(self.unit)).unwrap_or(amount);
        format!("{}{}", with_separators(&fixed(amount, self.decimals)), self.word)
    }
}

/// Formats an amount without its currency: `416,161 million`.
pub fn display_amount(amount: Decimal) -> String {
    AmountScale::of(&[amount]).text(amount)
}

impl FactSheet {
    /// Formats a value for people: `$416,161 million`, `32.0%`, `$7.46 per share`.
    pub fn display_value(&self, id: &FactId) -> Option<String> {
        self.display_value_in(id, AmountScale::of(&[self.fact(id)?.value]))
    }

    /// The scale for a table of these facts.
    pub fn amount_scale<'a>(&self, ids: impl IntoIterator<Item = &'a FactId>) -> AmountScale {
        let facts = ids.into_iter().filter_map(|id| self.fact(id));
        let amounts = facts.filter(|fact| fact.unit == FactUnit::Money).map(|fact| fact.value);
        AmountScale::of(&amounts.collect::<Vec<_>>())
    }

    /// Formats a value like [`FactSheet::display_value`], but amounts in this scale.
    pub fn display_value_in(&self, id: &FactId, scale: AmountScale) -> Option<String> {
        let fact = self.fact(id)?;
        let value = fact.value;
        Some(match fact.unit {
            FactUnit::Money => self.money(&scale.text(value)),
            FactUnit::Shares => format!("{} shares", display_amount(value)),
            FactUnit::PerShare => format!("{} per share", self.money(&fixed(value, 2))),
            FactUnit::Ratio => {
                let per_cent = fixed(value.checked_mul(Decimal::ONE_HUNDRED)?, 1);
                let unit = if id.is_change() { " percentage points" } else { "%" };
                format!("{per_cent}{unit}")
            }
            FactUnit::Multiple => format!("{}x", fixed(value, 2)),
            FactUnit::Days => format!("{} days", fixed(value, 1)),
        })
    }

    /// Formats an amount in the sheet's currency, like the values of facts: `$1,248,483 million`.
    pub fn display_money(&self, value: Decimal) -> String {
        self.money(&display_amount(value))
    }

    /// Lists the values that no filing has, on one line; `None` if nothing is missing.
    pub fn missing_values(&self) -> Option<String> {
        let mut periods: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for gap in self.gaps.iter().filter(|gap| gap.reason == GapReason::NotFiled) {
            periods.entry(&gap.id.metric).or_default().push(gap.id.period.to_string());
        }
        let mut metrics: Vec<(&str, Vec<String>)> = periods.into_iter().collect();
        metrics.sort_by_key(|(metric, _)| metric_position(metric));
        let listed: Vec<String> = metrics
            .into_iter()
            .map(|(metric, periods)| format!("{metric} {}", periods.join(", ")))
            .collect();
        let line = || format!("not filed under an equivalent tag: {}", listed.join("; "));
        (!listed.is_empty()).then(line)
    }

    fn money(&self, amount: &str) -> String {
        let (sign, amount) = match amount.strip_prefix('-') {
            Some(amount) => ("-", amount),
            None => ("", amount),
        };
        match self.currency.as_str() {
            "USD" => format!("{sign}${amount}"),
            currency => format!("{currency} {sign}{amount}"),
        }
    }
}

/// Inserts thousands separators.
fn with_separators(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = whole.trim_start_matches('-');
    let mut text = whole[..whole.len() - digits.len()].to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

#[cfg(test)]
#[path = "display_tests.rs"]
mod tests;
