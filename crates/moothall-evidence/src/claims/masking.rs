//! Masks text that looks like a number but is not a claim: citations, dates, references, names.

use super::claim_regex::ClaimRegex;

/// Matches are always blanked before numbers are read.
pub(crate) static ALWAYS_MASKED: ClaimRegex = ClaimRegex::new(concat!(
    // Citations, well-formed or not.
    r"\[\s*[A-Z][0-9]{0,2}\s*(?::[^\[\]]*)?\]|\[\s*[FETNU]0\b[^\[\]]*\]",
    // URLs and accession numbers.
    r"|https?://\S+|\b[0-9]{10}-[0-9]{2}-[0-9]{6}\b",
    // Numeric dates.
    r"|\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b|\b[0-9]{1,2}/[0-9]{1,2}/[0-9]{2,4}\b",
    // Indexes, plans and products whose names contain a number.
    r"|\bS&P\s+[0-9]+\b|\b(?i:nasdaq|russell|fortune|ftse|stoxx|nikkei|dow)[- ][0-9]+\b",
    r"|\b401\(k\)|\b(?:Microsoft|Office|Dynamics)\s365\b",
));

/// Matches are blanked unless [`QUANTITY_SUFFIX`] matches after them: "Note 12" is a reference, "at
/// a level 12% higher" is not.
pub(crate) static MASKED_UNLESS_QUANTITY: ClaimRegex = ClaimRegex::new(concat!(
    r"\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?",
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?",
    r"\s+[0-9]{1,2}(?:st|nd|rd|th)?(?:,?\s+[0-9]{4})?\b",
    r"|\b[0-9]{1,2}(?:st|nd|rd|th)?\s+(?i:january|february|march|april|may|june|july|august",
    r"|september|october|november|december)(?:,?\s+[0-9]{4})?\b",
    r"|\b(?i:item|note|section|figure|table|page|step|round|chapter|appendix|exhibit|form|move",
    r"|option|phase|tier|level|rule|asc|topic|isin|cik|article|no\.)",
    r"\s+[0-9]+(?:\.[0-9]+)*[A-Za-z]?\b",
    // Committee scores as memos print them: "score 80/120", "score 84/120 (67 to 102)".
    r"|\b(?i:score)\s+[0-9]{1,3}/[1-9][0-9]?0\b(?:\s\(-?[0-9]{1,3}\sto\s[0-9]{1,3}\))?",
    r"|\b(?i:version)\s+[0-9]+(?:\.[0-9]+)+\b",
));

/// Text that makes the preceding digits a quantity.
pub(crate) static QUANTITY_SUFFIX: ClaimRegex = ClaimRegex::new(concat!(
    r"^(?:[.,][0-9]|[-\s]?(?:%|(?i:percent|per\s?cent|percentage|pct|bps|bp|basis|points|pp|x|times",
    r"|fold|trillion|billion|million|thousand|bn|mn|tn|days)\b))",
));

/// Replaces everything that is not a claim by spaces. Byte offsets are preserved.
pub(crate) fn masked(sentence: &str) -> String {
    let mut blank = vec![false; sentence.len()];
    for found in ALWAYS_MASKED.find_iter(sentence) {
        blank[found.range()].fill(true);
    }
    for found in MASKED_UNLESS_QUANTITY.find_iter(sentence) {
        let rest = sentence.get(found.end()..).unwrap_or_default();
        if !QUANTITY_SUFFIX.is_match(rest) {
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
