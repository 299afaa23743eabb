//! Words of filers and services, made fit for a line of ours.

use crate::text::is_hidden;

/// The text on one line, without what could drive a terminal or hide words, cut to `longest`
/// characters.
pub(super) fn cleaned(text: &str, longest: usize) -> String {
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
#[path = "text_tests.rs"]
mod tests;
