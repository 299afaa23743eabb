//! What a number may be, given the facts it cites: the facts themselves, and what follows from them
//! by arithmetic of their types. Nothing else is tried: the more values a number may match, the more
//! wrong numbers match one by chance.

use std::collections::BTreeMap;
use std::fmt;

use rust_decimal::{Decimal, MathematicalOps};

use super::known::FactRef;
use crate::evidence::{FactId, Period, Unit};

/// What a candidate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CandidateUnit {
    Money,
    PerShare,
    Shares,
    Ratio,
    /// A difference of ratios.
    Points,
    /// A multiple that the sheet holds.
    Multiple,
    /// A multiple that we computed; it needs an `x` or `times` in the text.
    ComputedMultiple,
    Days,
}

/// How a candidate's sign is said in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// A level: negative only if the text says so.
    Level,
    /// A change: its magnitude with a word for its direction; up if there is none.
    Change,
    /// A change between two cited levels: the direction may be left to the levels.
    Difference,
    /// A distance, which has no sign.
    Distance,
    /// A difference of two negative levels: where the text calls them losses, up is a larger loss.
    LossDifference,
    /// Growth of a loss; the text must call it one.
    LossGrowth,
}

/// How a candidate came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Formula<'a> {
    Fact(&'a FactId),
    OnePlus(&'a FactId),
    Difference(&'a FactId, &'a FactId),
    Sum(&'a FactId, &'a FactId),
    Quotient(&'a FactId, &'a FactId),
    Growth(&'a FactId, &'a FactId),
    Compound(&'a FactId, &'a FactId),
    Total { metric: &'a str, periods: usize },
    Mean { metric: &'a str, periods: usize },
}

/// One value that a printed number may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate<'a> {
    pub(super) value: Decimal,
    pub(super) unit: CandidateUnit,
    pub(super) reading: Reading,
    pub(super) formula: Formula<'a>,
}

impl Candidate<'_> {
    /// Whether it was computed here and is not a fact of the sheet.
    pub(super) fn is_computed(&self) -> bool {
        !matches!(self.formula, Formula::Fact(_))
    }

    pub(super) fn metric(&self) -> Option<&str> {
        match self.formula {
            Formula::Fact(id) => Some(&id.metric),
            _ => None,
        }
    }
}

/// The values that a fact has by itself.
pub(super) fn of_fact<'a>(fact: FactRef<'a>) -> impl Iterator<Item = Candidate<'a>> {
    let FactRef { id, fact, .. } = fact;
    let is_delta = id.metric.ends_with(".delta");
    let is_change = is_delta || id.metric.ends_with(".yoy") || id.metric.contains(".cagr");
    let reading = if is_change { Reading::Change } else { Reading::Level };
    let unit = match fact.unit {
        Unit::Money => CandidateUnit::Money,
        Unit::PerShare => CandidateUnit::PerShare,
        Unit::Shares => CandidateUnit::Shares,
        Unit::Ratio => CandidateUnit::Ratio,
        Unit::Multiple => CandidateUnit::Multiple,
        Unit::Days => CandidateUnit::Days,
    };
    let own = Candidate { value: fact.value, unit, reading, formula: Formula::Fact(id) };
    let in_points = Candidate { unit: CandidateUnit::Points, ..own };
    [Some(own), is_delta.then_some(in_points)].into_iter().flatten()
}

/// Everything that the facts can support together.
pub(super) fn of_facts<'a>(facts: &[FactRef<'a>]) -> Vec<Candidate<'a>> {
    let mut found: Vec<Candidate<'a>> = facts.iter().flat_map(|fact| of_fact(*fact)).collect();
    for fact in facts {
        found.extend(growth_as_multiple(*fact));
    }
    for (at, left) in facts.iter().enumerate() {
        for right in &facts[at + 1..] {
            of_pair(*left, *right, &mut found);
        }
    }
    over_periods(facts, &mut found);
    found
}

fn growth_as_multiple(fact: FactRef<'_>) -> Option<Candidate<'_>> {
    let is_growth = fact.id.metric.ends_with(".yoy");
    let value = fact.fact.value.checked_add(Decimal::ONE).filter(|_| is_growth)?;
    Some(Candidate {
        value,
        unit: CandidateUnit::ComputedMultiple,
        reading: Reading::Level,
        formula: Formula::OnePlus(fact.id),
    })
}

fn of_pair<'a>(left: FactRef<'a>, right: FactRef<'a>, found: &mut Vec<Candidate<'a>>) {
    if left.id.metric == right.id.metric {
        if let Some((earlier, later)) = in_order(left, right) {
            of_two_periods(earlier, later, found);
        }
        found.extend(share_of_year(left, right).or_else(|| share_of_year(right, left)));
    } else {
        of_two_metrics(left, right, found);
        quotients(left, right, found);
        quotients(right, left, found);
    }
}

/// Earlier and later, if the two can be compared: spans of one length, or balances.
fn in_order<'a>(left: FactRef<'a>, right: FactRef<'a>) -> Option<(FactRef<'a>, FactRef<'a>)> {
    let is_comparable = left.is_balance || months(left.id.period) == months(right.id.period);
    let (left_end, right_end) = (end_in_quarters(left.id.period), end_in_quarters(right.id.period));
    match left_end.cmp(&right_end) {
        std::cmp::Ordering::Less if is_comparable => Some((left, right)),
        std::cmp::Ordering::Greater if is_comparable => Some((right, left)),
        _ => None,
    }
}

fn months(period: Period) -> u8 {
    match period {
        Period::Year(_) | Period::TrailingYear(..) => 12,
        Period::Quarter(..) => 3,
        Period::YearToDate(_, quarter) => quarter.saturating_mul(3),
    }
}

fn end_in_quarters(period: Period) -> i64 {
    let (year, quarter) = match period {
        Period::Year(year) => (year, 4),
        Period::Quarter(year, quarter)
        | Period::YearToDate(year, quarter)
        | Period::TrailingYear(year, quarter) => (year, quarter),
    };
    i64::from(year) * 4 + i64::from(quarter)
}

/// Change, growth and multiple of one metric between two periods.
fn of_two_periods<'a>(earlier: FactRef<'a>, later: FactRef<'a>, found: &mut Vec<Candidate<'a>>) {
    let (old, new) = (earlier.fact.value, later.fact.value);
    if earlier.fact.unit != later.fact.unit {
        return;
    }
    let are_losses = old < Decimal::ZERO && new < Decimal::ZERO;
    if let Some(value) = new.checked_sub(old) {
        found.push(Candidate {
            value,
            unit: difference_unit(later.fact.unit),
            reading: if are_losses { Reading::LossDifference } else { Reading::Difference },
            formula: Formula::Difference(later.id, earlier.id),
        });
    }
    let (base, grown) = if are_losses { (-old, -new) } else { (old, new) };
    if base <= Decimal::ZERO || later.fact.unit == Unit::Ratio {
        return;
    }
    let Some(multiple) = grown.checked_div(base) else { return };
    found.push(Candidate {
        value: multiple,
        unit: CandidateUnit::ComputedMultiple,
        reading: Reading::Level,
        formula: Formula::Quotient(later.id, earlier.id),
    });
    if let Some(value) = multiple.checked_sub(Decimal::ONE) {
        found.push(Candidate {
            value,
            unit: CandidateUnit::Ratio,
            reading: if are_losses { Reading::LossGrowth } else { Reading::Change },
            formula: Formula::Growth(later.id, earlier.id),
        });
    }
    if !are_losses && let Some(value) = yearly_growth(earlier.id.period, later.id.period, multiple)
    {
        found.push(Candidate {
            value,
            unit: CandidateUnit::Ratio,
            reading: Reading::Change,
            formula: Formula::Compound(later.id, earlier.id),
        });
    }
}

/// The compound growth over more than one year.
fn yearly_growth(first: Period, last: Period, multiple: Decimal) -> Option<Decimal> {
    let (Period::Year(first), Period::Year(last)) = (first, last) else { return None };
    let years = last.checked_sub(first).filter(|years| *years > 1)?;
    if multiple <= Decimal::ZERO {
        return None;
    }
    let power = Decimal::ONE.checked_div(Decimal::from(years))?;
    multiple.checked_powd(power)?.checked_sub(Decimal::ONE)
}

fn difference_unit(unit: Unit) -> CandidateUnit {
    match unit {
        Unit::Money => CandidateUnit::Money,
        Unit::PerShare => CandidateUnit::PerShare,
        Unit::Shares => CandidateUnit::Shares,
        Unit::Ratio => CandidateUnit::Points,
        Unit::Multiple => CandidateUnit::Multiple,
        Unit::Days => CandidateUnit::Days,
    }
}

/// "The fourth quarter brought 25% of the year's revenue."
fn share_of_year<'a>(part: FactRef<'a>, whole: FactRef<'a>) -> Option<Candidate<'a>> {
    let (Period::Quarter(year, _) | Period::YearToDate(year, _)) = part.id.period else {
        return None;
    };
    let is_flow = !part.is_balance && part.fact.unit == Unit::Money;
    if whole.id.period != Period::Year(year) || !is_flow || whole.fact.value <= Decimal::ZERO {
        return None;
    }
    Some(Candidate {
        value: part.fact.value.checked_div(whole.fact.value)?,
        unit: CandidateUnit::Ratio,
        reading: Reading::Level,
        formula: Formula::Quotient(part.id, whole.id),
    })
}

/// Distance and sum of two metrics.
fn of_two_metrics<'a>(left: FactRef<'a>, right: FactRef<'a>, found: &mut Vec<Candidate<'a>>) {
    if left.fact.unit != right.fact.unit {
        return;
    }
    if let Some(value) = left.fact.value.checked_sub(right.fact.value) {
        found.push(Candidate {
            value: value.abs(),
            unit: difference_unit(left.fact.unit),
            reading: Reading::Distance,
            formula: Formula::Difference(left.id, right.id),
        });
    }
    let is_money = left.fact.unit == Unit::Money;
    if is_money
        && left.id.period == right.id.period
        && let Some(value) = left.fact.value.checked_add(right.fact.value)
    {
        found.push(Candidate {
            value,
            unit: CandidateUnit::Money,
            reading: Reading::Level,
            formula: Formula::Sum(left.id, right.id),
        });
    }
}

/// One metric as a part or a multiple of another, or for each share.
fn quotients<'a>(left: FactRef<'a>, right: FactRef<'a>, found: &mut Vec<Candidate<'a>>) {
    let is_same_year = left.id.period.fiscal_year() == right.id.period.fiscal_year();
    if left.fact.unit != Unit::Money || right.fact.value <= Decimal::ZERO || !is_same_year {
        return;
    }
    let Some(value) = left.fact.value.checked_div(right.fact.value) else { return };
    let (reading, formula) = (Reading::Level, Formula::Quotient(left.id, right.id));
    match right.fact.unit {
        Unit::Money => {
            for unit in [CandidateUnit::Ratio, CandidateUnit::ComputedMultiple] {
                found.push(Candidate { value, unit, reading, formula });
            }
        }
        Unit::Shares if left.id.period == right.id.period => {
            found.push(Candidate { value, unit: CandidateUnit::PerShare, reading, formula });
        }
        _ => {}
    }
}

/// The same flow over several periods of one length: "$263.2 billion over three years".
fn over_periods<'a>(facts: &[FactRef<'a>], found: &mut Vec<Candidate<'a>>) {
    let mut series: BTreeMap<(&'a str, u8), Vec<FactRef<'a>>> = BTreeMap::new();
    for fact in facts {
        let is_span = matches!(fact.id.period, Period::Year(_) | Period::Quarter(..));
        if fact.fact.unit == Unit::Money && is_span && !fact.is_balance {
            series.entry((&fact.id.metric, months(fact.id.period))).or_default().push(*fact);
        }
    }
    for ((metric, _), facts) in series {
        let periods = facts.len();
        if periods < 2 {
            continue;
        }
        let total =
            facts.iter().try_fold(Decimal::ZERO, |total, fact| total.checked_add(fact.fact.value));
        let Some(total) = total else { continue };
        let (unit, reading) = (CandidateUnit::Money, Reading::Level);
        found.push(Candidate {
            value: total,
            unit,
            reading,
            formula: Formula::Total { metric, periods },
        });
        if let Some(value) = total.checked_div(Decimal::from(periods)) {
            found.push(Candidate {
                value,
                unit,
                reading,
                formula: Formula::Mean { metric, periods },
            });
        }
    }
}

impl fmt::Display for Formula<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fact(id) => write!(f, "{id}"),
            Self::OnePlus(id) => write!(f, "1 + {id}"),
            Self::Difference(left, right) => write!(f, "{left} - {right}"),
            Self::Sum(left, right) => write!(f, "{left} + {right}"),
            Self::Quotient(left, right) => write!(f, "{left} / {right}"),
            Self::Growth(later, earlier) => write!(f, "growth of {later} over {earlier}"),
            Self::Compound(later, earlier) => write!(f, "yearly growth from {earlier} to {later}"),
            Self::Total { metric, periods } => write!(f, "{metric} over {periods} periods"),
            Self::Mean { metric, periods } => write!(f, "mean of {metric} over {periods} periods"),
        }
    }
}

#[cfg(test)]
#[path = "candidates_tests.rs"]
mod tests;
