//! Splits Markdown and plain text into paragraphs.

use super::{MAX_PASSAGE_CHARS, row_text};

/// Longer headings are truncated before they are prefixed to paragraphs.
const MAX_HEADING_CHARS: usize = 120;
/// Columns beyond this are ignored.
const MAX_COLUMNS: usize = 64;

/// The paragraphs of a plain text. A form feed (page break) also ends a paragraph.
pub(crate) fn paragraphs(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for page in text.split('\u{c}') {
        let mut lines = Vec::new();
        for line in page.lines().chain([""]) {
            if line.trim().is_empty() {
                divided(&lines.join(" "), &mut found);
                lines.clear();
            } else {
                lines.push(line);
            }
        }
    }
    found
}

/// The paragraphs of a Markdown text, each prefixed with its heading, and the rows of its tables.
pub(crate) fn markdown(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut heading = String::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        let title = heading_of(line);
        if line.trim().is_empty() || title.is_some() {
            block(&heading, &lines, &mut found);
            lines.clear();
        } else {
            lines.push(line);
        }
        if let Some(title) = title {
            heading = one_space(title).chars().take(MAX_HEADING_CHARS).collect();
        }
    }
    found
}

/// Returns `Pricing` for `## Pricing`.
fn heading_of(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let marks = line.len() - rest.len();
    let title = rest.trim().trim_end_matches('#').trim();
    ((1..=6).contains(&marks) && rest.starts_with([' ', '\t']) && !title.is_empty())
        .then_some(title)
}

fn block(heading: &str, lines: &[&str], found: &mut Vec<String>) {
    if lines.is_empty() {
        return;
    }
    let under = |text: &str| match heading {
        "" => text.to_owned(),
        heading => format!("{heading}: {text}"),
    };
    if let [first, rule, rows @ ..] = lines
        && first.trim_start().starts_with('|')
        && is_rule(rule)
    {
        let columns = cells(first);
        for row in rows {
            let text = row_text(&columns, &cells(row));
            if !text.is_empty() {
                divided(&under(&text), found);
            }
        }
        return;
    }
    divided(&under(&lines.join(" ")), found);
}

fn is_rule(line: &str) -> bool {
    line.contains('-') && line.trim().chars().all(|sign| matches!(sign, '|' | '-' | ':' | ' '))
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim();
    let inner = inner.strip_prefix('|').unwrap_or(inner);
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').take(MAX_COLUMNS).map(one_space).collect()
}

/// Adds a paragraph, split into passages of at most [`MAX_PASSAGE_CHARS`]: at the end of a sentence
/// if possible, otherwise between words.
pub(crate) fn divided(paragraph: &str, found: &mut Vec<String>) {
    let text = one_space(paragraph);
    let mut rest = text.as_str();
    while let Some((end, _)) = rest.char_indices().nth(MAX_PASSAGE_CHARS) {
        let head = &rest[..end];
        let sentence = head.rfind(". ").map(|dot| dot + 1).filter(|at| *at * 2 > end);
        let at = sentence.or_else(|| head.rfind(' ')).filter(|at| *at > 0).unwrap_or(end);
        found.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    if !rest.is_empty() {
        found.push(rest.to_owned());
    }
}

/// Collapses each run of white space to one space. Invisible characters stay, so the search
/// for hidden text can find them.
pub(crate) fn one_space(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('\0', "")
}
