//! Words of models and filings, made fit for prompts, files and events of ours.

/// The text on one line, without what could drive a terminal or hide words, at most `longest`
/// characters.
pub fn one_line(text: &str, longest: usize) -> String {
    let visible = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    let mut line = String::new();
    let mut length = 0;
    for sign in visible.filter(|c| !is_hidden(*c)) {
        if sign != ' ' || !(line.is_empty() || line.ends_with(' ')) {
            line.push(sign);
            length += 1;
            // What follows is cut off.
            if length > longest && sign != ' ' {
                break;
            }
        }
    }
    cut(line.trim_end(), longest)
}

/// The beginning of a text, with a sign that there was more.
fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some(_) => {
            let shorter = longest.saturating_sub(1);
            let end = text.char_indices().nth(shorter).map_or(text.len(), |(at, _)| at);
            format!("{}…", text[..end].trim_end())
        }
    }
}

/// Text that nobody vouches for, behind a fence that it cannot close.
pub fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

/// A template with `{{name}}` replaced, in one pass: what is filled in is never searched for places,
/// whoever wrote it. The file's last line end is not a part of the prompt.
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

/// Why a character is not shown as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenKind {
    /// It changes the direction of the text around it, which can make a text look like another.
    Direction,
    /// It has no ink. It can hide words from readers that a model or a search sees.
    NoInk,
    /// It chooses the form of the character before it, as in emoji. Only names and secrets must not have it.
    Variation,
}

/// The one table of characters that readers do not see, beside control characters. Terminal, memo, gate and web UI use it; the web UI's copy is
/// generated.
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

/// Why a character is not shown as it is; nothing for one that is. Control characters are not in the table.
pub fn hidden_kind(c: char) -> Option<HiddenKind> {
    // Nearly all text is below the first row.
    if c < '\u{ad}' {
        return None;
    }
    let row = HIDDEN.partition_point(|(_, last, _)| *last < c);
    HIDDEN.get(row).filter(|(first, ..)| *first <= c).map(|(.., kind)| *kind)
}

/// Whether a character has no place in a text that is shown: control characters, and what changes direction or has no ink.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(hidden_kind(c), Some(HiddenKind::Direction | HiddenKind::NoInk))
}

/// Whether readers do not see a character, or see others differently because of it. For names, which must be what they look like.
pub fn is_unseen(c: char) -> bool {
    hidden_kind(c).is_some()
}

/// Whether a character changes the direction of the text around it.
pub fn turns_direction(c: char) -> bool {
    hidden_kind(c) == Some(HiddenKind::Direction)
}

/// The text of somebody else, safe to show on a terminal or a page: a control character or a change of direction becomes a replacement character,
/// and what has no ink is left out. Tabs and line breaks stay.
pub fn shown(text: &str) -> String {
    text.chars()
        .filter_map(|c| if matches!(c, '\n' | '\t') { Some(c) } else { shown_char(c) })
        .collect()
}

/// As [`shown`], for a place inside a line: a line break or tab would let the text pretend to be a line of ours.
pub fn shown_line(text: &str) -> String {
    text.chars().filter_map(shown_char).collect()
}

/// The text of somebody else with everything that cannot be seen spelled out, for a place where readers judge exactly what is there.
/// Tabs stay.
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

/// As [`escaped`], with line breaks kept.
pub fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

fn shown_char(c: char) -> Option<char> {
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
