//! The values a number may have, given the facts it cites: the facts themselves and the arithmetic
//! that their types allow. Nothing else is tried, because each extra value lets more wrong numbers
//! match by chance.

use std::collections::BTreeMap;
use std::fmt;

use rust_decimal::{Decimal, MathematicalOps};

use super::fact_index::FactRef;
use crate::evidence::{FactId, FactUnit, FiscalPeriod};

/// The unit of a candidate value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CandidateUnit {
    Money,
    PerShare,
    Shares,
    Ratio,
    /// A difference of ratios.
    Points,
    /// A multiple stored in the sheet.
    Multiple,
    /// A computed multiple; the text must print it with `x` or `times`.
    ComputedMultiple,
    Days,
}

/// How the text expresses a candidate's sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignConvention {
    /// A level: negative only if the text says so.
    Level,
    /// A change: its magnitude with a direction word; up if none exists.
    Change,
    /// A change between two cited levels: the direction word may be missing.
    Difference,
    /// A distance, which has no sign.
    Distance,
    /// A difference of two negative levels: if the text calls them losses, up means a larger loss.
    LossDifference,
    /// Growth of a loss; the text must call it a loss.
    LossGrowth,
}

/// How a candidate value was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CandidateFormula<'a> {
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

/// A value that a printed number may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueCandidate<'a> {
    pub(crate) value: Decimal,
    pub(crate) unit: CandidateUnit,
    pub(crate) reading: SignConvention,
    pub(crate) formula: CandidateFormula<'a>,
}

impl ValueCandidate<'_> {
    /// Whether the value was computed here and is not a fact of the sheet.
    pub(crate) fn is_computed(&self) -> bool {
        !matches!(self.formula, CandidateFormula::Fact(_))
    }

    pub(crate) fn metric(&self) -> Option<&str> {
        match self.formula {
            CandidateFormula::Fact(id) => Some(&id.metric),
            _ => None,
        }
    }
}

/// The candidates of a single fact.
pub(crate) fn of_fact<'a>(fact: FactRef<'a>) -> impl Iterator<Item = ValueCandidate<'a>> {
    let FactRef { id, fact, .. } = fact;
    let is_delta = id.metric.ends_with(".delta");
    let is_change = is_delta || id.metric.ends_with(".yoy") || id.metric.contains(".cagr");
    let reading = if is_change { SignConvention::Change } else { SignConvention::Level };
    let unit = match fact.unit {
        FactUnit::Money => CandidateUnit::Money,
        FactUnit::PerShare => CandidateUnit::PerShare,
        FactUnit::Shares => CandidateUnit::Shares,
        FactUnit::Ratio => CandidateUnit::Ratio,
        FactUnit::Multiple => CandidateUnit::Multiple,
        FactUnit::Days => CandidateUnit::Days,
    };
    let own =
        ValueCandidate { value: fact.value, unit, reading, formula: CandidateFormula::Fact(id) };
    let in_points = ValueCandidate { unit: CandidateUnit::Points, ..own };
    [Some(own), is_delta.then_some(in_points)].into_iter().flatten()
}

/// All candidates that the facts support, alone and combined.
pub(crate) fn of_facts<'a>(facts: &[FactRef<'a>]) -> Vec<ValueCandidate<'a>> {
    let mut found: Vec<ValueCandidate<'a>> = facts.iter().flat_map(|fact| of_fact(*fact)).collect();
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

fn growth_as_multiple(fact: FactRef<'_>) -> Option<ValueCandidate<'_>> {
    let is_growth = fact.id.metric.ends_with(".yoy");
    let value = fact.fact.value.checked_add(Decimal::ONE).filter(|_| is_growth)?;
    Some(ValueCandidate {
        value,
        unit: CandidateUnit::ComputedMultiple,
        reading: SignConvention::Level,
        formula: CandidateFormula::OnePlus(fact.id),
    })
}

fn of_pair<'a>(left: FactRef<'a>, right: FactRef<'a>, found: &mut Vec<ValueCandidate<'a>>) {
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

/// Orders two facts as earlier and later, if they are comparable: periods of equal length, or
/// balances.
fn in_order<'a>(left: FactRef<'a>, right: FactRef<'a>) -> Option<(FactRef<'a>, FactRef<'a>)> {
    let is_comparable = left.is_balance || months(left.id.period) == months(right.id.period);
    let (left_end, right_end) = (end_in_quarters(left.id.period), end_in_quarters(right.id.period));
    match left_end.cmp(&right_end) {
        std::cmp::Ordering::Less if is_comparable => Some((left, right)),
        std::cmp::Ordering::Greater if is_comparable => Some((right, left)),
        _ => None,
    }
}

fn months(period: FiscalPeriod) -> u8 {
    match period {
        FiscalPeriod::Year(_) | FiscalPeriod::TrailingYear(..) => 12,
        FiscalPeriod::Quarter(..) => 3,
        FiscalPeriod::YearToDate(_, quarter) => quarter.saturating_mul(3),
    }
}

fn end_in_quarters(period: FiscalPeriod) -> i64 {
    let (year, quarter) = match period {
        FiscalPeriod::Year(year) => (year, 4),
        FiscalPeriod::Quarter(year, quarter)
        | FiscalPeriod::YearToDate(year, quarter)
        | FiscalPeriod::TrailingYear(year, quarter) => (year, quarter),
    };
    i64::from(year) * 4 + i64::from(quarter)
}

/// Adds the change, growth and multiple of one metric between two periods.
fn of_two_periods<'a>(
    earlier: FactRef<'a>,
    later: FactRef<'a>,
    found: &mut Vec<ValueCandidate<'a>>,
) {
    let (old, new) = (earlier.fact.value, later.fact.value);
    if earlier.fact.unit != later.fact.unit {
        return;
    }
    let are_losses = old < Decimal::ZERO && new < Decimal::ZERO;
    if let Some(value) = new.checked_sub(old) {
        found.push(ValueCandidate {
            value,
            unit: difference_unit(later.fact.unit),
            reading: if are_losses {
                SignConvention::LossDifference
            } else {
                SignConvention::Difference
            },
            formula: CandidateFormula::Difference(later.id, earlier.id),
        });
    }
    let (base, grown) = if are_losses { (-old, -new) } else { (old, new) };
    if base <= Decimal::ZERO || later.fact.unit == FactUnit::Ratio {
        return;
    }
    let Some(multiple) = grown.checked_div(base) else { return };
    found.push(ValueCandidate {
        value: multiple,
        unit: CandidateUnit::ComputedMultiple,
        reading: SignConvention::Level,
        formula: CandidateFormula::Quotient(later.id, earlier.id),
    });
    if let Some(value) = multiple.checked_sub(Decimal::ONE) {
        found.push(ValueCandidate {
            value,
            unit: CandidateUnit::Ratio,
            reading: if are_losses { SignConvention::LossGrowth } else { SignConvention::Change },
            formula: CandidateFormula::Growth(later.id, earlier.id),
        });
    }
    if !are_losses && let Some(value) = yearly_growth(earlier.id.period, later.id.period, multiple)
    {
        found.push(ValueCandidate {
            value,
            unit: CandidateUnit::Ratio,
            reading: SignConvention::Change,
            formula: CandidateFormula::Compound(later.id, earlier.id),
        });
    }
}

/// Compound annual growth over more than one year.
fn yearly_growth(first: FiscalPeriod, last: FiscalPeriod, multiple: Decimal) -> Option<Decimal> {
    let (FiscalPeriod::Year(first), FiscalPeriod::Year(last)) = (first, last) else { return None };
    let years = last.checked_sub(first).filter(|years| *years > 1)?;
    if multiple <= Decimal::ZERO {
        return None;
    }
    let power = Decimal::ONE.checked_div(Decimal::from(years))?;
    multiple.checked_powd(power)?.checked_sub(Decimal::ONE)
}

fn difference_unit(unit: FactUnit) -> CandidateUnit {
    match unit {
        FactUnit::Money => CandidateUnit::Money,
        FactUnit::PerShare => CandidateUnit::PerShare,
        FactUnit::Shares => CandidateUnit::Shares,
        FactUnit::Ratio => CandidateUnit::Points,
        FactUnit::Multiple => CandidateUnit::Multiple,
        FactUnit::Days => CandidateUnit::Days,
    }
}

/// A quarter's share of its year: "The fourth quarter brought 25% of the year's revenue."
fn share_of_year<'a>(part: FactRef<'a>, whole: FactRef<'a>) -> Option<ValueCandidate<'a>> {
    let (FiscalPeriod::Quarter(year, _) | FiscalPeriod::YearToDate(year, _)) = part.id.period
    else {
        return None;
    };
    let is_flow = !part.is_balance && part.fact.unit == FactUnit::Money;
    if whole.id.period != FiscalPeriod::Year(year) || !is_flow || whole.fact.value <= Decimal::ZERO
    {
        return None;
    }
    Some(ValueCandidate {
        value: part.fact.value.checked_div(whole.fact.value)?,
        unit: CandidateUnit::Ratio,
        reading: SignConvention::Level,
        formula: CandidateFormula::Quotient(part.id, whole.id),
    })
}

/// Adds the distance and the sum of two metrics.
fn of_two_metrics<'a>(left: FactRef<'a>, right: FactRef<'a>, found: &mut Vec<ValueCandidate<'a>>) {
    if left.fact.unit != right.fact.unit {
        return;
    }
    if let Some(value) = left.fact.value.checked_sub(right.fact.value) {
        found.push(ValueCandidate {
            value: value.abs(),
            unit: difference_unit(left.fact.unit),
            reading: SignConvention::Distance,
            formula: CandidateFormula::Difference(left.id, right.id),
        });
    }
    let is_money = left.fact.unit == FactUnit::Money;
    if is_money
        && left.id.period == right.id.period
        && let Some(value) = left.fact.value.checked_add(right.fact.value)
    {
        found.push(ValueCandidate {
            value,
            unit: CandidateUnit::Money,
            reading: SignConvention::Level,
            formula: CandidateFormula::Sum(left.id, right.id),
        });
    }
}

/// Adds one metric as a share or multiple of another, or per share.
fn quotients<'a>(left: FactRef<'a>, right: FactRef<'a>, found: &mut Vec<ValueCandidate<'a>>) {
    let is_same_year = left.id.period.fiscal_year() == right.id.period.fiscal_year();
    if left.fact.unit != FactUnit::Money || right.fact.value <= Decimal::ZERO || !is_same_year {
        return;
    }
    let Some(value) = left.fact.value.checked_div(right.fact.value) else { return };
    let (reading, formula) = (SignConvention::Level, CandidateFormula::Quotient(left.id, right.id));
    match right.fact.unit {
        FactUnit::Money => {
            for unit in [CandidateUnit::Ratio, CandidateUnit::ComputedMultiple] {
                found.push(ValueCandidate { value, unit, reading, formula });
            }
        }
        FactUnit::Shares if left.id.period == right.id.period => {
            found.push(ValueCandidate { value, unit: CandidateUnit::PerShare, reading, formula });
        }
        _ => {}
    }
}

/// Adds the total and mean of a flow over several periods of equal length: "$263.2 billion over
/// three years".
fn over_periods<'a>(facts: &[FactRef<'a>], found: &mut Vec<ValueCandidate<'a>>) {
    let mut series: BTreeMap<(&'a str, u8), Vec<FactRef<'a>>> = BTreeMap::new();
    for fact in facts {
        let is_span = matches!(fact.id.period, FiscalPeriod::Year(_) | FiscalPeriod::Quarter(..));
        if fact.fact.unit == FactUnit::Money && is_span && !fact.is_balance {
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
        let (unit, reading) = (CandidateUnit::Money, SignConvention::Level);
        found.push(ValueCandidate {
            value: total,
            unit,
            reading,
            formula: CandidateFormula::Total { metric, periods },
        });
        if let Some(value) = total.checked_div(Decimal::from(periods)) {
            found.push(ValueCandidate {
                value,
                unit,
                reading,
                formula: CandidateFormula::Mean { metric, periods },
            });
        }
    }
}

impl fmt::Display for CandidateFormula<'_> {
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
