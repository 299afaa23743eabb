//! Assigns fiscal periods to dates.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::companyfacts::CompanyFacts;
use super::day::CalendarDay;
use super::period::FiscalPeriod;

/// The last day of each fiscal year, keyed by the filer's own label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FiscalYears {
    ends: BTreeMap<i32, CalendarDay>,
}

/// Covers years of 52 or 53 weeks and calendar years.
const YEAR_DAYS: std::ops::RangeInclusive<i32> = 350..=380;
const QUARTER_DAYS: std::ops::RangeInclusive<i32> = 75..=120;
const HALF_YEAR_DAYS: std::ops::RangeInclusive<i32> = 165..=200;
const NINE_MONTHS_DAYS: std::ops::RangeInclusive<i32> = 250..=290;
/// A quarter has 91.31 days.
const HUNDREDTHS_OF_A_DAY_PER_QUARTER: i32 = 9_131;
/// How far a quarter may end from a multiple of 91 days: some quarters have 12 or 16 weeks.
const QUARTER_SLACK_DAYS: i32 = 24;
/// The same year end may be tagged with dates a few days apart.
const YEAR_END_SLACK_DAYS: i32 = 7;
const YEAR_START_SLACK_DAYS: i32 = 10;
/// A 52-week year that ends in the first days of January belongs to the previous calendar year.
const LABEL_SHIFT_DAYS: i32 = -14;
/// A label differs from the calendar year by at most one.
const OFFSETS: std::ops::RangeInclusive<i32> = -1..=1;

/// How many years before the newest one a sheet covers.
pub(crate) const YEARS_BACK: i32 = 8;

/// Tags that every filer uses, to find years that appear only as comparatives.
const NET_INCOME: &[&str] =
    &["us-gaap:NetIncomeLoss", "us-gaap:ProfitLoss", "ifrs-full:ProfitLoss"];

impl FiscalYears {
    #[cfg(test)]
    fn new(ends: BTreeMap<i32, CalendarDay>) -> Self {
        Self { ends }
    }

    /// Determines the fiscal years from filings up to `as_of`.
    ///
    /// The `fy` of a row is the year of its filing. It is used only for the newest annual period of
    /// each annual report, and only to find the most common difference between label and calendar
    /// year.
    pub(crate) fn read(facts: &CompanyFacts, as_of: CalendarDay) -> Self {
        let mut closed_by: BTreeMap<&str, (CalendarDay, Option<i32>)> = BTreeMap::new();
        for (_, row, filing) in facts.all_rows_until(as_of) {
            let is_year = row.start.is_some_and(|start| YEAR_DAYS.contains(&days(start, row.end)));
            if !is_year || !filing.form.is_annual() || row.end > filing.filed {
                continue;
            }
            let newest =
                closed_by.entry(&filing.accession).or_insert((row.end, filing.fiscal_year));
            if row.end > newest.0 {
                *newest = (row.end, filing.fiscal_year);
            }
        }
        let offset = usual_offset(closed_by.values());
        let closed: BTreeSet<CalendarDay> = closed_by.values().map(|(end, _)| *end).collect();
        let mut ends: BTreeMap<i32, CalendarDay> =
            closed.iter().map(|end| (label_year(*end) + offset, *end)).collect();
        if let Some((&first_year, &first_end)) = ends.first_key_value() {
            for end in years_before(facts, as_of, first_end) {
                let back = rounded(first_end.days_since(end) * 4, 1461);
                ends.entry(first_year - back).or_insert(end);
            }
        }
        if let Some((&newest, _)) = ends.last_key_value() {
            // One year more than the look-back, because a year starts where the previous one ends.
            ends = ends.split_off(&(newest - YEARS_BACK - 1));
        }
        Self { ends }
    }

    /// The year ends by label.
    pub(crate) fn ends(&self) -> &BTreeMap<i32, CalendarDay> {
        &self.ends
    }

    /// The label of the newest year closed by an annual report.
    pub(crate) fn newest(&self) -> Option<i32> {
        self.ends.last_key_value().map(|(&year, _)| year)
    }

    /// The period of a value that covers `start` to `end`, or of a balance at `end`.
    pub(crate) fn label(
        &self,
        start: Option<CalendarDay>,
        end: CalendarDay,
    ) -> Option<FiscalPeriod> {
        let (year, end_before) = self.year_around(end)?;
        let into = end.days_since(end_before);
        let closes_year = self
            .ends
            .get(&year)
            .is_some_and(|year_end| end.days_since(*year_end).abs() <= YEAR_END_SLACK_DAYS);
        let quarter = rounded(into * 100, HUNDREDTHS_OF_A_DAY_PER_QUARTER);
        let closes_quarter = (into - quarter * 91).abs() <= QUARTER_SLACK_DAYS;
        let quarter = u8::try_from(quarter).ok().filter(|_| closes_quarter);

        let Some(start) = start else {
            return match quarter {
                _ if closes_year => Some(FiscalPeriod::Year(year)),
                Some(quarter @ 1..=3) => Some(FiscalPeriod::Quarter(year, quarter)),
                _ => None,
            };
        };
        let length = days(start, end);
        let from_year_start = (start.days_since(end_before) - 1).abs() <= YEAR_START_SLACK_DAYS;
        match quarter {
            _ if closes_year && YEAR_DAYS.contains(&length) => Some(FiscalPeriod::Year(year)),
            Some(1..=4) if closes_year && QUARTER_DAYS.contains(&length) => {
                Some(FiscalPeriod::Quarter(year, 4))
            }
            Some(quarter @ 1..=3) if QUARTER_DAYS.contains(&length) => {
                Some(FiscalPeriod::Quarter(year, quarter))
            }
            Some(2) if from_year_start && HALF_YEAR_DAYS.contains(&length) => {
                Some(FiscalPeriod::YearToDate(year, 2))
            }
            Some(3) if from_year_start && NINE_MONTHS_DAYS.contains(&length) => {
                Some(FiscalPeriod::YearToDate(year, 3))
            }
            _ => None,
        }
    }

    /// The fiscal year that contains a day, and the end of the year before it.
    fn year_around(&self, day: CalendarDay) -> Option<(i32, CalendarDay)> {
        let in_year =
            |(_, end): &(&i32, &CalendarDay)| day.days_since(**end) <= YEAR_END_SLACK_DAYS;
        if let Some((&year, &end)) = self.ends.iter().find(in_year) {
            let before = self.ends.get(&(year - 1)).copied();
            return Some((year, before.unwrap_or_else(|| end.plus_days(-365))));
        }
        // The current, unfinished year.
        let (&year, &end) = self.ends.last_key_value()?;
        (day.days_since(end) <= 366).then_some((year + 1, end))
    }
}

/// The period that each filing reports on, by accession number.
///
/// Share counts on a cover page are dated weeks after the period, so they get the period of their
/// filing.
pub(crate) fn reported_periods<'a>(
    facts: &'a CompanyFacts,
    years: &FiscalYears,
    as_of: CalendarDay,
) -> BTreeMap<&'a str, FiscalPeriod> {
    let mut newest: BTreeMap<&str, CalendarDay> = BTreeMap::new();
    for (_, row, filing) in facts.all_rows_until(as_of) {
        let Some(start) = row.start else { continue };
        if days(start, row.end) >= *QUARTER_DAYS.start() && row.end <= filing.filed {
            let end = newest.entry(&filing.accession).or_insert(row.end);
            *end = row.end.max(*end);
        }
    }
    let labelled = newest.into_iter();
    labelled.filter_map(|(accession, end)| Some((accession, years.label(None, end)?))).collect()
}

/// The most common difference between fiscal year label and calendar year; of equally common ones,
/// the smallest in magnitude.
fn usual_offset<'a>(closed: impl Iterator<Item = &'a (CalendarDay, Option<i32>)>) -> i32 {
    let mut votes: BTreeMap<i32, usize> = BTreeMap::new();
    for (end, fiscal_year) in closed {
        let offset = fiscal_year.and_then(|year| year.checked_sub(label_year(*end)));
        if let Some(offset) = offset.filter(|offset| OFFSETS.contains(offset)) {
            *votes.entry(offset).or_default() += 1;
        }
    }
    let usual = votes.into_iter().max_by_key(|(offset, count)| (*count, Reverse(offset.abs())));
    usual.map_or(0, |(offset, _)| offset)
}

/// Year ends before a day that appear only as annual comparatives.
fn years_before(
    facts: &CompanyFacts,
    as_of: CalendarDay,
    before: CalendarDay,
) -> BTreeSet<CalendarDay> {
    let rows = NET_INCOME.iter().filter_map(|concept| facts.concepts.get(*concept)).flatten();
    rows.flat_map(|(_, rows)| facts.rows_until(rows, as_of))
        .filter(|(row, filing)| {
            let is_year = row.start.is_some_and(|start| YEAR_DAYS.contains(&days(start, row.end)));
            is_year && filing.form.is_annual() && row.end < before
        })
        .map(|(row, _)| row.end)
        .collect()
}

fn label_year(end: CalendarDay) -> i32 {
    end.plus_days(LABEL_SHIFT_DAYS).year()
}

/// The length of a span in days, including both ends.
fn days(start: CalendarDay, end: CalendarDay) -> i32 {
    end.days_since(start) + 1
}

fn rounded(dividend: i32, divisor: i32) -> i32 {
    (2 * dividend + divisor).div_euclid(2 * divisor)
}

#[cfg(test)]
#[path = "fiscal_years_tests.rs"]
mod tests;
