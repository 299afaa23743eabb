//! Detects advice about securities. Moothall discusses what a company could do, never what to do
//! with its shares.

use super::claim_regex::ClaimRegex;
use super::flagged_phrase::{FlaggedPhrase, phrases};
use crate::FindingSeverity;

pub(crate) static ADVICE: ClaimRegex = ClaimRegex::new(concat!(
    r"(?i)\b(?:price[- ]targets?|target prices?|fair value (?:per share|of \$)",
    // Ratings.
    r"|(?:strong )?(?:buy|sell|hold|overweight|underweight|outperform|underperform)",
    r"[- ](?:rating|rated|recommendation)s?",
    r"|rat(?:e|es|ed|ing) (?:the |its |this )?(?:stock|shares|company|equity)?\s?(?:as )?(?:an? )?",
    r"(?:strong )?(?:buy|sell|hold|overweight|underweight|outperform|underperform)",
    r"|(?:is|are|remains?) an? (?:strong )?(?:buy|sell)\b",
    // Instructions to trade shares.
    r"|recommend(?:s|ed|ing)? (?:buying|selling|shorting|holding|accumulating|purchasing|investors",
    r"|the (?:stock|shares)\b|an? (?:buy|sell)\b)",
    r"|(?:buy|sell|short|accumulate|own|dump|hold) (?:the |this |these )?(?:stock|shares)\b",
    r"|(?:buy|sell|short) (?:the )?dips?|go (?:long|short)\b",
    r"|investors (?:should|must|ought to|may want to|would do well to)",
    r" (?:buy|sell|hold|add|reduce|trim|exit|accumulate|own|take)",
    r"|(?:take|initiate|open|exit|trim|build) an? (?:long |short )?position in",
    // Valuations and price predictions.
    r"|(?:stock|shares|share price) (?:is|are|looks?|remains?|seems?)",
    r" (?:significantly |deeply |clearly )?(?:under|over)valued|(?:under|over)valued (?:stock|shares)",
    r"|(?:stock|shares|share price) (?:will|should|could|would)",
    r" (?:rise|fall|double|triple|rally|climb|drop|re-?rate)",
    r"|upside to the (?:stock|share price|current price)|(?:stock|share[- ]price) upside)",
));

/// Finds securities advice: ratings, price targets, instructions to investors.
pub fn advice_language(text: &str) -> Vec<FlaggedPhrase> {
    let why = "this is advice about securities, which is not given here";
    phrases(text, &ADVICE, "claims.advice", FindingSeverity::Escalate, why)
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
