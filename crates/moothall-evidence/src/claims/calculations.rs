//! Checks numbers that cite a calculation of a debate, `[X0:m7-D2-1]`.
//!
//! A number belongs to the citation that follows it, or to the one before it if none follows.
//! Citations without words between them are one group. A number of a calculation must equal one of
//! its values at the printed precision.

use std::ops::Range;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::citations::{BRACKETS, CitationTarget, TextCitation, citations};
use super::clause::{ChangeDirection, LossMention, first_bytes};
use super::digits::PrintedSign;
use super::numbers::numbers;
use super::printed_number::PrintedNumber;
use super::sentences::sentences;
use super::tolerance::{NumberCloseness, closeness};
use super::units::PrintedUnit;
use super::verdict::{Claim, ClaimKind, ClaimVerdict};
use super::{MAX_NUMBERS, MAX_SENTENCES, MAX_TEXT_BYTES};

/// A value that a calculation returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub struct CalculatedValue {
    /// The name that the program gave it.
    pub name: String,
    /// The value, exactly as printed.
    #[ts(type = "string")]
    pub value: Decimal,
    /// The unit that the program gave it, such as `USD`, `%`, `x` or `days`.
    pub unit: String,
}

impl CalculatedValue {
    /// The value for people: `payback 3.2 years`.
    pub fn text(&self) -> String {
        let Self { name, value, unit } = self;
        match unit.as_str() {
            "" => format!("{name} {value}"),
            "%" | "x" => format!("{name} {value}{unit}"),
            unit => format!("{name} {value} {unit}"),
        }
    }
}

/// A finished calculation that a text may cite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitableCalculation {
    /// The id with its kind: `X0:m7-D2-1`.
    pub id: String,
    /// Whether the values follow from assumed constants and not from facts alone.
    pub is_assumed: bool,
    /// The values; empty if the calculation failed.
    pub values: Vec<CalculatedValue>,
}

/// Checks the sentences of a text that cite a calculation. Numbers of other citations are skipped:
/// their evidence is not at hand in a debate.
pub fn calculation_quotes(text: &str, known: &[CitableCalculation]) -> Vec<Claim> {
    let checked = first_bytes(text, MAX_TEXT_BYTES);
    let mut claims = Vec::new();
    for (number, range) in (0..).zip(sentences(checked).into_iter().take(MAX_SENTENCES)) {
        let sentence = checked.get(range).unwrap_or_default();
        let claim = |kind, printed: &str, verdict, detail: String| Claim {
            sentence: number,
            kind,
            printed: printed.trim().chars().take(super::MAX_PRINTED).collect(),
            verdict,
            detail,
        };
        for (printed, id) in citations(sentence).iter().filter_map(of_calculation) {
            if find(known, id).is_none() {
                let detail = "unknown calculation".to_owned();
                let printed = format!("[{printed}]");
                claims.push(claim(
                    ClaimKind::Citation,
                    &printed,
                    ClaimVerdict::BadCitation,
                    detail,
                ));
            }
        }
        for printed in numbers(sentence).iter().take(MAX_NUMBERS) {
            if let Some((verdict, detail)) = check_quote(printed, sentence, known) {
                claims.push(claim(ClaimKind::Number, &printed.text, verdict, detail));
            }
        }
    }
    claims
}

/// The verdict on a number that belongs to a calculation. `None` if it belongs to other evidence.
pub(crate) fn check_quote(
    number: &PrintedNumber,
    sentence: &str,
    known: &[CitableCalculation],
) -> Option<(ClaimVerdict, String)> {
    if known.is_empty() {
        return None;
    }
    let group = group_of(number, sentence)?;
    let cited: Vec<&CitableCalculation> =
        group.iter().filter_map(of_calculation).filter_map(|(_, id)| find(known, id)).collect();
    if cited.is_empty() {
        return None;
    }
    let mut best: Option<QuoteMatch<'_>> = None;
    for calculation in &cited {
        for value in &calculation.values {
            let Some(found) = QuoteMatch::of(number, calculation, value) else { continue };
            if best.as_ref().is_none_or(|known| found.rank() > known.rank()) {
                best = Some(found);
            }
        }
    }
    if let Some(found) = best {
        return Some(found.verdict());
    }
    let is_other = |one: &TextCitation| {
        !matches!(one.cited, CitationTarget::Calculation { .. } | CitationTarget::Assumption)
    };
    if group.iter().any(is_other) {
        return None;
    }
    if group.iter().any(|one| one.cited == CitationTarget::Assumption) {
        return Some((ClaimVerdict::Assumption, String::new()));
    }
    let values: Vec<String> = cited
        .iter()
        .map(|one| {
            let values: Vec<String> = one.values.iter().map(CalculatedValue::text).collect();
            match values.as_slice() {
                [] => format!("{} has no values", one.id),
                values => format!("{} has {}", one.id, values.join(", ")),
            }
        })
        .collect();
    Some((ClaimVerdict::WrongValue, values.join("; ")))
}

/// A value that the number agrees with, apart from its sign.
struct QuoteMatch<'a> {
    calculation: &'a CitableCalculation,
    value: &'a CalculatedValue,
    closeness: NumberCloseness,
    sign_is_right: bool,
}

impl<'a> QuoteMatch<'a> {
    fn of(
        number: &PrintedNumber,
        calculation: &'a CitableCalculation,
        value: &'a CalculatedValue,
    ) -> Option<Self> {
        let printed = in_printed_unit(number, value)?;
        let closeness = closeness(number, printed.abs(), false)?;
        let is_called_negative = matches!(number.sign, PrintedSign::Minus | PrintedSign::Bracket)
            || number.direction == ChangeDirection::Down
            || number.loss != LossMention::Unsaid;
        let sign_is_right = match printed {
            zero if zero.is_zero() => true,
            negative if negative.is_sign_negative() => is_called_negative,
            _ => !matches!(number.sign, PrintedSign::Minus),
        };
        Some(Self { calculation, value, closeness, sign_is_right })
    }

    fn rank(&self) -> (bool, NumberCloseness, bool) {
        (self.sign_is_right, self.closeness, !self.calculation.is_assumed)
    }

    fn verdict(&self) -> (ClaimVerdict, String) {
        let detail = format!("{} has {}", self.calculation.id, self.value.text());
        let verdict = match (self.sign_is_right, self.closeness) {
            (false, _) => ClaimVerdict::WrongSign,
            (true, _) if self.calculation.is_assumed => ClaimVerdict::Assumption,
            (true, NumberCloseness::LastDigit) => ClaimVerdict::Rounding,
            (true, NumberCloseness::Printed) => ClaimVerdict::OkDerived,
        };
        (verdict, detail)
    }
}

/// The value as a text would print it in the unit of the number. `None` if the units differ.
fn in_printed_unit(number: &PrintedNumber, value: &CalculatedValue) -> Option<Decimal> {
    let unit = value.unit.trim().to_lowercase();
    let scale = match unit.as_str() {
        unit if unit.contains("billion") || unit.ends_with("bn") => 1_000_000_000,
        unit if unit.contains("million") || unit.ends_with("mn") => 1_000_000,
        unit if unit.contains("thousand") => 1_000,
        _ => 1,
    };
    let amount = value.value.checked_mul(Decimal::from(scale))?;
    let is_percent = matches!(unit.as_str(), "%" | "percent" | "pct");
    let is_points = matches!(unit.as_str(), "points" | "pp" | "percentage points");
    let is_basis = matches!(unit.as_str(), "bps" | "bp" | "basis points");
    let is_plain = matches!(unit.as_str(), "" | "ratio" | "fraction" | "share" | "rate");
    let hundred = |value: Decimal| value.checked_mul(Decimal::ONE_HUNDRED);
    match number.unit {
        PrintedUnit::Percent | PrintedUnit::Points if is_percent || is_points => Some(amount),
        PrintedUnit::Percent | PrintedUnit::Points if is_plain => hundred(amount),
        PrintedUnit::BasisPoints if is_basis => Some(amount),
        PrintedUnit::BasisPoints if is_percent || is_points => hundred(amount),
        PrintedUnit::Percent | PrintedUnit::Points | PrintedUnit::BasisPoints => None,
        PrintedUnit::Days => (unit.is_empty() || unit.contains("day")).then_some(amount),
        PrintedUnit::Multiple => {
            let is_multiple = matches!(unit.as_str(), "x" | "times" | "multiple");
            (is_multiple || is_plain).then_some(amount)
        }
        PrintedUnit::Money | PrintedUnit::PerShare => {
            let is_amount = !(is_percent || is_points || is_basis || unit.contains("day"));
            (is_amount && unit != "x").then_some(amount)
        }
        // "3.2 years" and "416.2 billion" have no unit that is read.
        PrintedUnit::Count => Some(amount),
        PrintedUnit::Unreadable => None,
    }
}

/// The citations that a number belongs to.
fn group_of(number: &PrintedNumber, sentence: &str) -> Option<Vec<TextCitation>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for bracket in BRACKETS.find_iter(sentence) {
        match groups.last_mut() {
            Some(before) if is_gap(sentence.get(before.end..bracket.start())) => {
                before.end = bracket.end();
            }
            _ => groups.push(bracket.range()),
        }
    }
    let behind = groups.iter().find(|group| group.start >= number.end);
    let group = behind.or_else(|| groups.last())?;
    Some(citations(sentence.get(group.clone())?))
}

/// Whether nothing but spaces and commas separates two citations.
fn is_gap(between: Option<&str>) -> bool {
    between.is_some_and(|text| text.chars().all(|sign| sign.is_whitespace() || ",;".contains(sign)))
}

/// The printed form and the id, if the citation is of a calculation.
fn of_calculation(citation: &TextCitation) -> Option<(&str, &str)> {
    match &citation.cited {
        CitationTarget::Calculation { id } => Some((&citation.text, id)),
        _ => None,
    }
}

/// Looks up a calculation by its id without the kind. Agents do not always preserve case.
pub(crate) fn find<'a>(
    known: &'a [CitableCalculation],
    id: &str,
) -> Option<&'a CitableCalculation> {
    let own = |one: &'a CitableCalculation| one.id.strip_prefix("X0:").unwrap_or(&one.id);
    known.iter().find(|one| own(one).eq_ignore_ascii_case(id))
}

#[cfg(test)]
#[path = "calculations_tests.rs"]
mod tests;
