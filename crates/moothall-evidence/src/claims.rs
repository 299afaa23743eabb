//! The claim checker: plain code that decides whether a sentence is supported by what it cites.
//!
//! A number is checked against the facts that its own sentence cites, never against everything that
//! is known: with thousands of facts, most wrong numbers equal one of them by chance. No model takes
//! part, so the same text has the same verdicts for ever.
//!
//! From a text to its claims: [`sentences`] → citations resolved against [`Known`] → [`numbers`] →
//! a verdict for each. It reads English only, and knows numbers, quotations and dates, not meaning:
//! whether "driven by services" is true remains for people and critics.

mod about;
mod advice;
mod candidates;
mod citations;
mod clause;
mod context;
mod diagnose;
mod digits;
mod forward;
mod injection;
mod judge;
mod known;
mod masking;
mod moment;
mod numbers;
mod passages;
mod pattern;
mod periods;
mod phrase;
mod printed_number;
mod ranges;
mod sentences;
mod spelled;
mod tolerance;
mod units;
mod verdict;

use std::ops::Range;

use self::clause::first_bytes;
use self::context::Context;
use self::judge::{Surroundings, judge};
use self::known::Index;

pub use self::advice::advice_language;
pub use self::clause::{Comparator, Direction, Loss};
pub use self::digits::Sign;
pub use self::injection::injected_instructions;
pub use self::known::Known;
pub use self::moment::Moment;
pub use self::numbers::numbers;
pub use self::phrase::Phrase;
pub use self::printed_number::PrintedNumber;
pub use self::sentences::sentences;
pub use self::units::{Currency, PrintedUnit};
pub use crate::evidence::Headline;

pub use self::verdict::{Claim, ClaimKind, ClaimVerdict, Support};

/// The longest text that is checked. What is beyond is a claim of its own, [`ClaimVerdict::Unchecked`].
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The most sentences that are checked.
pub const MAX_SENTENCES: usize = 2000;

/// The most numbers of one sentence that are checked.
pub const MAX_NUMBERS: usize = 100;

/// The longest piece of a text that a claim repeats, in characters.
const MAX_PRINTED: usize = 160;

/// Checks texts against what is known about one company.
#[derive(Debug)]
pub struct Checker<'a> {
    index: Index<'a>,
}

impl<'a> Checker<'a> {
    /// Indexes what is known, once for all texts.
    pub fn new(known: Known<'a>) -> Self {
        Self { index: Index::new(known) }
    }

    /// Everything that the text claims, sentence by sentence.
    pub fn check(&self, text: &str) -> Vec<Claim> {
        let checked = first_bytes(text, MAX_TEXT_BYTES);
        let mut claims = Vec::new();
        let found = sentences(checked);
        for (number, range) in (0..).zip(found.iter().take(MAX_SENTENCES)) {
            self.check_sentence(number, &checked[range.clone()], &mut claims);
        }
        claims.extend(beyond(text.len(), &found));
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
        let context = Context::of(text, &self.index);
        for refused in &context.refused {
            let detail = refused.detail.clone();
            claims.push(claim(ClaimKind::Citation, &refused.printed, refused.verdict, detail));
        }
        let words = without_citations(text);
        let newest_year = self.index.sheet().map(|sheet| sheet.newest_year);
        let around = Surroundings {
            context: &context,
            sheet: self.index.sheet(),
            sentence: text,
            lower: &words.to_lowercase(),
            is_forward: forward::is_forward(&words, newest_year),
        };
        let found = numbers(text);
        for number in found.iter().take(MAX_NUMBERS) {
            let (verdict, detail) = judge(number, &around);
            claims.push(claim(ClaimKind::Number, &number.text, verdict, detail));
        }
        if let Some(number) = found.get(MAX_NUMBERS) {
            let detail = format!("more than {MAX_NUMBERS} numbers in one sentence");
            claims.push(claim(ClaimKind::Bound, &number.text, ClaimVerdict::Unchecked, detail));
        }
        if !context.passages.is_empty() || !context.headlines.is_empty() {
            let cited = context.passages.iter().chain(&context.headlines);
            for quotation in passages::misquoted(cited, text) {
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

/// What of the text nobody looked at.
fn beyond(text_bytes: usize, found: &[Range<usize>]) -> Option<Claim> {
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

/// The sentence's own words.
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
