//! When a printed number is a value: by the digits it is printed with, and by no more.

use rust_decimal::Decimal;

use super::candidates::{Candidate, CandidateUnit, Reading};
use super::clause::{Comparator, Direction, Loss};
use super::digits::Sign;
use super::printed_number::PrintedNumber;
use super::units::PrintedUnit;

/// How near a printed number is to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Closeness {
    /// Less than one unit of the last printed digit away: cut instead of rounded, or rounded twice.
    LastDigit,
    /// What printing hides.
    Printed,
}

/// A number that is a candidate's magnitude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Agreement {
    pub(super) closeness: Closeness,
    /// Whether the words and signs around the number say what the candidate's sign says.
    pub(super) sign_is_right: bool,
}

/// Whether the number is the candidate.
pub(super) fn agreement(
    number: &PrintedNumber,
    candidate: &Candidate<'_>,
    currency: &str,
) -> Option<Agreement> {
    if !fits(number, candidate.unit, currency) {
        return None;
    }
    let value = as_printed(number, candidate)?;
    let closeness = closeness(number, value.abs(), candidate.is_computed())?;
    Some(Agreement { closeness, sign_is_right: sign_is_right(number, candidate, value) })
}

/// Whether a number of this unit can be a value of that one.
pub(super) fn fits(number: &PrintedNumber, unit: CandidateUnit, currency: &str) -> bool {
    if number.currency.is_some_and(|printed| !printed.can_mean(currency)) {
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
        // "416.2 billion" may be money or shares; "0.89" alone is a multiple of the sheet.
        PrintedUnit::Count => match unit {
            CandidateUnit::Shares => true,
            CandidateUnit::Money => number.scaled,
            CandidateUnit::Multiple => !number.scaled,
            _ => false,
        },
        PrintedUnit::Unreadable => false,
    }
}

/// The candidate's value in the unit that the number is printed in.
pub(super) fn as_printed(number: &PrintedNumber, candidate: &Candidate<'_>) -> Option<Decimal> {
    let factor = match number.unit {
        PrintedUnit::Percent | PrintedUnit::Points => Decimal::ONE_HUNDRED,
        PrintedUnit::BasisPoints => Decimal::from(10_000),
        _ => Decimal::ONE,
    };
    candidate.value.checked_mul(factor)
}

/// Compares magnitudes. A comparator says how far away the value may be, and on which side.
pub(super) fn closeness(
    number: &PrintedNumber,
    value: Decimal,
    is_computed: bool,
) -> Option<Closeness> {
    let printed = number.value;
    let distance = printed.checked_sub(value)?.abs();
    // What arithmetic itself loses.
    let slack = value.checked_mul(Decimal::new(1, 9))?.checked_add(Decimal::new(1, 12))?;
    let half = number.step.checked_div(Decimal::TWO)?.max(least_half(number, is_computed));
    let within = |limit: Decimal| Some(distance <= limit.checked_add(slack)?);
    let share = |hundredths: i64| printed.checked_mul(Decimal::new(hundredths, 2));
    let is_printed = match number.comparator {
        Comparator::Exact => {
            if !within(half)? && is_cut_or_rounded_twice(number, value, distance)? {
                return Some(Closeness::LastDigit);
            }
            within(half)?
        }
        Comparator::About => {
            let half_significant = number.significant_step.checked_div(Decimal::TWO)?;
            let fortieth = printed.checked_mul(Decimal::new(25, 3))?;
            within(half_significant.max(fortieth))?
        }
        Comparator::Over => {
            let top = share(115)?.checked_add(number.step)?;
            value.checked_add(half)?.checked_add(slack)? >= printed && value <= top
        }
        Comparator::Under => {
            let bottom = share(85)?.checked_sub(number.step)?;
            value <= printed.checked_add(half)?.checked_add(slack)? && value >= bottom
        }
        Comparator::Nearly => {
            value <= printed.checked_add(half)?.checked_add(slack)? && value >= share(93)?
        }
    };
    is_printed.then_some(Closeness::Printed)
}

/// 6.48 cut to 6.4, or 6.45 rounded to 6.5 and then to 7. Any other digit is another number.
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

/// A value that the author computed from printed numbers carries their rounding.
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

fn sign_is_right(number: &PrintedNumber, candidate: &Candidate<'_>, value: Decimal) -> bool {
    if value.is_zero() {
        return true;
    }
    let is_negative = value < Decimal::ZERO;
    let said = match number.sign {
        Sign::Minus => Direction::Down,
        Sign::Plus => Direction::Up,
        Sign::Plain | Sign::Bracket => number.direction,
    };
    match candidate.reading {
        Reading::Distance => true,
        Reading::Level if is_negative => {
            matches!(number.sign, Sign::Minus | Sign::Bracket) || number.loss != Loss::Unsaid
        }
        Reading::Level => {
            let is_called_a_loss = number.loss == Loss::Beside && can_be_a_loss(candidate.metric());
            number.sign != Sign::Minus && !is_called_a_loss
        }
        Reading::Change | Reading::Difference => match said {
            Direction::Up if number.loss == Loss::Beside && is_negative => true,
            Direction::Up => !is_negative,
            Direction::Down => is_negative,
            Direction::Unsaid if candidate.reading == Reading::Difference => true,
            Direction::Unsaid => !is_negative || number.loss == Loss::Beside,
        },
        Reading::LossDifference => {
            // Without a word of loss, up is what the level did.
            let is_up = if number.loss == Loss::Unsaid { !is_negative } else { is_negative };
            match said {
                Direction::Up => is_up,
                Direction::Down => !is_up,
                Direction::Unsaid => true,
            }
        }
        Reading::LossGrowth => {
            let is_called_a_loss = number.loss != Loss::Unsaid;
            is_called_a_loss && is_negative == (said == Direction::Down)
        }
    }
}

/// Metrics of which a loss is the negative; an outflow for dividends is a positive number.
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
