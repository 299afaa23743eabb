//! Periods, dates and items in words, against what is cited.

use std::collections::BTreeSet;

use super::known::{FactRef, SheetIndex};
use super::moment::quarter_of;
use super::pattern::Pattern;
use crate::evidence::{Day, FilingEvent, ItemCode, Period, Source};

/// Words that do not agree with the citations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Disagreement {
    pub(super) printed: String,
    pub(super) detail: String,
}

static FISCAL: Pattern = Pattern::new(r"(?i)\b(?:fy|fiscal(?: year)?)\s?'?((?:20)?[0-9]{2})\b");
static CALENDAR: Pattern = Pattern::new(r"(?i)\b(?:in|during) (20[0-9]{2})\b");
static QUARTER: Pattern = Pattern::new(concat!(
    r"(?i)(?P<plan>\b(?:by|until|from|before|starting in|starting|since) (?:the )?)?",
    r"\b(?:q(?P<digit>[1-4])|(?P<word>first|second|third|fourth)[- ](?:fiscal[- ])?quarter)\b",
));
/// Words for something else than a whole year.
static PART_OF_A_YEAR: Pattern = Pattern::new(
    r"(?i)quarter|\bq[1-4]|\bhalf\b|\bh[12]\b|\bmonths?\b|\bytd\b|year[- ]to[- ]date|\bttm\b|trailing|so far",
);
static DATE: Pattern = Pattern::new(concat!(
    r"\b(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})\b",
    r"|\b(?P<month>January|February|March|April|May|June|July|August|September|October|November",
    r"|December) (?P<day>[0-9]{1,2}),? (?P<year>[0-9]{4})\b",
    r"|\b(?P<day2>[0-9]{1,2}) (?P<month2>January|February|March|April|May|June|July|August",
    r"|September|October|November|December),? (?P<year2>[0-9]{4})\b",
));
static ITEM: Pattern = Pattern::new(r"\b(?i:item) (?P<code>[0-9]\.[0-9]{2})\b");

/// The years, and the quarter, that the words name must be those of a cited fact. `words` is the
/// sentence without its citations.
pub(super) fn disagreement(
    words: &str,
    cited: &[FactRef<'_>],
    sheet: &SheetIndex<'_>,
) -> Option<Disagreement> {
    years(words, cited, sheet)
        .or_else(|| quarters(words, cited))
        .or_else(|| part_for_the_year(words, cited))
}

/// Fiscal years in words against the labels; calendar years also against the days.
fn years(words: &str, cited: &[FactRef<'_>], sheet: &SheetIndex<'_>) -> Option<Disagreement> {
    let fiscal = said_years(&FISCAL, words);
    let calendar = said_years(&CALENDAR, words);
    let said: BTreeSet<i32> = fiscal
        .union(&calendar)
        .copied()
        // A year of which nothing is filed is the horizon of a plan.
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
    Some(Disagreement {
        printed: listed(&said),
        detail: format!("the citations are of {}", listed(&labels)),
    })
}

fn said_years(pattern: &Pattern, words: &str) -> BTreeSet<i32> {
    pattern
        .captures_iter(words)
        .filter_map(|found| found.get(1)?.as_str().parse::<i32>().ok())
        .map(|year| if year < 100 { year + 2000 } else { year })
        .collect()
}

/// The calendar years in which a fact's period ends and in which most of it lies.
pub(super) fn calendar_years(fact: FactRef<'_>, sheet: &SheetIndex<'_>) -> Vec<i32> {
    if let Source::Filed(filed) = &fact.fact.source {
        let length = filed.start.map_or(0, |start| filed.end.days_since(start));
        return vec![filed.end.year(), filed.end.plus_days(-length / 2).year()];
    }
    let year = fact.id.period.fiscal_year();
    let known = sheet.year_ends.get(&year).copied();
    let year_before = || sheet.year_ends.get(&year.checked_sub(1)?).map(|end| end.plus_days(365));
    let Some(end) = known.or_else(year_before) else { return Vec::new() };
    let (until_end, length) = match fact.id.period {
        Period::Year(_) => (0, 365),
        Period::Quarter(_, quarter) => (91 * (4 - i32::from(quarter)), 91),
        Period::YearToDate(_, quarter) => (91 * (4 - i32::from(quarter)), 91 * i32::from(quarter)),
        Period::TrailingYear(_, quarter) => (91 * (4 - i32::from(quarter)), 365),
    };
    let end = end.plus_days(-until_end);
    vec![end.year(), end.plus_days(-length / 2).year()]
}

fn input_years(fact: FactRef<'_>) -> impl Iterator<Item = i32> {
    let inputs = match &fact.fact.source {
        Source::Derived { inputs, .. } => inputs.as_slice(),
        Source::Filed(_) => &[],
    };
    inputs.iter().map(|input| input.period.fiscal_year())
}

/// "In the third quarter ..." with facts of another quarter, or of the year.
fn quarters(words: &str, cited: &[FactRef<'_>]) -> Option<Disagreement> {
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
            Source::Derived { inputs, .. } => inputs.as_slice(),
            Source::Filed(_) => &[],
        };
        inputs.iter().map(|input| input.period).chain([fact.id.period])
    });
    let cited_quarters: BTreeSet<u8> = periods
        .filter_map(|period| match period {
            Period::Year(_) => None,
            Period::Quarter(_, quarter)
            | Period::YearToDate(_, quarter)
            | Period::TrailingYear(_, quarter) => Some(quarter),
        })
        .collect();
    let closes_the_year = said.contains(&4) && cited.iter().all(|fact| fact.is_balance);
    if !said.is_disjoint(&cited_quarters) || closes_the_year {
        return None;
    }
    let printed: Vec<String> = said.iter().map(|quarter| format!("Q{quarter}")).collect();
    Some(Disagreement { printed: printed.join(", "), detail: cited_periods(cited) })
}

/// "In fiscal 2025 ..." with nothing but facts of a quarter.
fn part_for_the_year(words: &str, cited: &[FactRef<'_>]) -> Option<Disagreement> {
    let said = FISCAL.find(words)?;
    let are_parts =
        cited.iter().all(|fact| !fact.is_balance && !matches!(fact.id.period, Period::Year(_)));
    if !are_parts || PART_OF_A_YEAR.is_match(words) {
        return None;
    }
    Some(Disagreement { printed: said.as_str().to_owned(), detail: cited_periods(cited) })
}

fn cited_periods(cited: &[FactRef<'_>]) -> String {
    let periods: BTreeSet<String> = cited.iter().map(|fact| fact.id.period.to_string()).collect();
    let periods: Vec<String> = periods.into_iter().take(8).collect();
    format!("the citations are of {}", periods.join(", "))
}

fn listed(years: &BTreeSet<i32>) -> String {
    years.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
}

/// A full date beside a cited event must be one of its days.
pub(super) fn other_date(words: &str, events: &[&FilingEvent]) -> Option<Disagreement> {
    let said: Vec<(String, Day)> = DATE
        .captures_iter(words)
        .filter_map(|found| {
            let whole = found.get(0)?.as_str().to_owned();
            let part = |name: &str| found.name(name).map(|part| part.as_str());
            if let Some(iso) = part("iso") {
                return Some((whole, Day::parse(iso)?));
            }
            let month = month_of(part("month").or_else(|| part("month2"))?)?;
            let day = part("day").or_else(|| part("day2"))?.parse().ok()?;
            let year = part("year").or_else(|| part("year2"))?.parse().ok()?;
            Some((whole, Day::new(year, month, day)?))
        })
        .collect();
    let is_of_event =
        |day: Day| events.iter().any(|event| event.filed == day || event.report_date == Some(day));
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
    Some(Disagreement { printed: printed.clone(), detail })
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
pub(super) fn other_item(words: &str, events: &[&FilingEvent]) -> Option<Disagreement> {
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
        Some(Disagreement {
            printed: found.get(0)?.as_str().to_owned(),
            detail: format!("the cited event has items {}", items.join(", ")),
        })
    })
}

#[cfg(test)]
pub(super) static ALL: &[&Pattern] = &[&FISCAL, &CALENDAR, &QUARTER, &PART_OF_A_YEAR, &DATE, &ITEM];

#[cfg(test)]
#[path = "periods_tests.rs"]
mod tests;
