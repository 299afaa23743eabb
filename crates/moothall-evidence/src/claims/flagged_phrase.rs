//! Finds phrases that a text must not contain, regardless of its claims.

use super::MAX_TEXT_BYTES;
use super::claim_regex::ClaimRegex;
use super::clause::first_bytes;
use crate::{FindingSeverity, RuleId, RunFinding};

/// Limit on reported phrases per text.
const MAX_PHRASES: usize = 16;

/// Limit on the quoted text, in characters.
const MAX_PRINTED: usize = 120;

/// A phrase that a text must not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlaggedPhrase {
    /// The rule that the phrase violates.
    pub rule: RuleId,
    /// How severe the finding is.
    pub severity: FindingSeverity,
    /// The phrase as printed.
    pub printed: String,
    /// Why the phrase is not allowed.
    pub why: &'static str,
}

impl FlaggedPhrase {
    /// Turns the phrase into a finding about `subject`.
    pub fn finding(&self, subject: &str) -> RunFinding {
        RunFinding {
            rule: self.rule.clone(),
            severity: self.severity,
            subject: subject.to_owned(),
            message: format!("\"{}\": {}", self.printed, self.why),
            evidence: Vec::new(),
        }
    }
}

/// Returns all matches of the pattern, plus one phrase if the text exceeds the search limit.
pub(crate) fn phrases(
    text: &str,
    pattern: &ClaimRegex,
    rule: &'static str,
    severity: FindingSeverity,
    why: &'static str,
) -> Vec<FlaggedPhrase> {
    let searched = first_bytes(text, MAX_TEXT_BYTES);
    let phrase = |printed: &str, why| FlaggedPhrase {
        rule: RuleId::new(rule),
        severity,
        printed: printed.trim().chars().take(MAX_PRINTED).collect(),
        why,
    };
    let mut found: Vec<FlaggedPhrase> = pattern
        .find_iter(searched)
        .take(MAX_PHRASES)
        .map(|found| phrase(found.as_str(), why))
        .collect();
    if searched.len() < text.len() {
        found.push(phrase("", "the text is longer than what is searched"));
    }
    found
}
