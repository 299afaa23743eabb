//! Decides which of several periods the words beside a number mean: "up from $391.0 billion",
//! "$391.0 billion in fiscal 2024", "46.2% a year earlier".
//!
//! If a sentence cites one metric for two periods, either value would be accepted as a cited fact;
//! these words decide which one is meant.

use super::claim_regex::ClaimRegex;
use super::clause::{self, next_words};
use crate::evidence::FiscalPeriod;

/// What the words beside a number say about its period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeriodCue {
    /// The earlier of two periods: "from", "a year earlier".
    Earlier,
    /// The later of two periods: "from … to".
    Later,
    /// The fiscal year with this label.
    FiscalYear(i32),
    /// This year, fiscal or calendar.
    Year(i32),
    /// This quarter of any year.
    Quarter(u8),
    /// No period is given.
    Unsaid,
}

/// Period words directly after the number and its unit.
pub(crate) static PERIOD_AFTER: ClaimRegex = ClaimRegex::new(concat!(
    r"^[\s,)]{0,3}(?:(?:in|for|of|during|at the end of|at end of) (?:the )?(?:full )?(?:",
    r"(?:fiscal(?: year)?|fy) ?'?(?P<fiscal>(?:20)?[0-9]{2})\b|(?P<year>20[0-9]{2})\b",
    r"|q(?P<q>[1-4])\b|(?P<word>first|second|third|fourth)[- ](?:fiscal )?quarter\b)",
    r"|(?P<earlier>(?:a|one|the) (?:year|quarter) (?:earlier|ago|before)\b",
    r"|(?:in )?the (?:previous|prior|preceding) (?:fiscal )?(?:year|quarter|period)\b|last year\b))",
));

/// The last year before the number, with no other number in between.
pub(crate) static PERIOD_BEFORE: ClaimRegex = ClaimRegex::new(concat!(
    r"(?:^|\b(?:in|for|during) (?:the )?(?:full )?)",
    r"(?:(?:fiscal(?: year)?|fy) ?'?(?P<fiscal>(?:20)?[0-9]{2})|(?P<year>20[0-9]{2}))\b[^0-9]*$",
));

/// Words that make a comparison with another period.
pub(crate) static COMPARISON_WORDS: ClaimRegex = ClaimRegex::new(concat!(
    r"\b(?:from|against|versus|vs|compared|compares|than|earlier|previous|prior|before|ago|last year",
    r"|after|instead|since|over|between)\b",
));

/// Reads the period from the words around a number, in lower case. `reach` is the text to its left,
/// limited to the clause.
pub(crate) fn period_cue(reach: &str, right: &str) -> PeriodCue {
    if let Some(found) = PERIOD_AFTER.captures(next_words(right)) {
        if found.name("earlier").is_some() {
            return PeriodCue::Earlier;
        }
        let quarter = found.name("q").and_then(|digit| digit.as_str().parse().ok());
        if let Some(quarter) = quarter.or_else(|| quarter_of(found.name("word")?.as_str())) {
            return PeriodCue::Quarter(quarter);
        }
        if let Some(said) = year_of(&found) {
            return said;
        }
    }
    if clause::is_change_endpoint(reach, "from") && !reach.contains("rang") {
        return PeriodCue::Earlier;
    }
    let has_start = clause::words(reach).any(|word| word == "from") && !reach.contains("rang");
    if has_start && clause::is_change_endpoint(reach, "to") {
        return PeriodCue::Later;
    }
    PERIOD_BEFORE.captures(reach).and_then(|found| year_of(&found)).unwrap_or(PeriodCue::Unsaid)
}

fn year_of(found: &regex::Captures<'_>) -> Option<PeriodCue> {
    let number = |name: &str| found.name(name)?.as_str().parse::<i32>().ok();
    if let Some(year) = number("fiscal") {
        return Some(PeriodCue::FiscalYear(if year < 100 { year + 2000 } else { year }));
    }
    number("year").map(PeriodCue::Year)
}

pub(crate) fn quarter_of(word: &str) -> Option<u8> {
    let words = ["first", "second", "third", "fourth"];
    let at = words.iter().position(|known| known.eq_ignore_ascii_case(word))?;
    u8::try_from(at + 1).ok()
}

/// Whether the sentence makes a comparison with another period.
pub(crate) fn compares(lower_sentence: &str) -> bool {
    COMPARISON_WORDS.is_match(lower_sentence)
}

/// Whether the words allow this period. `others` are the other periods cited for the same metric;
/// `calendar` are the calendar years of the period.
pub(crate) fn allows_period(
    period_cue: PeriodCue,
    period: FiscalPeriod,
    others: &[FiscalPeriod],
    calendar: &[i32],
) -> bool {
    let end = |period: FiscalPeriod| match period {
        FiscalPeriod::Year(year) => (year, 4),
        FiscalPeriod::Quarter(year, quarter)
        | FiscalPeriod::YearToDate(year, quarter)
        | FiscalPeriod::TrailingYear(year, quarter) => (year, quarter),
    };
    let is_other = |year: i32| {
        others.iter().any(|other| other.fiscal_year() == year) && period.fiscal_year() != year
    };
    match period_cue {
        PeriodCue::Unsaid => true,
        PeriodCue::Earlier => {
            others.is_empty() || others.iter().any(|other| end(*other) > end(period))
        }
        PeriodCue::Later => {
            others.is_empty() || others.iter().any(|other| end(*other) < end(period))
        }
        PeriodCue::FiscalYear(year) => !is_other(year),
        PeriodCue::Year(year) => !is_other(year) || calendar.contains(&year),
        PeriodCue::Quarter(said) => match period {
            FiscalPeriod::Quarter(_, quarter) => quarter == said,
            FiscalPeriod::Year(_)
            | FiscalPeriod::YearToDate(..)
            | FiscalPeriod::TrailingYear(..) => true,
        },
    }
}

#[cfg(test)]
pub(crate) static ALL: &[&ClaimRegex] = &[&PERIOD_AFTER, &PERIOD_BEFORE, &COMPARISON_WORDS];

#[cfg(test)]
#[path = "period_cues_tests.rs"]
mod tests;
