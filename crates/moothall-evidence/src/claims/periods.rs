//! Compares the periods, dates and items named in a sentence with its citations.

use std::collections::BTreeSet;

use super::claim_regex::ClaimRegex;
use super::fact_index::{FactRef, SheetIndex};
use super::period_cues::quarter_of;
use crate::evidence::{CalendarDay, FactSource, FilingEvent, FiscalPeriod, ItemCode};

/// Words that contradict the citations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CitationConflict {
    pub(crate) printed: String,
    pub(crate) detail: String,
}

static FISCAL: ClaimRegex =
    ClaimRegex::new(r"(?i)\b(?:fy|fiscal(?: year)?)\s?'?((?:20)?[0-9]{2})\b");
static CALENDAR: ClaimRegex = ClaimRegex::new(r"(?i)\b(?:in|during) (20[0-9]{2})\b");
static QUARTER: ClaimRegex = ClaimRegex::new(concat!(
    r"(?i)(?P<plan>\b(?:by|until|from|before|starting in|starting|since) (?:the )?)?",
    r"\b(?:q(?P<digit>[1-4])|(?P<word>first|second|third|fourth)[- ](?:fiscal[- ])?quarter)\b",
));
/// Words for a period other than a full year.
static PART_OF_A_YEAR: ClaimRegex = ClaimRegex::new(
    r"(?i)quarter|\bq[1-4]|\bhalf\b|\bh[12]\b|\bmonths?\b|\bytd\b|year[- ]to[- ]date|\bttm\b|trailing|so far",
);
static DATE: ClaimRegex = ClaimRegex::new(concat!(
    r"\b(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})\b",
    r"|\b(?P<month>January|February|March|April|May|June|July|August|September|October|November",
    r"|December) (?P<day>[0-9]{1,2}),? (?P<year>[0-9]{4})\b",
    r"|\b(?P<day2>[0-9]{1,2}) (?P<month2>January|February|March|April|May|June|July|August",
    r"|September|October|November|December),? (?P<year2>[0-9]{4})\b",
));
static ITEM: ClaimRegex = ClaimRegex::new(r"\b(?i:item) (?P<code>[0-9]\.[0-9]{2})\b");

/// The years and quarters named in the sentence must be those of a cited fact. `words` is the
/// sentence without citations.
pub(crate) fn disagreement(
    words: &str,
    cited: &[FactRef<'_>],
    sheet: &SheetIndex<'_>,
) -> Option<CitationConflict> {
    years(words, cited, sheet)
        .or_else(|| quarters(words, cited))
        .or_else(|| quarter_for_year_conflict(words, cited))
}

/// Compares fiscal years with period labels, and calendar years also with the days of the periods.
fn years(words: &str, cited: &[FactRef<'_>], sheet: &SheetIndex<'_>) -> Option<CitationConflict> {
    let fiscal = mentioned_years(&FISCAL, words);
    let calendar = mentioned_years(&CALENDAR, words);
    let said: BTreeSet<i32> = fiscal
        .union(&calendar)
        .copied()
        // A year without filings is the horizon of a plan.
        .filter(|year| *year <= sheet.newest_year)
        .collect();
    let labels: BTreeSet<i32> = cited.iter().map(|fact| fact.id.period.fiscal_year()).collect();
    let days: BTreeSet<i32> = cited.iter().flat_map(|fact| calendar_years(*fact, sheet)).collect();
    let bases: BTreeSet<i32> = cited.iter().flat_map(|fact| input_years(*fact)).collect();
    let is_met =
        |year: &i32| labels.contains(year) || calendar.contains(year) && days.contains(year);
    if said.iter().any(is_met) || said.iter().all(|year| bases.contains(year)) {
        return None;
    }
    Some(CitationConflict {
        printed: listed(&said),
        detail: format!("the citations are of {}", listed(&labels)),
    })
}

fn mentioned_years(pattern: &ClaimRegex, words: &str) -> BTreeSet<i32> {
    pattern
        .captures_iter(words)
        .filter_map(|found| found.get(1)?.as_str().parse::<i32>().ok())
        .map(|year| if year < 100 { year + 2000 } else { year })
        .collect()
}

/// The calendar years in which a fact's period ends and in which its midpoint lies.
pub(crate) fn calendar_years(fact: FactRef<'_>, sheet: &SheetIndex<'_>) -> Vec<i32> {
    if let FactSource::Filed(filed) = &fact.fact.source {
        let length = filed.start.map_or(0, |start| filed.end.days_since(start));
        return vec![filed.end.year(), filed.end.plus_days(-length / 2).year()];
    }
    let year = fact.id.period.fiscal_year();
    let known = sheet.year_ends.get(&year).copied();
    let year_before = || sheet.year_ends.get(&year.checked_sub(1)?).map(|end| end.plus_days(365));
    let Some(end) = known.or_else(year_before) else { return Vec::new() };
    let (until_end, length) = match fact.id.period {
        FiscalPeriod::Year(_) => (0, 365),
        FiscalPeriod::Quarter(_, quarter) => (91 * (4 - i32::from(quarter)), 91),
        FiscalPeriod::YearToDate(_, quarter) => {
            (91 * (4 - i32::from(quarter)), 91 * i32::from(quarter))
        }
        FiscalPeriod::TrailingYear(_, quarter) => (91 * (4 - i32::from(quarter)), 365),
    };
    let end = end.plus_days(-until_end);
    vec![end.year(), end.plus_days(-length / 2).year()]
}

fn input_years(fact: FactRef<'_>) -> impl Iterator<Item = i32> {
    let inputs = match &fact.fact.source {
        FactSource::Derived { inputs, .. } => inputs.as_slice(),
        FactSource::Filed(_) => &[],
    };
    inputs.iter().map(|input| input.period.fiscal_year())
}

/// "In the third quarter ..." with facts of another quarter or of the year.
fn quarters(words: &str, cited: &[FactRef<'_>]) -> Option<CitationConflict> {
    let said: BTreeSet<u8> = QUARTER
        .captures_iter(words)
        .filter(|found| found.name("plan").is_none())
        .filter_map(|found| match found.name("digit") {
            Some(digit) => digit.as_str().parse().ok(),
            None => quarter_of(found.name("word")?.as_str()),
        })
        .collect();
    if said.is_empty() {
        return None;
    }
    let periods = cited.iter().flat_map(|fact| {
        let inputs = match &fact.fact.source {
            FactSource::Derived { inputs, .. } => inputs.as_slice(),
            FactSource::Filed(_) => &[],
        };
        inputs.iter().map(|input| input.period).chain([fact.id.period])
    });
    let cited_quarters: BTreeSet<u8> = periods
        .filter_map(|period| match period {
            FiscalPeriod::Year(_) => None,
            FiscalPeriod::Quarter(_, quarter)
            | FiscalPeriod::YearToDate(_, quarter)
            | FiscalPeriod::TrailingYear(_, quarter) => Some(quarter),
        })
        .collect();
    let closes_the_year = said.contains(&4) && cited.iter().all(|fact| fact.is_balance);
    if !said.is_disjoint(&cited_quarters) || closes_the_year {
        return None;
    }
    let printed: Vec<String> = said.iter().map(|quarter| format!("Q{quarter}")).collect();
    Some(CitationConflict { printed: printed.join(", "), detail: cited_periods(cited) })
}

/// "In fiscal 2025 ..." with facts of a quarter only.
fn quarter_for_year_conflict(words: &str, cited: &[FactRef<'_>]) -> Option<CitationConflict> {
    let said = FISCAL.find(words)?;
    let are_parts = cited
        .iter()
        .all(|fact| !fact.is_balance && !matches!(fact.id.period, FiscalPeriod::Year(_)));
    if !are_parts || PART_OF_A_YEAR.is_match(words) {
        return None;
    }
    Some(CitationConflict { printed: said.as_str().to_owned(), detail: cited_periods(cited) })
}

fn cited_periods(cited: &[FactRef<'_>]) -> String {
    let periods: BTreeSet<String> = cited.iter().map(|fact| fact.id.period.to_string()).collect();
    let periods: Vec<String> = periods.into_iter().take(8).collect();
    format!("the citations are of {}", periods.join(", "))
}

fn listed(years: &BTreeSet<i32>) -> String {
    years.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
}

/// A full date beside a cited event must be its filing or report date.
pub(crate) fn other_date(words: &str, events: &[&FilingEvent]) -> Option<CitationConflict> {
    let said: Vec<(String, CalendarDay)> = DATE
        .captures_iter(words)
        .filter_map(|found| {
            let whole = found.get(0)?.as_str().to_owned();
            let part = |name: &str| found.name(name).map(|part| part.as_str());
            if let Some(iso) = part("iso") {
                return Some((whole, CalendarDay::parse(iso)?));
            }
            let month = month_of(part("month").or_else(|| part("month2"))?)?;
            let day = part("day").or_else(|| part("day2"))?.parse().ok()?;
            let year = part("year").or_else(|| part("year2"))?.parse().ok()?;
            Some((whole, CalendarDay::new(year, month, day)?))
        })
        .collect();
    let is_of_event = |day: CalendarDay| {
        events.iter().any(|event| event.filed == day || event.report_date == Some(day))
    };
    let (printed, _) = said.first()?;
    if events.is_empty() || said.iter().any(|(_, day)| is_of_event(*day)) {
        return None;
    }
    let days: BTreeSet<String> = events
        .iter()
        .flat_map(|event| [Some(event.filed), event.report_date])
        .flatten()
        .map(|day| day.to_string())
        .collect();
    let days: Vec<String> = days.into_iter().take(8).collect();
    let detail = format!("the cited event has {}", days.join(", "));
    Some(CitationConflict { printed: printed.clone(), detail })
}

fn month_of(name: &str) -> Option<i32> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let at = MONTHS.iter().position(|month| *month == name)?;
    i32::try_from(at + 1).ok()
}

/// An item code beside a cited event must be one of its items.
pub(crate) fn other_item(words: &str, events: &[&FilingEvent]) -> Option<CitationConflict> {
    if events.is_empty() {
        return None;
    }
    let has = |code: &str| {
        events.iter().any(|event| event.items.iter().any(|item| item.as_str() == code))
    };
    ITEM.captures_iter(words).find_map(|found| {
        let code = found.name("code")?.as_str();
        if has(code) {
            return None;
        }
        let items: BTreeSet<&str> =
            events.iter().flat_map(|event| event.items.iter().map(ItemCode::as_str)).collect();
        let items: Vec<&str> = items.into_iter().take(8).collect();
        Some(CitationConflict {
            printed: found.get(0)?.as_str().to_owned(),
            detail: format!("the cited event has items {}", items.join(", ")),
        })
    })
}

#[cfg(test)]
pub(crate) static ALL: &[&ClaimRegex] =
    &[&FISCAL, &CALENDAR, &QUARTER, &PART_OF_A_YEAR, &DATE, &ITEM];

#[cfg(test)]
#[path = "periods_tests.rs"]
mod tests;
