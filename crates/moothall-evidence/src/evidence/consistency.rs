//! Finds inconsistent and missing values.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::data_check::{AccountingIdentity, DataCheck, DataGap, GapReason};
use super::day::CalendarDay;
use super::derive::is_bank;
use super::fact::{FactId, FactUnit};
use super::fact_selection::differ_by;
use super::fact_table::FactTable;
use super::metrics::METRICS;
use super::period::FiscalPeriod;
use super::splits::{ShareSplit, factor_since, split_adjusted};

/// How many recent years are checked for missing values.
const GAP_YEARS: usize = 5;

/// Metrics expected of every company, even if it never filed them.
const EXPECTED_METRICS: &[&str] = &[
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
/// Metrics expected of every bank.
const EXPECTED_BANK_METRICS: &[&str] = &[
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

/// Alternative ways to report debt; a filer uses only one of them.
const ALTERNATIVES: &[&str] = &["DebtReported", "DebtCurrentReported"];

/// Checks equations that each closed year should satisfy within 0.2 %.
pub(crate) fn identities(table: &FactTable, ends: &BTreeMap<i32, CalendarDay>) -> Vec<DataCheck> {
    let mut checks = Vec::new();
    for &year in ends.keys() {
        let period = FiscalPeriod::Year(year);
        let at = |metric| table.value(metric, period);
        let minus = |one: Option<Decimal>, other: Option<Decimal>| {
            one.zip(other).and_then(|(one, other)| one.checked_sub(other))
        };
        let quarters = (1..=4)
            .map(|quarter| table.value("Revenue", FiscalPeriod::Quarter(year, quarter)))
            .try_fold(Decimal::ZERO, |sum, quarter| sum.checked_add(quarter?));
        let sides = [
            (AccountingIdentity::BalanceSheet, at("Assets"), at("LiabilitiesAndEquity")),
            (
                AccountingIdentity::GrossProfit,
                at("GrossProfit"),
                minus(at("Revenue"), at("CostOfRevenue")),
            ),
            (AccountingIdentity::Quarters, at("Revenue"), quarters),
            (AccountingIdentity::Debt, at("DebtReported"), at("TotalDebt")),
            (
                AccountingIdentity::NetIncome,
                at("NetIncome"),
                minus(at("PretaxIncome"), at("IncomeTax")),
            ),
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

/// Reports years whose values a later filing changed, except by a share split.
pub(crate) fn restatements(table: &FactTable, splits: &[ShareSplit]) -> Vec<DataCheck> {
    let mut checks = Vec::new();
    for (metric, period, fact) in table.facts() {
        let (FiscalPeriod::Year(_), Some(filed)) = (period, fact.filed()) else { continue };
        let Some(first) = &filed.restated_from else { continue };
        let to = filed.split.as_ref().map_or(fact.value, |split| split.as_filed);
        let basis = factor_since(splits, first.filed);
        let before = split_adjusted(fact.unit, first.value, basis).unwrap_or(first.value);
        // Rounding can change earnings per share by a cent.
        let same = match fact.unit {
            FactUnit::PerShare => before
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

/// Values of recent years that no filing has, for metrics that the filer reports in other years and
/// for the core metrics.
pub(crate) fn not_filed(table: &FactTable, ends: &BTreeMap<i32, CalendarDay>) -> BTreeSet<DataGap> {
    let core = if is_bank(table) { EXPECTED_BANK_METRICS } else { EXPECTED_METRICS };
    let years: Vec<i32> = ends.keys().rev().take(GAP_YEARS).copied().collect();
    let oldest = years.last().copied().unwrap_or_default();
    let recent = table.facts().filter(|(_, period, _)| period.fiscal_year() >= oldest);
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
            if table.value(metric.name, FiscalPeriod::Year(year)).is_none() {
                let id = FactId::new(metric.name, FiscalPeriod::Year(year));
                gaps.insert(DataGap { id, reason: GapReason::NotFiled });
            }
        }
    }
    gaps
}
