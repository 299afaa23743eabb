//! Explains why a number is not supported by its cited facts.

use rust_decimal::Decimal;

use super::candidates::{ValueCandidate, of_fact};
use super::clause::NumberComparator;
use super::fact_index::{FactRef, SheetIndex};
use super::metric_terms;
use super::printed_number::PrintedNumber;
use super::tolerance::{NumberCloseness, agreement, as_printed, fits};
use super::units::{PrintedUnit, power_of_ten};
use super::verdict::ClaimVerdict;
use crate::evidence::{FactId, FactSource, FactUnit, FiscalPeriod};

/// Limit on candidates listed in a detail.
const MAX_LISTED: usize = 3;

/// Looks for the mistake that explains the number: wrong scale, period or metric.
pub(crate) fn diagnose(
    sheet: &SheetIndex<'_>,
    number: &PrintedNumber,
    cited: &[FactRef<'_>],
    candidates: &[ValueCandidate<'_>],
) -> (ClaimVerdict, String) {
    if let Some(candidate) = of_another_scale(sheet, number, candidates) {
        return (ClaimVerdict::WrongScale, describe_candidate(number, candidate));
    }
    if let Some((fact, cited)) = of_another_period(sheet, number, cited) {
        return (ClaimVerdict::WrongPeriod, format!("it is {fact}, cited was {cited}"));
    }
    if let Some((fact, cited)) = of_another_metric(sheet, number, cited) {
        return (ClaimVerdict::Miscited, format!("it is [F0:{fact}], cited was {cited}"));
    }
    let of_unit = || candidates.iter().filter(|known| fits(number, known.unit, sheet.currency));
    if of_unit().next().is_none() {
        let currency = number.currency.filter(|printed| !printed.matches_code(sheet.currency));
        let why = match currency {
            Some(_) => format!("the sheet is in {}", sheet.currency),
            None => "no cited fact has this unit".to_owned(),
        };
        return (ClaimVerdict::Unsupported, why);
    }
    let values: Vec<String> = of_unit()
        .filter(|known| !known.is_computed())
        .take(MAX_LISTED)
        .map(|candidate| describe_candidate(number, candidate))
        .collect();
    (ClaimVerdict::WrongValue, values.join("; "))
}

/// Formats the candidate and its value in the number's unit for display.
pub(crate) fn describe_candidate(number: &PrintedNumber, candidate: &ValueCandidate<'_>) -> String {
    let value = as_printed(number, candidate).unwrap_or(candidate.value).round_dp(4).normalize();
    let unit = match number.unit {
        PrintedUnit::Percent => " %",
        PrintedUnit::Points => " points",
        PrintedUnit::BasisPoints => " bps",
        PrintedUnit::Multiple => "x",
        PrintedUnit::Days => " days",
        _ => "",
    };
    format!("{} = {value}{unit}", candidate.formula)
}

/// The id of a fact that would support an uncited number, if the sentence mentions its metric.
pub(crate) fn would_support<'a>(
    sheet: &SheetIndex<'a>,
    number: &PrintedNumber,
    lower_sentence: &str,
) -> Option<&'a FactId> {
    if !number.is_precise() || number.comparator != NumberComparator::Exact {
        return None;
    }
    let (units, factor) = facts_units(number.unit)?;
    let value = number.value.checked_div(factor)?;
    let reach = number.step.checked_div(factor)?;
    let (from, to) = (value.checked_sub(reach)?, value.checked_add(reach)?);
    units
        .iter()
        .flat_map(|unit| sheet.of_magnitude(*unit, from, to))
        .filter(|fact| metric_terms::mentions_metric(&fact.id.metric, lower_sentence))
        .filter(|fact| is_fact(sheet, number, *fact, true))
        .min_by_key(|fact| preference(*fact))
        .map(|fact| fact.id)
}

/// Sort key: filed before derived, years before quarters, newest first.
fn preference(fact: FactRef<'_>) -> (bool, bool, i32, &FactId) {
    let is_derived = matches!(fact.fact.source, FactSource::Derived { .. });
    let is_part = !matches!(fact.id.period, FiscalPeriod::Year(_));
    (is_derived, is_part, -fact.id.period.fiscal_year(), fact.id)
}

/// The fact units that a printed unit may mean, and the divisor for the printed value.
fn facts_units(unit: PrintedUnit) -> Option<(&'static [FactUnit], Decimal)> {
    match unit {
        PrintedUnit::Money => Some((&[FactUnit::Money, FactUnit::PerShare], Decimal::ONE)),
        PrintedUnit::PerShare => Some((&[FactUnit::PerShare], Decimal::ONE)),
        PrintedUnit::Percent | PrintedUnit::Points => {
            Some((&[FactUnit::Ratio], Decimal::ONE_HUNDRED))
        }
        PrintedUnit::BasisPoints => Some((&[FactUnit::Ratio], Decimal::from(10_000))),
        PrintedUnit::Multiple => Some((&[FactUnit::Multiple], Decimal::ONE)),
        PrintedUnit::Days => Some((&[FactUnit::Days], Decimal::ONE)),
        PrintedUnit::Count => {
            Some((&[FactUnit::Shares, FactUnit::Multiple, FactUnit::Money], Decimal::ONE))
        }
        PrintedUnit::Unreadable => None,
    }
}

/// Finds a candidate that differs by a power of ten, as a wrong scale word produces.
fn of_another_scale<'c, 'a>(
    sheet: &SheetIndex<'_>,
    number: &PrintedNumber,
    candidates: &'c [ValueCandidate<'a>],
) -> Option<&'c ValueCandidate<'a>> {
    let powers: &[u32] = match number.unit {
        PrintedUnit::Money | PrintedUnit::Count => &[3, 6, 9],
        PrintedUnit::Percent | PrintedUnit::Points | PrintedUnit::BasisPoints => &[2],
        _ => &[],
    };
    let factors = powers.iter().flat_map(|power| {
        let larger = power_of_ten(*power);
        [Some(larger), Decimal::ONE.checked_div(larger)]
    });
    factors.flatten().find_map(|factor| {
        let scaled = PrintedNumber {
            value: number.value.checked_mul(factor)?,
            step: number.step.checked_mul(factor)?,
            significant_step: number.significant_step.checked_mul(factor)?,
            scaled: number.scaled || number.unit == PrintedUnit::Count,
            ..number.clone()
        };
        candidates.iter().find(|candidate| {
            !candidate.is_computed() && agreement(&scaled, candidate, sheet.currency).is_some()
        })
    })
}

/// Finds the number in another period of a cited metric.
fn of_another_period<'a>(
    sheet: &SheetIndex<'a>,
    number: &PrintedNumber,
    cited: &[FactRef<'a>],
) -> Option<(&'a FactId, &'a FactId)> {
    cited.iter().find_map(|cited| {
        sheet
            .of_metric(&cited.id.metric)
            .filter(|other| other.id.period != cited.id.period)
            .find(|other| is_fact(sheet, number, *other, false))
            .map(|other| (other.id, cited.id))
    })
}

/// Finds the number in another metric of a cited period.
fn of_another_metric<'a>(
    sheet: &SheetIndex<'a>,
    number: &PrintedNumber,
    cited: &[FactRef<'a>],
) -> Option<(&'a FactId, &'a FactId)> {
    if !number.is_precise() {
        return None;
    }
    cited.iter().find_map(|cited| {
        sheet
            .of_period(cited.id.period)
            .filter(|other| other.id.metric != cited.id.metric)
            .find(|other| is_fact(sheet, number, *other, true))
            .map(|other| (other.id, cited.id))
    })
}

/// Whether the number is exact and equals this fact at its printed precision.
fn is_fact(
    sheet: &SheetIndex<'_>,
    number: &PrintedNumber,
    fact: FactRef<'_>,
    with_its_sign: bool,
) -> bool {
    number.comparator == NumberComparator::Exact
        && of_fact(fact).any(|candidate| {
            agreement(number, &candidate, sheet.currency).is_some_and(|agreement| {
                agreement.closeness == NumberCloseness::Printed
                    && (agreement.sign_is_right || !with_its_sign)
            })
        })
}
