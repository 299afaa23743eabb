//! Reduces untrusted text to one visible line.

use crate::text::{is_unseen, one_line};

/// Longer than any field an agent may write.
const MAX_CHARS: usize = 8_000;

/// The maximum number of combining marks per letter; known languages need fewer.
const MAX_MARKS: usize = 3;

/// The text as one line, without control characters, bidirectional marks, invisible characters, and
/// stacks of combining marks that would cover other lines.
pub(crate) fn visible_line(words: &str) -> String {
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
