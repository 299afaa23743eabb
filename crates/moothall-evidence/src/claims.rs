//! Checks whether each sentence of a text is supported by what it cites.
//!
//! A number is checked only against the facts cited in its own sentence, never against all known
//! facts: with thousands of facts, most wrong numbers equal one of them by chance. No model is
//! involved, so the same text always gets the same verdicts.
//!
//! The steps: [`sentences`] → citations resolved against [`CitableEvidence`] → [`numbers`] → one verdict per
//! number. The checker reads English only and understands numbers, quotations and dates, not
//! meaning: whether "driven by services" is true is left to people and critics.

mod advice;
mod calculations;
mod candidates;
mod check_number;
mod citations;
mod cited_text;
mod claim_regex;
mod clause;
mod context;
mod diagnose;
mod digits;
mod fact_index;
mod flagged_phrase;
mod forward_looking;
mod injection;
mod masking;
mod metric_terms;
mod number_words;
mod numbers;
mod period_cues;
mod periods;
mod printed_number;
mod ranges;
mod sentences;
mod tolerance;
mod units;
mod verdict;

use std::ops::Range;

use self::check_number::{NumberCheckInput, judge};
use self::clause::first_bytes;
use self::context::SentenceContext;
use self::fact_index::EvidenceIndex;

pub use self::advice::advice_language;
pub use self::calculations::{CalculatedValue, CitableCalculation, calculation_quotes};
pub use self::clause::{ChangeDirection, LossMention, NumberComparator};
pub use self::digits::PrintedSign;
pub use self::fact_index::CitableEvidence;
pub use self::flagged_phrase::FlaggedPhrase;
pub use self::injection::injected_instructions;
pub use self::numbers::numbers;
pub use self::period_cues::PeriodCue;
pub use self::printed_number::PrintedNumber;
pub use self::sentences::sentences;
pub use self::units::{PrintedCurrency, PrintedUnit};
pub use crate::evidence::NewsHeadline;

pub use self::verdict::{Claim, ClaimKind, ClaimSupport, ClaimVerdict};

/// Limit on the checked text. A longer text adds one [`ClaimVerdict::Unchecked`] claim for the
/// rest.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Limit on checked sentences per text.
pub const MAX_SENTENCES: usize = 2000;

/// Limit on checked numbers per sentence.
pub const MAX_NUMBERS: usize = 100;

/// Limit on the text quoted in a claim, in characters.
const MAX_PRINTED: usize = 160;

/// Checks texts against the evidence about one company.
#[derive(Debug)]
pub struct ClaimChecker<'a> {
    index: EvidenceIndex<'a>,
}

impl<'a> ClaimChecker<'a> {
    /// Builds the index once; it is reused for every text.
    pub fn new(known: CitableEvidence<'a>) -> Self {
        Self { index: EvidenceIndex::new(known) }
    }

    /// Returns all claims of the text, in sentence order.
    pub fn check(&self, text: &str) -> Vec<Claim> {
        let checked = first_bytes(text, MAX_TEXT_BYTES);
        let mut claims = Vec::new();
        let found = sentences(checked);
        for (number, range) in (0..).zip(found.iter().take(MAX_SENTENCES)) {
            self.check_sentence(number, &checked[range.clone()], &mut claims);
        }
        claims.extend(unchecked_rest(text.len(), &found));
        claims
    }

    fn check_sentence(&self, sentence: u32, text: &str, claims: &mut Vec<Claim>) {
        let claim = |kind, printed: &str, verdict, detail| Claim {
            sentence,
            kind,
            printed: printed.trim().chars().take(MAX_PRINTED).collect(),
            verdict,
            detail,
        };
        let context = SentenceContext::of(text, &self.index);
        for refused in &context.refused {
            let detail = refused.detail.clone();
            claims.push(claim(ClaimKind::Citation, &refused.printed, refused.verdict, detail));
        }
        let words = without_citations(text);
        let newest_year = self.index.sheet().map(|sheet| sheet.newest_year);
        let around = NumberCheckInput {
            context: &context,
            sheet: self.index.sheet(),
            sentence: text,
            lower: &words.to_lowercase(),
            is_forward: forward_looking::is_forward(&words, newest_year),
        };
        let found = numbers(text);
        for number in found.iter().take(MAX_NUMBERS) {
            let quoted = calculations::check_quote(number, text, self.index.calculations);
            let (verdict, detail) = quoted.unwrap_or_else(|| judge(number, &around));
            claims.push(claim(ClaimKind::Number, &number.text, verdict, detail));
        }
        if let Some(number) = found.get(MAX_NUMBERS) {
            let detail = format!("more than {MAX_NUMBERS} numbers in one sentence");
            claims.push(claim(ClaimKind::Bound, &number.text, ClaimVerdict::Unchecked, detail));
        }
        if !context.passages.is_empty() || !context.headlines.is_empty() {
            let cited = context.passages.iter().chain(&context.headlines);
            for quotation in cited_text::misquoted(cited, text) {
                let detail = "the cited passage does not have these words".to_owned();
                claims.push(claim(ClaimKind::Words, &quotation, ClaimVerdict::Miscited, detail));
            }
        }
        if let Some(sheet) = self.index.sheet()
            && !context.facts.is_empty()
            && !found.is_empty()
            && let Some(other) = periods::disagreement(&words, &context.facts, sheet)
        {
            let (printed, verdict) = (other.printed, ClaimVerdict::PeriodText);
            claims.push(claim(ClaimKind::Words, &printed, verdict, other.detail));
        }
        if let Some(other) = periods::other_date(&words, &context.events) {
            let (printed, verdict) = (other.printed, ClaimVerdict::PeriodText);
            claims.push(claim(ClaimKind::Words, &printed, verdict, other.detail));
        }
        if let Some(other) = periods::other_item(&words, &context.events) {
            let (printed, verdict) = (other.printed, ClaimVerdict::Miscited);
            claims.push(claim(ClaimKind::Words, &printed, verdict, other.detail));
        }
    }
}

/// Reports the part of the text that exceeds a limit and was not checked.
fn unchecked_rest(text_bytes: usize, found: &[Range<usize>]) -> Option<Claim> {
    let (printed, detail) = if found.len() > MAX_SENTENCES {
        (format!("{} sentences", found.len()), format!("only {MAX_SENTENCES} are checked"))
    } else if text_bytes > MAX_TEXT_BYTES {
        (format!("{text_bytes} bytes"), format!("only {MAX_TEXT_BYTES} are checked"))
    } else {
        return None;
    };
    let last = found.len().min(MAX_SENTENCES).saturating_sub(1);
    Some(Claim {
        sentence: u32::try_from(last).unwrap_or(u32::MAX),
        kind: ClaimKind::Bound,
        printed,
        verdict: ClaimVerdict::Unchecked,
        detail,
    })
}

fn without_citations(sentence: &str) -> String {
    let mut words = String::with_capacity(sentence.len());
    let mut at = 0;
    for bracket in citations::BRACKETS.find_iter(sentence) {
        words.push_str(&sentence[at..bracket.start()]);
        words.push(' ');
        at = bracket.end();
    }
    words.push_str(&sentence[at..]);
    words
}

#[cfg(test)]
#[path = "claims/support_tests.rs"]
mod support_tests;

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
