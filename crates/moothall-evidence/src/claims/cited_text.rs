//! Checks whether a cited text contains a sentence's numbers, and its quotations word for word.

use super::claim_regex::ClaimRegex;
use super::clause::{ChangeDirection, first_bytes};
use super::numbers::numbers;
use super::printed_number::PrintedNumber;
use super::sentences::sentences;
use super::tolerance::{NumberCloseness, closeness};
use super::units::{PrintedCurrency, PrintedUnit, power_of_ten};
use crate::text::is_unseen;

/// Limit on the text read per passage, in bytes; paragraphs of filings are far shorter.
const MAX_TEXT: usize = 8 * 1024;

/// A cited text with its numbers, parsed once per sentence.
#[derive(Debug)]
pub(crate) struct CitedText<'a> {
    text: &'a str,
    numbers: Vec<PrintedNumber>,
}

/// Whether cited texts state a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberMention {
    Yes,
    /// The same magnitude with the opposite direction.
    OtherDirection,
    No,
}

/// Tables in filings give the scale in a heading, not with each amount.
static TABLE_SCALE: ClaimRegex =
    ClaimRegex::new(r"(?i)\bin (?P<scale>thousand|million|billion)s\b");

pub(crate) static QUOTATION: ClaimRegex = ClaimRegex::new(r#"“([^“”]+)”|"([^"]+)""#);

static ELLIPSIS: &[&str] = &["[...]", "[…]", "...", "…"];

impl<'a> CitedText<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let text = first_bytes(text, MAX_TEXT);
        let mut found: Vec<PrintedNumber> =
            sentences(text).into_iter().flat_map(|range| numbers(&text[range])).collect();
        if let Some(power) = scale_of_table(text) {
            let scaled: Vec<PrintedNumber> =
                found.iter().filter_map(|number| in_scale(number, power)).collect();
            found.extend(scaled);
        }
        Self { text, numbers: found }
    }

    fn mention_of(&self, number: &PrintedNumber) -> NumberMention {
        let same = self.numbers.iter().filter(|said| {
            is_same_unit(number, said)
                && closeness(number, said.value, false) == Some(NumberCloseness::Printed)
        });
        let mut answer = NumberMention::No;
        for said in same {
            let is_other_direction = matches!(
                (number.direction, said.direction),
                (ChangeDirection::Up, ChangeDirection::Down)
                    | (ChangeDirection::Down, ChangeDirection::Up)
            );
            if !is_other_direction {
                return NumberMention::Yes;
            }
            answer = NumberMention::OtherDirection;
        }
        answer
    }
}

/// Whether any of the texts states the number.
pub(crate) fn find_mention(texts: &[CitedText<'_>], number: &PrintedNumber) -> NumberMention {
    let mut answer = NumberMention::No;
    for text in texts {
        match text.mention_of(number) {
            NumberMention::Yes => return NumberMention::Yes,
            NumberMention::OtherDirection => answer = NumberMention::OtherDirection,
            NumberMention::No => {}
        }
    }
    answer
}

/// The quotations of a sentence that no text contains word for word.
pub(crate) fn misquoted<'t>(
    texts: impl Iterator<Item = &'t CitedText<'t>>,
    sentence: &str,
) -> Vec<String> {
    let quotations: Vec<&str> = QUOTATION
        .captures_iter(sentence)
        .filter_map(|found| found.get(1).or_else(|| found.get(2)))
        .map(|quotation| quotation.as_str())
        .collect();
    if quotations.is_empty() {
        return Vec::new();
    }
    let plain: Vec<String> = texts.map(|text| plain(text.text)).collect();
    quotations
        .into_iter()
        .filter(|quotation| !plain.iter().any(|text| has_pieces(text, quotation)))
        .map(str::to_owned)
        .collect()
}

fn scale_of_table(text: &str) -> Option<u32> {
    let found = TABLE_SCALE.captures(text)?;
    super::units::power_of(found.name("scale")?.as_str())
}

fn in_scale(number: &PrintedNumber, power: u32) -> Option<PrintedNumber> {
    let is_amount = matches!(number.unit, PrintedUnit::Money | PrintedUnit::Count);
    if number.scaled || !is_amount {
        return None;
    }
    let scale = power_of_ten(power);
    Some(PrintedNumber { value: number.value.checked_mul(scale)?, ..number.clone() })
}

fn is_same_unit(number: &PrintedNumber, said: &PrintedNumber) -> bool {
    let is_same_currency = match (number.currency, said.currency) {
        (Some(PrintedCurrency::AnyDollar), Some(PrintedCurrency::Code(code)))
        | (Some(PrintedCurrency::Code(code)), Some(PrintedCurrency::AnyDollar)) => {
            PrintedCurrency::AnyDollar.matches_code(code)
        }
        (Some(number), Some(said)) => number == said,
        _ => true,
    };
    let is_amount =
        |unit| matches!(unit, PrintedUnit::Money | PrintedUnit::Count | PrintedUnit::PerShare);
    let is_same = number.unit == said.unit || is_amount(number.unit) && is_amount(said.unit);
    is_same && is_same_currency && number.unit != PrintedUnit::Unreadable
}

/// Whether the text contains all pieces of a quotation, which may omit words at an ellipsis.
fn has_pieces(text: &str, quotation: &str) -> bool {
    let mut marked = quotation.to_owned();
    for ellipsis in ELLIPSIS {
        marked = marked.replace(ellipsis, "\n");
    }
    let mut rest = text;
    for piece in marked.split('\n') {
        let piece = plain(piece);
        // Punctuation before the closing mark belongs to the quoting sentence.
        let piece = piece.trim_end_matches(['.', ',', ';', ':', '!', '?']);
        let Some(at) = rest.find(piece).or_else(|| rest.find(&other_first_letter(piece))) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    true
}

/// A quotation in mid-sentence may change the case of its first letter.
fn other_first_letter(piece: &str) -> String {
    let mut letters = piece.chars();
    match letters.next() {
        Some(first) if first.is_ascii_uppercase() => {
            first.to_ascii_lowercase().to_string() + letters.as_str()
        }
        Some(first) => first.to_ascii_uppercase().to_string() + letters.as_str(),
        None => String::new(),
    }
}

/// Normalizes spaces, quotation marks and dashes, and removes invisible characters.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            c if c.is_whitespace() => {
                if !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            c if is_unseen(c) => {}
            '‘' | '’' | 'ʼ' => plain.push('\''),
            '“' | '”' => plain.push('"'),
            '–' | '—' | '−' | '‑' => plain.push('-'),
            c => plain.push(c),
        }
    }
    plain.trim().to_owned()
}

#[cfg(test)]
pub(crate) static ALL: &[&ClaimRegex] = &[&TABLE_SCALE, &QUOTATION];

#[cfg(test)]
#[path = "cited_text_tests.rs"]
mod tests;
