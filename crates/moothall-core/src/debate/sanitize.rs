//! Sanitizes model messages for log files and for other models' prompts.

use crate::text::is_hidden;

/// The maximum size of a message that is shown to the other side and logged.
pub(crate) const MAX_MESSAGE_BYTES: usize = 8 * 1024;

/// Removes control and hidden characters and truncates the text to `most_bytes`. Line breaks are
/// kept.
pub(crate) fn clean(text: &str, most_bytes: usize) -> String {
    const TRUNCATION_MARK: &str = " […]";
    let text = text.trim();
    // Fast path: nearly every text is plain ASCII and short enough.
    if text.len() <= most_bytes && text.bytes().all(|byte| matches!(byte, b'\n' | b' '..=b'~')) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len().min(most_bytes));
    for sign in text.chars() {
        let sign = if sign == '\t' { ' ' } else { sign };
        // U+2028 and U+2029 break lines invisibly; keep only `\n`.
        let is_other_line_end = matches!(sign, '\u{2028}' | '\u{2029}');
        if sign != '\n' && (is_hidden(sign) || is_other_line_end) {
            continue;
        }
        if clean.len() + sign.len_utf8() > most_bytes {
            let end = clean.floor_char_boundary(most_bytes.saturating_sub(TRUNCATION_MARK.len()));
            clean.truncate(end);
            clean.push_str(TRUNCATION_MARK);
            return clean;
        }
        clean.push(sign);
    }
    // Removing hidden characters can leave spaces at the ends.
    clean.trim().to_owned()
}

#[cfg(test)]
#[path = "sanitize_tests.rs"]
mod tests;
