//! Words of others as one line of what a reader can see.

use crate::text::{is_unseen, one_line};

/// Longer than anything an agent may write in one field.
const MAX_CHARS: usize = 8_000;

/// Marks above and below one letter; the languages that we know of need fewer.
const MAX_MARKS: usize = 3;

/// The words on one line, without control characters, marks that turn the direction of writing,
/// characters that show nothing, and piles of marks that would cover other lines.
pub(super) fn visible_line(words: &str) -> String {
    let mut marks = 0;
    let shown: String = words
        .chars()
        .filter(|c| {
            marks = if is_mark(*c) { marks + 1 } else { 0 };
            marks <= MAX_MARKS && (c.is_whitespace() || !is_unseen(*c))
        })
        .collect();
    one_line(&shown, MAX_CHARS)
}

fn is_mark(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}'
            | '\u{483}'..='\u{489}'
            | '\u{e31}'..='\u{e4e}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;
