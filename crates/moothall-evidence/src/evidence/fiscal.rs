//! Which fiscal period a pair of dates is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::companyfacts::CompanyFacts;
use super::day::Day;
use super::period::Period;

/// The last day of each fiscal year by the filer's own label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FiscalYears {
    ends: BTreeMap<i32, Day>,
}

/// Years of 52 or 53 weeks, and calendar years.
const YEAR_DAYS: std::ops::RangeInclusive<i32> = 350..=380;
const QUARTER_DAYS: std::ops::RangeInclusive<i32> = 75..=120;
const HALF_YEAR_DAYS: std::ops::RangeInclusive<i32> = 165..=200;
const NINE_MONTHS_DAYS: std::ops::RangeInclusive<i32> = 250..=290;
/// A quarter is 91.31 days.
const HUNDREDTHS_OF_A_DAY_PER_QUARTER: i32 = 9_131;
/// How far a quarter may end from a multiple of 91 days: there are 12-week and 16-week quarters.
const QUARTER_SLACK_DAYS: i32 = 24;
/// The same year end may be tagged a few days apart.
const YEAR_END_SLACK_DAYS: i32 = 7;
const YEAR_START_SLACK_DAYS: i32 = 10;
/// A year of 52 weeks that ends on the first days of January belongs to the year before.
const LABEL_SHIFT_DAYS: i32 = -14;
/// A label differs from the calendar year by at most one.
const OFFSETS: std::ops::RangeInclusive<i32> = -1..=1;

/// Years that a sheet looks back from the newest one.
pub(super) const YEARS_BACK: i32 = 8;

/// Tags that every filer has, for years that only comparatives show.
const NET_INCOME: &[&str] =
    &["us-gaap:NetIncomeLoss", "us-gaap:ProfitLoss", "ifrs-full:ProfitLoss"];

impl FiscalYears {
    /// Years with known ends.
    #[cfg(test)]
    fn new(ends: BTreeMap<i32, Day>) -> Self {
        Self { ends }
    }

    /// Reads the years from what was filed up to a day.
    ///
    /// The `fy` of a row is the year of its filing, so it is trusted only for the newest annual
    /// period inside each annual report, and then only through the most common difference between
    /// label and calendar year.
    pub(super) fn read(facts: &CompanyFacts, as_of: Day) -> Self {
        let mut closed_by: BTreeMap<&str, (Day, Option<i32>)> = BTreeMap::new();
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
        let closed: BTreeSet<Day> = closed_by.values().map(|(end, _)| *end).collect();
        let mut ends: BTreeMap<i32, Day> =
            closed.iter().map(|end| (label_year(*end) + offset, *end)).collect();
        if let Some((&first_year, &first_end)) = ends.first_key_value() {
            for end in years_before(facts, as_of, first_end) {
                let back = rounded(first_end.days_since(end) * 4, 1461);
                ends.entry(first_year - back).or_insert(end);
            }
        }
        if let Some((&newest, _)) = ends.last_key_value() {
            // One more than is looked back, because a year starts where the one before it ends.
            ends = ends.split_off(&(newest - YEARS_BACK - 1));
        }
        Self { ends }
    }

    /// The ends by label.
    pub(super) fn ends(&self) -> &BTreeMap<i32, Day> {
        &self.ends
    }

    /// The label of the newest year that an annual report closed.
    pub(super) fn newest(&self) -> Option<i32> {
        self.ends.last_key_value().map(|(&year, _)| year)
    }

    /// The period of a value that covers `start` to `end`, or that was counted at `end`.
    pub(super) fn label(&self, start: Option<Day>, end: Day) -> Option<Period> {
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
                _ if closes_year => Some(Period::Year(year)),
                Some(quarter @ 1..=3) => Some(Period::Quarter(year, quarter)),
                _ => None,
            };
        };
        let length = days(start, end);
        let from_year_start = (start.days_since(end_before) - 1).abs() <= YEAR_START_SLACK_DAYS;
        match quarter {
            _ if closes_year && YEAR_DAYS.contains(&length) => Some(Period::Year(year)),
            Some(1..=4) if closes_year && QUARTER_DAYS.contains(&length) => {
                Some(Period::Quarter(year, 4))
            }
            Some(quarter @ 1..=3) if QUARTER_DAYS.contains(&length) => {
                Some(Period::Quarter(year, quarter))
            }
            Some(2) if from_year_start && HALF_YEAR_DAYS.contains(&length) => {
                Some(Period::YearToDate(year, 2))
            }
            Some(3) if from_year_start && NINE_MONTHS_DAYS.contains(&length) => {
                Some(Period::YearToDate(year, 3))
            }
            _ => None,
        }
    }

    /// The fiscal year in which a day lies, and the day on which the one before ended.
    fn year_around(&self, day: Day) -> Option<(i32, Day)> {
        let in_year = |(_, end): &(&i32, &Day)| day.days_since(**end) <= YEAR_END_SLACK_DAYS;
        if let Some((&year, &end)) = self.ends.iter().find(in_year) {
            let before = self.ends.get(&(year - 1)).copied();
            return Some((year, before.unwrap_or_else(|| end.plus_days(-365))));
        }
        // The year that is under way.
        let (&year, &end) = self.ends.last_key_value()?;
        (day.days_since(end) <= 366).then_some((year + 1, end))
    }
}

/// The period that each filing reports on, by accession number.
///
/// Counts on a cover page are dated weeks after the period, so they take the period of their
/// filing.
pub(super) fn reported_periods<'a>(
    facts: &'a CompanyFacts,
    years: &FiscalYears,
    as_of: Day,
) -> BTreeMap<&'a str, Period> {
    let mut newest: BTreeMap<&str, Day> = BTreeMap::new();
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

/// The most common difference between the label of a year and its calendar year; the smaller one if
/// two are as common.
fn usual_offset<'a>(closed: impl Iterator<Item = &'a (Day, Option<i32>)>) -> i32 {
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

/// The ends of annual comparatives before a day: years that no report of the document closes.
fn years_before(facts: &CompanyFacts, as_of: Day, before: Day) -> BTreeSet<Day> {
    let rows = NET_INCOME.iter().filter_map(|concept| facts.concepts.get(*concept)).flatten();
    rows.flat_map(|(_, rows)| facts.rows_until(rows, as_of))
        .filter(|(row, filing)| {
            let is_year = row.start.is_some_and(|start| YEAR_DAYS.contains(&days(start, row.end)));
            is_year && filing.form.is_annual() && row.end < before
        })
        .map(|(row, _)| row.end)
        .collect()
}

fn label_year(end: Day) -> i32 {
    end.plus_days(LABEL_SHIFT_DAYS).year()
}

/// How many days a span has, both ends counted.
fn days(start: Day, end: Day) -> i32 {
    end.days_since(start) + 1
}

/// The quotient, rounded to the nearest whole number.
fn rounded(dividend: i32, divisor: i32) -> i32 {
    (2 * dividend + divisor).div_euclid(2 * divisor)
}

#[cfg(test)]
#[path = "fiscal_tests.rs"]
mod tests;
