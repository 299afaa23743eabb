//! Which of several periods the words beside a number mean: "up from $391.0 billion", "$391.0 billion
//! in fiscal 2024", "46.2% a year earlier".
//!
//! Where a sentence cites one metric in two periods, either value would pass as a fact of the
//! sentence; these words say which one it must be.

use super::clause::{self, next_words};
use super::pattern::Pattern;
use crate::evidence::Period;

/// What the words beside a number say about its period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The earlier one of two: "from", "a year earlier".
    Earlier,
    /// The later one of two: "from … to".
    Later,
    /// The fiscal year with this label.
    FiscalYear(i32),
    /// This year, fiscal or of the calendar.
    Year(i32),
    /// This quarter of whatever year.
    Quarter(u8),
    /// They do not say.
    Unsaid,
}

/// Right after the number, its unit and one noun at most.
pub(super) static AFTER: Pattern = Pattern::new(concat!(
    r"^[\s,)]{0,3}(?:(?:in|for|of|during|at the end of|at end of) (?:the )?(?:full )?(?:",
    r"(?:fiscal(?: year)?|fy) ?'?(?P<fiscal>(?:20)?[0-9]{2})\b|(?P<year>20[0-9]{2})\b",
    r"|q(?P<q>[1-4])\b|(?P<word>first|second|third|fourth)[- ](?:fiscal )?quarter\b)",
    r"|(?P<earlier>(?:a|one|the) (?:year|quarter) (?:earlier|ago|before)\b",
    r"|(?:in )?the (?:previous|prior|preceding) (?:fiscal )?(?:year|quarter|period)\b|last year\b))",
));

/// The last year before the number, with no other number in between.
pub(super) static BEFORE: Pattern = Pattern::new(concat!(
    r"(?:^|\b(?:in|for|during) (?:the )?(?:full )?)",
    r"(?:(?:fiscal(?: year)?|fy) ?'?(?P<fiscal>(?:20)?[0-9]{2})|(?P<year>20[0-9]{2}))\b[^0-9]*$",
));

/// Words with which a sentence looks back.
pub(super) static COMPARES: Pattern = Pattern::new(concat!(
    r"\b(?:from|against|versus|vs|compared|compares|than|earlier|previous|prior|before|ago|last year",
    r"|after|instead|since|over|between)\b",
));

/// Reads the words to the left, as far as they reach, and to the right, in lower case.
pub(super) fn moment(reach: &str, right: &str) -> Moment {
    if let Some(found) = AFTER.captures(next_words(right)) {
        if found.name("earlier").is_some() {
            return Moment::Earlier;
        }
        let quarter = found.name("q").and_then(|digit| digit.as_str().parse().ok());
        if let Some(quarter) = quarter.or_else(|| quarter_of(found.name("word")?.as_str())) {
            return Moment::Quarter(quarter);
        }
        if let Some(said) = year_of(&found) {
            return said;
        }
    }
    if clause::ends_a_move(reach, "from") && !reach.contains("rang") {
        return Moment::Earlier;
    }
    let has_start = clause::words(reach).any(|word| word == "from") && !reach.contains("rang");
    if has_start && clause::ends_a_move(reach, "to") {
        return Moment::Later;
    }
    BEFORE.captures(reach).and_then(|found| year_of(&found)).unwrap_or(Moment::Unsaid)
}

fn year_of(found: &regex::Captures<'_>) -> Option<Moment> {
    let number = |name: &str| found.name(name)?.as_str().parse::<i32>().ok();
    if let Some(year) = number("fiscal") {
        return Some(Moment::FiscalYear(if year < 100 { year + 2000 } else { year }));
    }
    number("year").map(Moment::Year)
}

pub(super) fn quarter_of(word: &str) -> Option<u8> {
    let words = ["first", "second", "third", "fourth"];
    let at = words.iter().position(|known| known.eq_ignore_ascii_case(word))?;
    u8::try_from(at + 1).ok()
}

/// Whether a sentence looks back at all.
pub(super) fn compares(lower_sentence: &str) -> bool {
    COMPARES.is_match(lower_sentence)
}

/// Whether a period can be the one that is meant. `others` are the periods in which the same metric
/// is cited too; `calendar` are the calendar years of the period.
pub(super) fn can_be(moment: Moment, period: Period, others: &[Period], calendar: &[i32]) -> bool {
    let end = |period: Period| match period {
        Period::Year(year) => (year, 4),
        Period::Quarter(year, quarter)
        | Period::YearToDate(year, quarter)
        | Period::TrailingYear(year, quarter) => (year, quarter),
    };
    let is_other = |year: i32| {
        others.iter().any(|other| other.fiscal_year() == year) && period.fiscal_year() != year
    };
    match moment {
        Moment::Unsaid => true,
        Moment::Earlier => {
            others.is_empty() || others.iter().any(|other| end(*other) > end(period))
        }
        Moment::Later => others.is_empty() || others.iter().any(|other| end(*other) < end(period)),
        Moment::FiscalYear(year) => !is_other(year),
        Moment::Year(year) => !is_other(year) || calendar.contains(&year),
        Moment::Quarter(said) => match period {
            Period::Quarter(_, quarter) => quarter == said,
            Period::Year(_) | Period::YearToDate(..) | Period::TrailingYear(..) => true,
        },
    }
}

#[cfg(test)]
pub(super) static ALL: &[&Pattern] = &[&AFTER, &BEFORE, &COMPARES];

#[cfg(test)]
#[path = "moment_tests.rs"]
mod tests;
