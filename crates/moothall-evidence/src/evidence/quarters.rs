//! Derives quarters that are not filed: the fourth, those of cash flows, and the trailing year.
//!
//! The fourth quarter has no report of its own, and cash flows are reported only for the year to
//! date. Values per share and average share counts cannot be added or subtracted, so they are not
//! derived.

use std::collections::BTreeSet;

use super::fact::{FactId, FactUnit};
use super::fact_table::{FactTable, ids};
use super::metrics::{METRICS, MetricKind};
use super::period::FiscalPeriod::{Quarter, TrailingYear, Year, YearToDate};

/// Adds the values that follow from years, quarters and years to date.
pub(crate) fn add(table: &mut FactTable) {
    let years: BTreeSet<i32> = table.periods().iter().map(|period| period.fiscal_year()).collect();
    let sums = METRICS
        .iter()
        .filter(|metric| metric.kind == MetricKind::Flow && metric.unit == FactUnit::Money);
    for metric in sums {
        for &year in &years {
            add_year(table, metric.name, year);
        }
        add_trailing_year(table, metric.name, &years);
    }
}

fn add_year(table: &mut FactTable, metric: &str, year: i32) {
    table.derive(
        FactId::new(metric, YearToDate(year, 1)),
        table.value(metric, Quarter(year, 1)),
        FactUnit::Money,
        "first quarter",
        ids([(metric, Quarter(year, 1))]),
    );
    for quarter in [2, 3] {
        let (this, so_far, before) =
            (Quarter(year, quarter), YearToDate(year, quarter), YearToDate(year, quarter - 1));
        let at = |table: &FactTable, period| table.value(metric, period);
        if let (Some(sum), Some(part)) = (at(table, so_far), at(table, before)) {
            table.derive(
                FactId::new(metric, this),
                sum.checked_sub(part),
                FactUnit::Money,
                "year to date - year to date a quarter before",
                ids([(metric, so_far), (metric, before)]),
            );
        }
        if let (Some(part), Some(rest)) = (at(table, this), at(table, before)) {
            table.derive(
                FactId::new(metric, so_far),
                part.checked_add(rest),
                FactUnit::Money,
                "year to date a quarter before + quarter",
                ids([(metric, before), (metric, this)]),
            );
        }
    }
    let (whole, nine_months) = (Year(year), YearToDate(year, 3));
    if let (Some(sum), Some(part)) = (table.value(metric, whole), table.value(metric, nine_months))
    {
        table.derive(
            FactId::new(metric, Quarter(year, 4)),
            sum.checked_sub(part),
            FactUnit::Money,
            "year - nine months",
            ids([(metric, whole), (metric, nine_months)]),
        );
    }
}

/// Adds the four quarters up to the newest one, unless it closed a year.
fn add_trailing_year(table: &mut FactTable, metric: &str, years: &BTreeSet<i32>) {
    let newest_years = years.iter().rev().take(2);
    let mut quarters = newest_years.flat_map(|&year| [(year, 3), (year, 2), (year, 1)]);
    let newest =
        quarters.find(|&(year, quarter)| table.value(metric, YearToDate(year, quarter)).is_some());
    let Some((year, quarter)) = newest else { return };
    if table.value(metric, Year(year)).is_some() {
        return;
    }
    let (before, so_far) = (Year(year - 1), YearToDate(year, quarter));
    let same_before = YearToDate(year - 1, quarter);
    let values = (
        table.value(metric, before),
        table.value(metric, so_far),
        table.value(metric, same_before),
    );
    if let (Some(last_year), Some(new), Some(old)) = values {
        table.derive(
            FactId::new(metric, TrailingYear(year, quarter)),
            last_year.checked_add(new).and_then(|sum| sum.checked_sub(old)),
            FactUnit::Money,
            "year + year to date - year to date a year before",
            ids([(metric, before), (metric, so_far), (metric, same_before)]),
        );
    }
}
