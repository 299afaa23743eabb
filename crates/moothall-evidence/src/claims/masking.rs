//! What looks like a number and is not a claim: citations, dates, references, names.

use super::pattern::Pattern;

/// Whatever these match is blanked before numbers are read.
pub(super) static CERTAIN: Pattern = Pattern::new(concat!(
    // Citations, well formed or not.
    r"\[\s*[A-Z][0-9]{0,2}\s*(?::[^\[\]]*)?\]|\[\s*[FETNU]0\b[^\[\]]*\]",
    // Addresses and accession numbers.
    r"|https?://\S+|\b[0-9]{10}-[0-9]{2}-[0-9]{6}\b",
    // Dates in figures.
    r"|\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b|\b[0-9]{1,2}/[0-9]{1,2}/[0-9]{2,4}\b",
    // Indexes, forms, standards and products whose names hold a number.
    r"|\bS&P\s+[0-9]+\b|\b(?i:nasdaq|russell|fortune|ftse|stoxx|nikkei|dow)[- ][0-9]+\b",
    r"|\b401\(k\)|\b(?:Microsoft|Office|Dynamics)\s365\b",
));

/// These match only where the number does not go on: "Note 12" is a reference, "at a level 12%
/// higher" is not.
pub(super) static UNLESS_IT_GOES_ON: Pattern = Pattern::new(concat!(
    r"\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?",
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?",
    r"\s+[0-9]{1,2}(?:st|nd|rd|th)?(?:,?\s+[0-9]{4})?\b",
    r"|\b[0-9]{1,2}(?:st|nd|rd|th)?\s+(?i:january|february|march|april|may|june|july|august",
    r"|september|october|november|december)(?:,?\s+[0-9]{4})?\b",
    r"|\b(?i:item|note|section|figure|table|page|step|round|chapter|appendix|exhibit|form|move",
    r"|option|phase|tier|level|rule|asc|topic|isin|cik|article|no\.)",
    r"\s+[0-9]+(?:\.[0-9]+)*[A-Za-z]?\b",
    // What a committee gave, as memos print it: "score 80/120".
    r"|\b(?i:score)\s+[0-9]{1,3}/[1-9][0-9]?0\b|\b(?i:version)\s+[0-9]+(?:\.[0-9]+)+\b",
));

/// What makes the digits before it a quantity after all.
pub(super) static GOES_ON: Pattern = Pattern::new(concat!(
    r"^(?:[.,][0-9]|[-\s]?(?:%|(?i:percent|per\s?cent|percentage|pct|bps|bp|basis|points|pp|x|times",
    r"|fold|trillion|billion|million|thousand|bn|mn|tn|days)\b))",
));

/// The sentence with everything that is no claim replaced by spaces. Every byte keeps its place.
pub(super) fn masked(sentence: &str) -> String {
    let mut blank = vec![false; sentence.len()];
    for found in CERTAIN.find_iter(sentence) {
        blank[found.range()].fill(true);
    }
    for found in UNLESS_IT_GOES_ON.find_iter(sentence) {
        let rest = sentence.get(found.end()..).unwrap_or_default();
        if !GOES_ON.is_match(rest) {
            blank[found.range()].fill(true);
        }
    }
    let mut masked = String::with_capacity(sentence.len());
    for (at, character) in sentence.char_indices() {
        if blank.get(at).copied().unwrap_or(false) {
            masked.extend(std::iter::repeat_n(' ', character.len_utf8()));
        } else {
            masked.push(character);
        }
    }
    masked
}

#[cfg(test)]
#[path = "masking_tests.rs"]
mod tests;
