//! Detects sentences about the future.

use super::claim_regex::ClaimRegex;

pub(crate) static MODAL: ClaimRegex = ClaimRegex::new(concat!(
    r"(?i)\b(?:could|would|should|might|will|shall|target(?:s|ed|ing)?|aim(?:s|ed|ing)?",
    r"|expect(?:s|ed|ing)?|forecast(?:s|ed)?|project(?:s|ed)|projections?|estimate[sd]?",
    r"|assum(?:e|es|ed|ing)|potential(?:ly)?|if|plan(?:s|ned)? to|on track|set to|poised|going to",
    r"|likely|over the next|in the coming|upside|guidance|outlook|goal|raise .{0,30} to)\b",
    // Lower case only: May is a month.
    r"|(?-i:\bmay\b)",
));

static YEAR: ClaimRegex = ClaimRegex::new(r"(?i)\b(?:fy|fiscal(?: year)?)?\s?'?(20[0-9]{2})\b");

/// Whether the sentence has a forward-looking word, or a year later than the newest filed one.
pub(crate) fn is_forward(sentence: &str, newest_year: Option<i32>) -> bool {
    MODAL.is_match(sentence)
        || newest_year.is_some_and(|newest| names_a_later_year(sentence, newest))
}

fn names_a_later_year(sentence: &str, newest: i32) -> bool {
    YEAR.captures_iter(sentence)
        .filter_map(|found| found.get(1)?.as_str().parse::<i32>().ok())
        .any(|year| year > newest)
}

#[cfg(test)]
pub(crate) static ALL: &[&ClaimRegex] = &[&MODAL, &YEAR];
