//! Sanitizes text from filers and services for display on one line.

use crate::text::is_hidden;

/// Returns the text on one line, without terminal control or hidden characters, truncated to
/// `longest` characters.
pub(crate) fn cleaned(text: &str, longest: usize) -> String {
    let mut clean = String::new();
    let mut count = 0;
    let mut gap = false;
    for sign in text.chars() {
        if sign.is_whitespace() {
            gap = count > 0;
            continue;
        }
        if is_hidden(sign) {
            continue;
        }
        let needed = if gap { 2 } else { 1 };
        if count + needed > longest {
            break;
        }
        if gap {
            clean.push(' ');
        }
        clean.push(sign);
        count += needed;
        gap = false;
    }
    clean
}

#[cfg(test)]
#[path = "sanitize_tests.rs"]
mod tests;
