//! Decides whether a printed number equals a value, at the precision of its printed digits.

use rust_decimal::Decimal;

use super::candidates::{CandidateUnit, SignConvention, ValueCandidate};
use super::clause::{ChangeDirection, LossMention, NumberComparator};
use super::digits::PrintedSign;
use super::printed_number::PrintedNumber;
use super::units::PrintedUnit;

/// How close a printed number is to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NumberCloseness {
    /// Within one unit of the last printed digit: truncated instead of rounded, or rounded twice.
    LastDigit,
    /// Equal at the printed precision.
    Printed,
}

/// A match between a number and a candidate's magnitude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CandidateAgreement {
    pub(crate) closeness: NumberCloseness,
    /// Whether the words and signs around the number agree with the candidate's sign.
    pub(crate) sign_is_right: bool,
}

/// Compares a number with a candidate; `None` if unit or magnitude differ.
pub(crate) fn agreement(
    number: &PrintedNumber,
    candidate: &ValueCandidate<'_>,
    currency: &str,
) -> Option<CandidateAgreement> {
    if !fits(number, candidate.unit, currency) {
        return None;
    }
    let value = as_printed(number, candidate)?;
    let closeness = closeness(number, value.abs(), candidate.is_computed())?;
    Some(CandidateAgreement { closeness, sign_is_right: sign_is_right(number, candidate, value) })
}

/// Whether the number's unit and currency allow a candidate of this unit.
pub(crate) fn fits(number: &PrintedNumber, unit: CandidateUnit, currency: &str) -> bool {
    if number.currency.is_some_and(|printed| !printed.matches_code(currency)) {
        return false;
    }
    match number.unit {
        PrintedUnit::Money => {
            unit == CandidateUnit::Money || unit == CandidateUnit::PerShare && !number.scaled
        }
        PrintedUnit::PerShare => unit == CandidateUnit::PerShare,
        PrintedUnit::Percent => unit == CandidateUnit::Ratio,
        PrintedUnit::Points | PrintedUnit::BasisPoints => unit == CandidateUnit::Points,
        PrintedUnit::Multiple => {
            matches!(unit, CandidateUnit::Multiple | CandidateUnit::ComputedMultiple)
        }
        PrintedUnit::Days => unit == CandidateUnit::Days,
        // "416.2 billion" may be money or shares; "0.89" alone is a multiple from the sheet.
        PrintedUnit::Count => match unit {
            CandidateUnit::Shares => true,
            CandidateUnit::Money => number.scaled,
            CandidateUnit::Multiple => !number.scaled,
            _ => false,
        },
        PrintedUnit::Unreadable => false,
    }
}

/// The candidate's value in the number's printed unit.
pub(crate) fn as_printed(
    number: &PrintedNumber,
    candidate: &ValueCandidate<'_>,
) -> Option<Decimal> {
    let factor = match number.unit {
        PrintedUnit::Percent | PrintedUnit::Points => Decimal::ONE_HUNDRED,
        PrintedUnit::BasisPoints => Decimal::from(10_000),
        _ => Decimal::ONE,
    };
    candidate.value.checked_mul(factor)
}

/// Compares magnitudes. The comparator decides how far the value may be away, and on which side.
pub(crate) fn closeness(
    number: &PrintedNumber,
    value: Decimal,
    is_computed: bool,
) -> Option<NumberCloseness> {
    let printed = number.value;
    let distance = printed.checked_sub(value)?.abs();
    // Rounding error of the decimal arithmetic.
    let slack = value.checked_mul(Decimal::new(1, 9))?.checked_add(Decimal::new(1, 12))?;
    let half = number.step.checked_div(Decimal::TWO)?.max(least_half(number, is_computed));
    let within = |limit: Decimal| Some(distance <= limit.checked_add(slack)?);
    let share = |hundredths: i64| printed.checked_mul(Decimal::new(hundredths, 2));
    let is_printed = match number.comparator {
        NumberComparator::Exact => {
            if !within(half)? && is_cut_or_rounded_twice(number, value, distance)? {
                return Some(NumberCloseness::LastDigit);
            }
            within(half)?
        }
        NumberComparator::About => {
            let half_significant = number.significant_step.checked_div(Decimal::TWO)?;
            let fortieth = printed.checked_mul(Decimal::new(25, 3))?;
            within(half_significant.max(fortieth))?
        }
        NumberComparator::Over => {
            let top = share(115)?.checked_add(number.step)?;
            value.checked_add(half)?.checked_add(slack)? >= printed && value <= top
        }
        NumberComparator::Under => {
            let bottom = share(85)?.checked_sub(number.step)?;
            value <= printed.checked_add(half)?.checked_add(slack)? && value >= bottom
        }
        NumberComparator::Nearly => {
            value <= printed.checked_add(half)?.checked_add(slack)? && value >= share(93)?
        }
    };
    is_printed.then_some(NumberCloseness::Printed)
}

/// 6.48 truncated to 6.4, or 6.45 rounded to 6.5 and then to 7. Any other difference is a different
/// number.
fn is_cut_or_rounded_twice(
    number: &PrintedNumber,
    value: Decimal,
    distance: Decimal,
) -> Option<bool> {
    if number.value <= value {
        return Some(distance < number.step);
    }
    Some(distance <= number.step.checked_mul(Decimal::new(55, 2))?)
}

/// Minimum tolerance: a value that the author computed from printed numbers carries their rounding.
fn least_half(number: &PrintedNumber, is_computed: bool) -> Decimal {
    if !is_computed {
        return Decimal::ZERO;
    }
    match number.unit {
        PrintedUnit::Percent | PrintedUnit::Points => Decimal::new(1, 1),
        PrintedUnit::BasisPoints => Decimal::from(5),
        PrintedUnit::Multiple => Decimal::new(5, 2),
        PrintedUnit::Money => number.step,
        _ => Decimal::ZERO,
    }
}

fn sign_is_right(number: &PrintedNumber, candidate: &ValueCandidate<'_>, value: Decimal) -> bool {
    if value.is_zero() {
        return true;
    }
    let is_negative = value < Decimal::ZERO;
    let said = match number.sign {
        PrintedSign::Minus => ChangeDirection::Down,
        PrintedSign::Plus => ChangeDirection::Up,
        PrintedSign::Plain | PrintedSign::Bracket => number.direction,
    };
    match candidate.reading {
        SignConvention::Distance => true,
        SignConvention::Level if is_negative => {
            matches!(number.sign, PrintedSign::Minus | PrintedSign::Bracket)
                || number.loss != LossMention::Unsaid
        }
        SignConvention::Level => {
            let is_called_a_loss =
                number.loss == LossMention::Beside && can_be_a_loss(candidate.metric());
            number.sign != PrintedSign::Minus && !is_called_a_loss
        }
        SignConvention::Change | SignConvention::Difference => match said {
            ChangeDirection::Up if number.loss == LossMention::Beside && is_negative => true,
            ChangeDirection::Up => !is_negative,
            ChangeDirection::Down => is_negative,
            ChangeDirection::Unsaid if candidate.reading == SignConvention::Difference => true,
            ChangeDirection::Unsaid => !is_negative || number.loss == LossMention::Beside,
        },
        SignConvention::LossDifference => {
            // Without a loss word, "up" describes the level itself.
            let is_up = if number.loss == LossMention::Unsaid { !is_negative } else { is_negative };
            match said {
                ChangeDirection::Up => is_up,
                ChangeDirection::Down => !is_up,
                ChangeDirection::Unsaid => true,
            }
        }
        SignConvention::LossGrowth => {
            let is_called_a_loss = number.loss != LossMention::Unsaid;
            is_called_a_loss && is_negative == (said == ChangeDirection::Down)
        }
    }
}

/// Metrics whose negative value is a loss. An outflow for dividends is a positive number.
fn can_be_a_loss(metric: Option<&str>) -> bool {
    const INCOMES: &[&str] = &[
        "NetIncome",
        "OperatingIncome",
        "PretaxIncome",
        "EPS",
        "EBITDA",
        "CFO",
        "FreeCashFlow",
        "FCFMargin",
        "GrossProfit",
        "OperatingMargin",
        "NetMargin",
        "ROE",
        "ROA",
        "ROIC",
    ];
    metric.is_some_and(|metric| INCOMES.iter().any(|income| metric.starts_with(income)))
}

#[cfg(test)]
#[path = "tolerance_tests.rs"]
mod tests;
