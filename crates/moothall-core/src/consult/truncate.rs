//! Sanitizes and truncates longer model texts for prompts and documents.

use crate::text::is_hidden;
use crate::tokens_expected;

/// Removes characters that could control a terminal or hide text, keeps line breaks, and truncates
/// to `longest` bytes.
pub(crate) fn lines(text: &str, longest: usize) -> String {
    let end = text.floor_char_boundary(longest);
    let is_shown = |c: &char| matches!(c, '\n' | '\t') || !is_hidden(*c);
    let shown: String = text[..end].chars().filter(is_shown).collect();
    shown.trim().to_owned()
}

/// The leading whole lines of a text that fit in `tokens`. A first line that is too long is cut.
/// `None` if the whole text fits.
pub(crate) fn fit(text: &str, tokens: u64) -> Option<String> {
    if tokens_expected(text) <= tokens {
        return None;
    }
    let mut kept = String::new();
    let mut left = tokens.saturating_sub(tokens_expected(TRUNCATION_MARK));
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
    Some(format!("{}{TRUNCATION_MARK}", kept.trim_end()))
}

const TRUNCATION_MARK: &str = "\n[the rest is left out]";

/// The start of a line that fits. A token has about three characters, and a character is at most
/// one token.
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
#[path = "truncate_tests.rs"]
mod tests;
