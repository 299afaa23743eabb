//! Longer texts of models, made fit for prompts and documents of ours.

use crate::text::is_hidden;
use crate::tokens_expected;

/// The text with its lines, without what could drive a terminal or hide words, at most `longest`
/// bytes.
pub(crate) fn lines(text: &str, longest: usize) -> String {
    let end = text.floor_char_boundary(longest);
    let is_shown = |c: &char| matches!(c, '\n' | '\t') || !is_hidden(*c);
    let shown: String = text[..end].chars().filter(is_shown).collect();
    shown.trim().to_owned()
}

/// Whole lines from the beginning of a text, as many as fit `tokens`; a last line that is too long
/// for itself is cut. `None` where all of it fits.
pub(crate) fn fit(text: &str, tokens: u64) -> Option<String> {
    if tokens_expected(text) <= tokens {
        return None;
    }
    let mut kept = String::new();
    let mut left = tokens.saturating_sub(tokens_expected(LEFT_OUT));
    for line in text.split_inclusive('\n') {
        let needed = tokens_expected(line);
        if needed > left {
            if kept.is_empty() {
                kept = shortened(line, left);
            }
            break;
        }
        left -= needed;
        kept.push_str(line);
    }
    Some(format!("{}{LEFT_OUT}", kept.trim_end()))
}

const LEFT_OUT: &str = "\n[the rest is left out]";

/// The beginning of a line that fits; every character is a token at most, and about three of them
/// are one.
fn shortened(line: &str, tokens: u64) -> String {
    let mut longest = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(3);
    loop {
        let shorter = &line[..line.floor_char_boundary(longest)];
        if tokens_expected(shorter) <= tokens {
            return shorter.to_owned();
        }
        longest = longest.min(line.len()) * 3 / 4;
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
