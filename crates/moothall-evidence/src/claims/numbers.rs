//! Extracts the numbers of a sentence that are claims, with what the surrounding words say about
//! them.
//!
//! Citations, dates, references and names are masked first ([`super::masking`]). The rest is read
//! as people print it: currencies, separators, scales, units, three kinds of negatives, ranges,
//! words. A plain integer below 100 is an enumeration ("three levers"), not a claim.

use rust_decimal::Decimal;

use super::claim_regex::ClaimRegex;
use super::clause::{self, ChangeDirection, LossMention, NumberComparator};
use super::digits::{self, DigitRun, PrintedSign};
use super::masking::masked;
use super::number_words;
use super::period_cues::{PeriodCue, period_cue};
use super::printed_number::PrintedNumber;
use super::ranges;
use super::units::{self, PrintedUnit};

/// Bare integers below this are enumerations.
const MIN_BARE_INTEGER: Decimal = Decimal::ONE_HUNDRED;

/// Digits of other scripts and single-character fractions. They are not parsed, but reported as
/// unreadable.
pub(crate) static FOREIGN: ClaimRegex = ClaimRegex::new(r"[\p{Nd}¼½¾⅐-⅞--0-9]+");

/// A number of days is a plan ("within 90 days") unless the sentence mentions one of these metrics.
pub(crate) static DAYS_METRIC: ClaimRegex = ClaimRegex::new(concat!(
    r"(?i)\b(?:dso|dio|dpo|days sales|days of (?:sales|inventory)|inventory days|days outstanding",
    r"|days payable|payable days|receivable days|collection|cash conversion cycle)\b",
));

/// Returns the numbers of one sentence, from left to right.
pub fn numbers(sentence: &str) -> Vec<PrintedNumber> {
    let masked = masked(sentence);
    // ASCII only, to preserve byte offsets.
    let lower = masked.to_ascii_lowercase();
    let mut runs = digits::runs(&masked);
    ranges::spread(&mut runs, &masked, &lower);
    let mut found: Vec<PrintedNumber> =
        runs.iter().filter_map(|run| finished(run, sentence, &masked, &lower)).collect();
    number_words::push_spelled_numbers(sentence, &lower, &mut found);
    found.extend(FOREIGN.find_iter(&masked).map(|digits| {
        let text = digits.as_str().chars().take(40).collect();
        unreadable(digits.start(), digits.end(), text)
    }));
    found.sort_by_key(|number| (number.start, number.end));
    found
}

fn finished(run: &DigitRun, sentence: &str, masked: &str, lower: &str) -> Option<PrintedNumber> {
    if run.is_year() {
        return None;
    }
    let reach = clause::clause_before(lower.get(..run.start)?);
    let right = clause::next_words(lower.get(run.tail..)?);
    let unit = run.unit.unwrap_or_else(|| unit_of_amount(run, reach, right));
    let Some(digits_value) = run.value else {
        let text = run.digits.chars().take(40).collect();
        return Some(unreadable(run.start, run.tail, text));
    };
    let is_whole = run.decimals == 0;
    if run.is_bare() && is_whole && digits_value < MIN_BARE_INTEGER {
        return None;
    }
    if unit == PrintedUnit::Days && is_whole && !DAYS_METRIC.is_match(sentence) {
        return None;
    }
    let start = start_with_currency(masked, run.start);
    let text = sentence.get(start..run.tail)?.trim().to_owned();
    let scale = units::power_of_ten(run.scale.unwrap_or(0));
    let value = digits_value.checked_mul(scale);
    let step = scale.checked_mul(Decimal::try_new(1, run.decimals).ok()?);
    let (Some(value), Some(step)) = (value, step) else {
        return Some(unreadable(start, run.tail, text));
    };
    let loss = clause::loss(reach, right);
    let zeros = if is_whole { trailing_zeros(&run.digits) } else { 0 };
    let comparator = match clause::comparator(reach) {
        NumberComparator::Exact if run.at_least => NumberComparator::Over,
        said => said,
    };
    Some(PrintedNumber {
        start,
        end: run.tail,
        text,
        value,
        step,
        significant_step: step.checked_mul(units::power_of_ten(zeros)).unwrap_or(step),
        unit,
        currency: run.currency,
        scaled: run.scale.is_some(),
        sign: run.sign,
        comparator,
        direction: clause::direction(reach, right, loss),
        loss,
        period_cue: period_cue(reach, right),
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
        sign: PrintedSign::Plain,
        comparator: NumberComparator::Exact,
        direction: ChangeDirection::Unsaid,
        loss: LossMention::Unsaid,
        period_cue: PeriodCue::Unsaid,
    }
}

/// Decides between money, money per share and a count.
fn unit_of_amount(run: &DigitRun, reach: &str, right: &str) -> PrintedUnit {
    if run.currency.is_none() {
        let is_factor = run.scale.is_none() && reach.trim_end().ends_with("factor of");
        return if is_factor { PrintedUnit::Multiple } else { PrintedUnit::Count };
    }
    let next = right.trim_start();
    // A comma starts a new amount: "EPS of $7.46, a fee of $9.99".
    let reach = reach.rfind(',').map_or(reach, |comma| &reach[comma..]);
    let is_per_share = ["per share", "a share", "per diluted", "per basic", "per common", "/share"]
        .iter()
        .any(|words| next.starts_with(words))
        || clause::words(reach).any(|word| word == "eps")
        || reach.contains("per share")
        || reach.contains("per diluted share");
    if is_per_share && run.scale.is_none() { PrintedUnit::PerShare } else { PrintedUnit::Money }
}

/// The start of the number including its currency sign.
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
