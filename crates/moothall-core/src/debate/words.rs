//! Messages of models, made fit to stand in a file or another model's prompt.

use crate::text::is_hidden;

/// The most bytes of one message that others get to read, and that a log keeps.
pub(super) const MAX_MESSAGE_BYTES: usize = 8 * 1024;

/// Text without what could drive a terminal or hide words, cut to so many bytes. Line ends stay.
pub(super) fn clean(text: &str, most_bytes: usize) -> String {
    const LEFT_OUT: &str = " […]";
    let text = text.trim();
    // Nearly every text is plain and short enough.
    if text.len() <= most_bytes && text.bytes().all(|byte| matches!(byte, b'\n' | b' '..=b'~')) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len().min(most_bytes));
    for sign in text.chars() {
        let sign = if sign == '\t' { ' ' } else { sign };
        // Two signs end a line without looking like it; one kind of line end is enough.
        let is_other_line_end = matches!(sign, '\u{2028}' | '\u{2029}');
        if sign != '\n' && (is_hidden(sign) || is_other_line_end) {
            continue;
        }
        if clean.len() + sign.len_utf8() > most_bytes {
            let end = clean.floor_char_boundary(most_bytes.saturating_sub(LEFT_OUT.len()));
            clean.truncate(end);
            clean.push_str(LEFT_OUT);
            return clean;
        }
        clean.push(sign);
    }
    // What was hidden may have stood between spaces.
    clean.trim().to_owned()
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
