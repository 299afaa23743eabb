//! Sanitizes untrusted text from models and filings for prompts, files and events.

/// Puts the text on one line of at most `longest` characters and removes control and hidden
/// characters, which could control a terminal or hide words.
pub fn one_line(text: &str, longest: usize) -> String {
    let visible = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    let mut line = String::new();
    let mut length = 0;
    for sign in visible.filter(|c| !is_hidden(*c)) {
        if sign != ' ' || !(line.is_empty() || line.ends_with(' ')) {
            line.push(sign);
            length += 1;
            // The rest is cut off below.
            if length > longest && sign != ' ' {
                break;
            }
        }
    }
    truncate(line.trim_end(), longest)
}

/// Truncates a text and marks the cut with an ellipsis.
fn truncate(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some(_) => {
            let shorter = longest.saturating_sub(1);
            let end = text.char_indices().nth(shorter).map_or(text.len(), |(at, _)| at);
            format!("{}…", text[..end].trim_end())
        }
    }
}

/// Puts untrusted text in a fence that it cannot close.
pub fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

/// Replaces each `{{name}}` in a template. Uses a single pass, so placeholders in inserted values,
/// which may be untrusted, are never expanded. The template's final newline is dropped.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = template.strip_suffix('\n').unwrap_or(template);
    while let Some((before, behind)) = rest.split_once("{{") {
        text.push_str(before);
        let Some((name, after)) = behind.split_once("}}") else {
            text.push_str("{{");
            rest = behind;
            continue;
        };
        let value = values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    text
}

/// Why a character is not displayed as is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenKind {
    /// Changes the direction of the surrounding text, which can make it look like a different text.
    Direction,
    /// Invisible. Can hide words from people that a model or a search still sees.
    NoInk,
    /// Selects a variant of the preceding character, as in emoji. Forbidden only in names and
    /// secrets.
    Variation,
}

/// The only table of hidden characters, apart from control characters. Used by the terminal, memos,
/// the gate and the web UI, whose copy is generated from it.
const HIDDEN: &[(char, char, HiddenKind)] = &[
    ('\u{ad}', '\u{ad}', HiddenKind::NoInk),
    ('\u{34f}', '\u{34f}', HiddenKind::NoInk),
    ('\u{61c}', '\u{61c}', HiddenKind::Direction),
    ('\u{115f}', '\u{1160}', HiddenKind::NoInk),
    ('\u{17b4}', '\u{17b5}', HiddenKind::NoInk),
    ('\u{180b}', '\u{180f}', HiddenKind::NoInk),
    ('\u{200b}', '\u{200d}', HiddenKind::NoInk),
    ('\u{200e}', '\u{200f}', HiddenKind::Direction),
    ('\u{2028}', '\u{2029}', HiddenKind::NoInk),
    ('\u{202a}', '\u{202e}', HiddenKind::Direction),
    ('\u{2060}', '\u{2065}', HiddenKind::NoInk),
    ('\u{2066}', '\u{2069}', HiddenKind::Direction),
    ('\u{206a}', '\u{206f}', HiddenKind::NoInk),
    ('\u{2800}', '\u{2800}', HiddenKind::NoInk),
    ('\u{3164}', '\u{3164}', HiddenKind::NoInk),
    ('\u{fe00}', '\u{fe0f}', HiddenKind::Variation),
    ('\u{feff}', '\u{feff}', HiddenKind::NoInk),
    ('\u{ffa0}', '\u{ffa0}', HiddenKind::NoInk),
    ('\u{fff0}', '\u{fffb}', HiddenKind::NoInk),
    ('\u{1bca0}', '\u{1bca3}', HiddenKind::NoInk),
    ('\u{1d173}', '\u{1d17a}', HiddenKind::NoInk),
    ('\u{e0000}', '\u{e0fff}', HiddenKind::NoInk),
];

/// Why a character is hidden; `None` if it is visible. Does not cover control characters.
pub fn hidden_kind(c: char) -> Option<HiddenKind> {
    // Fast path: nearly all text is below the first row.
    if c < '\u{ad}' {
        return None;
    }
    let row = HIDDEN.partition_point(|(_, last, _)| *last < c);
    HIDDEN.get(row).filter(|(first, ..)| *first <= c).map(|(.., kind)| *kind)
}

/// Whether a character must not appear in displayed text: control, direction and invisible
/// characters.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(hidden_kind(c), Some(HiddenKind::Direction | HiddenKind::NoInk))
}

/// Whether a character is invisible or changes how others look. For names, which must be what they
/// look like.
pub fn is_unseen(c: char) -> bool {
    hidden_kind(c).is_some()
}

/// Whether a character changes the direction of the text around it.
pub fn turns_direction(c: char) -> bool {
    hidden_kind(c) == Some(HiddenKind::Direction)
}

/// Makes untrusted text safe to show on a terminal or a page: replaces control and direction
/// characters with U+FFFD and removes invisible ones. Keeps tabs and line breaks.
pub fn sanitize(text: &str) -> String {
    text.chars()
        .filter_map(|c| if matches!(c, '\n' | '\t') { Some(c) } else { sanitize_char(c) })
        .collect()
}

/// Like [`sanitize`], for text within a line, where a line break or tab could fake program output.
pub fn sanitize_line(text: &str) -> String {
    text.chars().filter_map(sanitize_char).collect()
}

/// Escapes everything invisible in untrusted text, for reviews where the exact content matters.
/// Keeps tabs.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c == '\t' || !(c.is_control() || is_unseen(c)) {
            true => escaped.push(c),
            false => escaped.extend(c.escape_unicode()),
        }
    }
    escaped
}

/// Like [`escaped`], but keeps line breaks.
pub fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

fn sanitize_char(c: char) -> Option<char> {
    match hidden_kind(c) {
        _ if c.is_control() => Some(char::REPLACEMENT_CHARACTER),
        Some(HiddenKind::Direction) => Some(char::REPLACEMENT_CHARACTER),
        Some(HiddenKind::NoInk) => None,
        Some(HiddenKind::Variation) | None => Some(c),
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "generated_tests.rs"]
mod generated_tests;
