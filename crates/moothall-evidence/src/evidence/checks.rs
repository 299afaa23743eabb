//! What does not fit together, and what is missing.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::book::Book;
use super::data_check::{DataCheck, Gap, GapReason, Identity};
use super::day::Day;
use super::derive::is_bank;
use super::fact::{FactId, Unit};
use super::metrics::METRICS;
use super::period::Period;
use super::pick::differ_by;
use super::splits::{Split, factor_since, on_new_basis};

/// Years for which a missing value is a gap.
const GAP_YEARS: usize = 5;

/// Metrics that a reader looks for in every company, also where none was ever filed.
const CORE: &[&str] = &[
    "Revenue",
    "CostOfRevenue",
    "OperatingIncome",
    "PretaxIncome",
    "IncomeTax",
    "NetIncome",
    "EPSDiluted",
    "SharesDiluted",
    "DepreciationAmortization",
    "CFO",
    "Capex",
    "Cash",
    "Assets",
    "Liabilities",
    "Equity",
];
/// The same for banks.
const CORE_OF_BANKS: &[&str] = &[
    "Revenue",
    "NetInterestIncome",
    "NoninterestIncome",
    "NoninterestExpense",
    "CreditProvision",
    "PretaxIncome",
    "IncomeTax",
    "NetIncome",
    "EPSDiluted",
    "SharesDiluted",
    "Cash",
    "Deposits",
    "Assets",
    "Liabilities",
    "Equity",
];

/// Ways to report a debt of which a filer uses one or another.
const ALTERNATIVES: &[&str] = &["DebtReported", "DebtCurrentReported"];

/// Equations that each closed year should obey within two parts in a thousand.
pub(super) fn identities(book: &Book, ends: &BTreeMap<i32, Day>) -> Vec<DataCheck> {
    let mut checks = Vec::new();
    for &year in ends.keys() {
        let period = Period::Year(year);
        let at = |metric| book.value(metric, period);
        let minus = |one: Option<Decimal>, other: Option<Decimal>| {
            one.zip(other).and_then(|(one, other)| one.checked_sub(other))
        };
        let quarters = (1..=4)
            .map(|quarter| book.value("Revenue", Period::Quarter(year, quarter)))
            .try_fold(Decimal::ZERO, |sum, quarter| sum.checked_add(quarter?));
        let sides = [
            (Identity::BalanceSheet, at("Assets"), at("LiabilitiesAndEquity")),
            (Identity::GrossProfit, at("GrossProfit"), minus(at("Revenue"), at("CostOfRevenue"))),
            (Identity::Quarters, at("Revenue"), quarters),
            (Identity::Debt, at("DebtReported"), at("TotalDebt")),
            (Identity::NetIncome, at("NetIncome"), minus(at("PretaxIncome"), at("IncomeTax"))),
        ];
        for (identity, left, right) in sides {
            if let (Some(left), Some(right)) = (left, right)
                && differ_by(left, right, Decimal::new(2, 3))
            {
                checks.push(DataCheck::Identity { identity, period, left, right });
            }
        }
    }
    checks
}

/// Years whose values a later filing changed, share splits aside.
pub(super) fn restatements(book: &Book, splits: &[Split]) -> Vec<DataCheck> {
    let mut checks = Vec::new();
    for (metric, period, fact) in book.facts() {
        let (Period::Year(_), Some(filed)) = (period, fact.filed()) else { continue };
        let Some(first) = &filed.restated_from else { continue };
        let to = filed.split.as_ref().map_or(fact.value, |split| split.as_filed);
        let basis = factor_since(splits, first.filed);
        let before = on_new_basis(fact.unit, first.value, basis).unwrap_or(first.value);
        // A cent is what rounding can do to earnings per share.
        let same = match fact.unit {
            Unit::PerShare => before
                .checked_sub(fact.value)
                .is_some_and(|change| change.abs() <= Decimal::new(1, 2)),
            _ => !differ_by(fact.value, before, Decimal::new(1, 3)),
        };
        let is_split = basis > 1 && same;
        if !is_split {
            let id = FactId::new(metric, period);
            checks.push(DataCheck::Restated { id, from: first.value, to });
        }
    }
    checks
}

/// Values of the last years that a reader would look for and that no filing has: those of metrics
/// that the filer reports otherwise, and of those that everybody reports.
pub(super) fn not_filed(book: &Book, ends: &BTreeMap<i32, Day>) -> BTreeSet<Gap> {
    let core = if is_bank(book) { CORE_OF_BANKS } else { CORE };
    let years: Vec<i32> = ends.keys().rev().take(GAP_YEARS).copied().collect();
    let oldest = years.last().copied().unwrap_or_default();
    let recent = book.facts().filter(|(_, period, _)| period.fiscal_year() >= oldest);
    let reported: BTreeSet<&str> = recent
        .map(|(metric, _, _)| metric)
        .filter(|metric| !ALTERNATIVES.contains(metric))
        .collect();
    let mut gaps = BTreeSet::new();
    for metric in METRICS {
        if !core.contains(&metric.name) && !reported.contains(metric.name) {
            continue;
        }
        for &year in &years {
            if book.value(metric.name, Period::Year(year)).is_none() {
                let id = FactId::new(metric.name, Period::Year(year));
                gaps.insert(Gap { id, reason: GapReason::NotFiled });
            }
        }
    }
    gaps
}
