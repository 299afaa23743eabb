//! The numbers of a sentence that are claims, with everything their surroundings say about them.
//!
//! Citations, dates, references and names are masked first ([`super::masking`]). What is left is
//! read as people print it: currencies, separators, scales, units, three kinds of negatives, ranges,
//! words. A plain integer below 100 is an enumeration ("three levers"), not a claim.

use rust_decimal::Decimal;

use super::clause::{self, Comparator, Direction, Loss};
use super::digits::{self, Run, Sign};
use super::masking::masked;
use super::moment::{Moment, moment};
use super::pattern::Pattern;
use super::printed_number::PrintedNumber;
use super::ranges;
use super::spelled;
use super::units::{self, PrintedUnit};

/// Below this a bare integer is an enumeration.
const SMALL: Decimal = Decimal::ONE_HUNDRED;

/// Digits of other scripts and fractions in one sign. They are not read, and not passed over.
pub(super) static FOREIGN: Pattern = Pattern::new(r"[\p{Nd}¼½¾⅐-⅞--0-9]+");

/// A span of days is a plan ("within 90 days") unless the sentence speaks of such metrics.
pub(super) static DAYS_METRIC: Pattern = Pattern::new(concat!(
    r"(?i)\b(?:dso|dio|dpo|days sales|days of (?:sales|inventory)|inventory days|days outstanding",
    r"|days payable|payable days|receivable days|collection|cash conversion cycle)\b",
));

/// The numbers of one sentence, from left to right.
pub fn numbers(sentence: &str) -> Vec<PrintedNumber> {
    let masked = masked(sentence);
    // Only ASCII, so that every byte keeps its place.
    let lower = masked.to_ascii_lowercase();
    let mut runs = digits::runs(&masked);
    ranges::spread(&mut runs, &masked, &lower);
    let mut found: Vec<PrintedNumber> =
        runs.iter().filter_map(|run| finished(run, sentence, &masked, &lower)).collect();
    spelled::spelled(sentence, &lower, &mut found);
    found.extend(FOREIGN.find_iter(&masked).map(|digits| {
        let text = digits.as_str().chars().take(40).collect();
        unreadable(digits.start(), digits.end(), text)
    }));
    found.sort_by_key(|number| (number.start, number.end));
    found
}

fn finished(run: &Run, sentence: &str, masked: &str, lower: &str) -> Option<PrintedNumber> {
    if run.is_year() {
        return None;
    }
    let reach = clause::reach_of(lower.get(..run.start)?);
    let right = clause::next_words(lower.get(run.tail..)?);
    let unit = run.unit.unwrap_or_else(|| unit_of_amount(run, reach, right));
    let Some(digits_value) = run.value else {
        let text = run.digits.chars().take(40).collect();
        return Some(unreadable(run.start, run.tail, text));
    };
    let is_whole = run.decimals == 0;
    if run.is_bare() && is_whole && digits_value < SMALL {
        return None;
    }
    if unit == PrintedUnit::Days && is_whole && !DAYS_METRIC.is_match(sentence) {
        return None;
    }
    let start = start_with_currency(masked, run.start);
    let text = sentence.get(start..run.tail)?.trim().to_owned();
    let scale = units::ten_to(run.scale.unwrap_or(0));
    let value = digits_value.checked_mul(scale);
    let step = scale.checked_mul(Decimal::try_new(1, run.decimals).ok()?);
    let (Some(value), Some(step)) = (value, step) else {
        return Some(unreadable(start, run.tail, text));
    };
    let loss = clause::loss(reach, right);
    let zeros = if is_whole { trailing_zeros(&run.digits) } else { 0 };
    let comparator = match clause::comparator(reach) {
        Comparator::Exact if run.at_least => Comparator::Over,
        said => said,
    };
    Some(PrintedNumber {
        start,
        end: run.tail,
        text,
        value,
        step,
        significant_step: step.checked_mul(units::ten_to(zeros)).unwrap_or(step),
        unit,
        currency: run.currency,
        scaled: run.scale.is_some(),
        sign: run.sign,
        comparator,
        direction: clause::direction(reach, right, loss),
        loss,
        moment: moment(reach, right),
    })
}

fn unreadable(start: usize, end: usize, text: String) -> PrintedNumber {
    PrintedNumber {
        start,
        end,
        text,
        value: Decimal::ZERO,
        step: Decimal::ONE,
        significant_step: Decimal::ONE,
        unit: PrintedUnit::Unreadable,
        currency: None,
        scaled: false,
        sign: Sign::Plain,
        comparator: Comparator::Exact,
        direction: Direction::Unsaid,
        loss: Loss::Unsaid,
        moment: Moment::Unsaid,
    }
}

/// Money, money per share, or a count.
fn unit_of_amount(run: &Run, reach: &str, right: &str) -> PrintedUnit {
    if run.currency.is_none() {
        let is_factor = run.scale.is_none() && reach.trim_end().ends_with("factor of");
        return if is_factor { PrintedUnit::Multiple } else { PrintedUnit::Count };
    }
    let next = right.trim_start();
    // A comma begins another amount: "EPS of $7.46, a fee of $9.99".
    let reach = reach.rfind(',').map_or(reach, |comma| &reach[comma..]);
    let is_per_share = ["per share", "a share", "per diluted", "per basic", "per common", "/share"]
        .iter()
        .any(|words| next.starts_with(words))
        || clause::words(reach).any(|word| word == "eps")
        || reach.contains("per share")
        || reach.contains("per diluted share");
    if is_per_share && run.scale.is_none() { PrintedUnit::PerShare } else { PrintedUnit::Money }
}

/// Where the number begins with the signs of its currency.
fn start_with_currency(masked: &str, start: usize) -> usize {
    let signs = ['$', '€', '£', '¥'];
    let before = &masked[..start];
    let before = before.strip_suffix('(').filter(|rest| rest.ends_with(signs)).unwrap_or(before);
    before.trim_end_matches(signs).len()
}

fn trailing_zeros(digits: &str) -> u32 {
    let significant = digits.trim_end_matches('0').len().max(1);
    u32::try_from(digits.len() - significant).unwrap_or(0)
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
