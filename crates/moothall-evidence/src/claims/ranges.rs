//! Handles ranges: the unit, scale and currency of one end apply to both.

use super::digits::{DigitRun, PrintedSign};

const CURRENCY_SIGNS: &str = "$€£¥";

/// Copies unit, scale and currency between the ends of a range: "10–12%", "$4.5-5.0 billion", "10
/// to 12 percent", "between $1 and $2 billion".
pub(crate) fn spread(runs: &mut [DigitRun], masked: &str, lower: &str) {
    for at in 1..runs.len() {
        let (left, right) = runs.split_at_mut(at);
        let (Some(first), Some(second)) = (left.last_mut(), right.first_mut()) else { continue };
        let Some(between) = masked.get(first.tail..second.start) else { continue };
        let between = between.trim_matches(|c: char| is_space_or_currency(c));
        let is_dash = matches!(between, "-" | "–" | "—" | "−");
        let before = lower.get(..first.start).unwrap_or_default();
        let is_pair = between == "and"
            && before.trim_end_matches(|c: char| is_space_or_currency(c)).ends_with("between");
        if !(is_dash || between == "to" || is_pair) || first.is_year() {
            continue;
        }
        // "5 to $7 billion" is not a money range.
        let is_of_money = second.currency.is_some() && !second.currency_follows;
        if is_of_money && first.currency.is_none() && first.unit.is_none() {
            continue;
        }
        let unit = second.unit;
        if first.unit.is_none() && first.scale.is_none() {
            (first.unit, first.scale) = (unit, second.scale);
        }
        if unit.is_none() {
            let currency = first.currency.or(second.currency);
            (first.currency, second.currency) = (currency, currency);
        }
        if is_dash {
            // The dash is the range, not a minus sign.
            second.sign = PrintedSign::Plain;
        }
    }
}

fn is_space_or_currency(c: char) -> bool {
    c.is_whitespace() || CURRENCY_SIGNS.contains(c)
}
