//! Phrases that a text should not hold, whatever it claims.

use super::MAX_TEXT_BYTES;
use super::clause::first_bytes;
use super::pattern::Pattern;
use crate::{Finding, RuleId, Severity};

/// More phrases of one text say nothing new.
const MAX_PHRASES: usize = 16;

/// The longest piece of a text that is repeated, in characters.
const MAX_PRINTED: usize = 120;

/// A phrase that should not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// The rule that speaks.
    pub rule: RuleId,
    /// How much it weighs.
    pub severity: Severity,
    /// The phrase as it is printed.
    pub printed: String,
    /// Why it should not be there.
    pub why: &'static str,
}

impl Phrase {
    /// The finding that it makes about `subject`.
    pub fn finding(&self, subject: &str) -> Finding {
        Finding {
            rule: self.rule.clone(),
            severity: self.severity,
            subject: subject.to_owned(),
            message: format!("\"{}\": {}", self.printed, self.why),
            evidence: Vec::new(),
        }
    }
}

/// All matches of the pattern, and a phrase more if the text is longer than what is searched.
pub(super) fn phrases(
    text: &str,
    pattern: &Pattern,
    rule: &'static str,
    severity: Severity,
    why: &'static str,
) -> Vec<Phrase> {
    let searched = first_bytes(text, MAX_TEXT_BYTES);
    let phrase = |printed: &str, why| Phrase {
        rule: RuleId::new(rule),
        severity,
        printed: printed.trim().chars().take(MAX_PRINTED).collect(),
        why,
    };
    let mut found: Vec<Phrase> = pattern
        .find_iter(searched)
        .take(MAX_PHRASES)
        .map(|found| phrase(found.as_str(), why))
        .collect();
    if searched.len() < text.len() {
        found.push(phrase("", "the text is longer than what is searched"));
    }
    found
}
