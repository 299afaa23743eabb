//! Formats facts and gaps for documents that people read.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::data_check::GapReason;
use super::fact::{FactId, FactUnit};
use super::metric_order::metric_position;
use super::sheet::FactSheet;
use super::table::fixed;

impl FactSheet {
    /// Formats a value for people: `$416,161 million`, `32.0%`, `$7.46 per share`.
    pub fn display_value(&self, id: &FactId) -> Option<String> {
        let fact = self.fact(id)?;
        let value = fact.value;
        Some(match fact.unit {
            FactUnit::Money => self.money(&scaled(value)),
            FactUnit::Shares => format!("{} shares", scaled(value)),
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
        self.money(&scaled(value))
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

/// Scales a value so that at least four digits remain: `416,161 million`.
fn scaled(value: Decimal) -> String {
    let scales = [(1_000_000, " million"), (1_000, " thousand")];
    let scale = scales.into_iter().find(|(unit, _)| value.abs() >= Decimal::from(unit * 1_000_i64));
    let (unit, word) = scale.unwrap_or((1, ""));
    let amount = value.checked_div(Decimal::from(unit)).unwrap_or(value);
    format!("{}{word}", with_separators(&fixed(amount, 0)))
}

/// Inserts thousands separators.
fn with_separators(whole: &str) -> String {
    let digits = whole.trim_start_matches('-');
    let mut text = whole[..whole.len() - digits.len()].to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
#[path = "display_tests.rs"]
mod tests;
