//! Whether a cited text says what a sentence says: its numbers, and its quotations word for word.

use super::clause::{Direction, first_bytes};
use super::numbers::numbers;
use super::pattern::Pattern;
use super::printed_number::PrintedNumber;
use super::sentences::sentences;
use super::tolerance::{Closeness, closeness};
use super::units::{Currency, PrintedUnit, ten_to};
use crate::text::is_unseen;

/// More of one passage is not read; a paragraph of a filing is far shorter.
const MAX_TEXT: usize = 8 * 1024;

/// A text that a sentence cites, read once for all of its numbers.
#[derive(Debug)]
pub(super) struct CitedText<'a> {
    text: &'a str,
    numbers: Vec<PrintedNumber>,
}

/// What cited texts say about a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Yes,
    /// The magnitude, with the other direction.
    OtherDirection,
    No,
}

/// Tables of filings print amounts without their scale.
static IN_SCALE: Pattern = Pattern::new(r"(?i)\bin (?P<scale>thousand|million|billion)s\b");

pub(super) static QUOTATION: Pattern = Pattern::new(r#"“([^“”]+)”|"([^"]+)""#);

static ELLIPSIS: &[&str] = &["[...]", "[…]", "...", "…"];

impl<'a> CitedText<'a> {
    pub(super) fn new(text: &'a str) -> Self {
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

    fn says(&self, number: &PrintedNumber) -> Said {
        let same = self.numbers.iter().filter(|said| {
            is_same_unit(number, said)
                && closeness(number, said.value, false) == Some(Closeness::Printed)
        });
        let mut answer = Said::No;
        for said in same {
            let is_other_direction = matches!(
                (number.direction, said.direction),
                (Direction::Up, Direction::Down) | (Direction::Down, Direction::Up)
            );
            if !is_other_direction {
                return Said::Yes;
            }
            answer = Said::OtherDirection;
        }
        answer
    }
}

/// Whether any of the texts says the number.
pub(super) fn say(texts: &[CitedText<'_>], number: &PrintedNumber) -> Said {
    let mut answer = Said::No;
    for text in texts {
        match text.says(number) {
            Said::Yes => return Said::Yes,
            Said::OtherDirection => answer = Said::OtherDirection,
            Said::No => {}
        }
    }
    answer
}

/// The quotations of a sentence that none of the texts has word for word.
pub(super) fn misquoted<'t>(
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
    let found = IN_SCALE.captures(text)?;
    super::units::power_of(found.name("scale")?.as_str())
}

fn in_scale(number: &PrintedNumber, power: u32) -> Option<PrintedNumber> {
    let is_amount = matches!(number.unit, PrintedUnit::Money | PrintedUnit::Count);
    if number.scaled || !is_amount {
        return None;
    }
    let scale = ten_to(power);
    Some(PrintedNumber {
        value: number.value.checked_mul(scale)?,
        step: number.step.checked_mul(scale)?,
        scaled: true,
        ..number.clone()
    })
}

fn is_same_unit(number: &PrintedNumber, said: &PrintedNumber) -> bool {
    let is_same_currency = match (number.currency, said.currency) {
        (Some(Currency::AnyDollar), Some(Currency::Code(code)))
        | (Some(Currency::Code(code)), Some(Currency::AnyDollar)) => {
            Currency::AnyDollar.can_mean(code)
        }
        (Some(number), Some(said)) => number == said,
        _ => true,
    };
    let is_amount =
        |unit| matches!(unit, PrintedUnit::Money | PrintedUnit::Count | PrintedUnit::PerShare);
    let is_same = number.unit == said.unit || is_amount(number.unit) && is_amount(said.unit);
    is_same && is_same_currency && number.unit != PrintedUnit::Unreadable
}

/// A quotation may leave words out where it says so.
fn has_pieces(text: &str, quotation: &str) -> bool {
    let mut marked = quotation.to_owned();
    for ellipsis in ELLIPSIS {
        marked = marked.replace(ellipsis, "\n");
    }
    let mut rest = text;
    for piece in marked.split('\n') {
        let piece = plain(piece);
        // The comma or full stop before the closing mark belongs to the sentence.
        let piece = piece.trim_end_matches(['.', ',', ';', ':', '!', '?']);
        let Some(at) = rest.find(piece).or_else(|| rest.find(&other_first_letter(piece))) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    true
}

/// A quotation in mid-sentence begins in lower case whatever the source does.
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

/// One kind of space, quotation mark and dash; nothing invisible.
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
pub(super) static ALL: &[&Pattern] = &[&IN_SCALE, &QUOTATION];

#[cfg(test)]
#[path = "passages_tests.rs"]
mod tests;
