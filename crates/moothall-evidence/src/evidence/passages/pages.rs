//! Page headers, page footers and page numbers of a report that was laid out for paper.

use std::collections::{BTreeMap, BTreeSet};

/// Lines that are repeated at least this often are headers or footers.
const MIN_REPETITIONS: usize = 6;
/// Longer lines are not headers or footers.
const MAX_LINE_CHARS: usize = 300;

/// The lines of a document that belong to its pages and not to its text.
pub(crate) struct PageLines {
    /// Repeated lines, without page numbers.
    repeated: BTreeSet<String>,
}

impl PageLines {
    pub(crate) fn of(paragraphs: &[String]) -> Self {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in paragraphs.iter().filter(|text| text.len() <= MAX_LINE_CHARS) {
            *counts.entry(without_page_number(line)).or_default() += 1;
        }
        let repeated = counts.into_iter().filter(|(_, count)| *count >= MIN_REPETITIONS);
        Self { repeated: repeated.map(|(line, _)| line).collect() }
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        text.len() <= MAX_LINE_CHARS
            && (is_page_number(text) || self.repeated.contains(&without_page_number(text)))
    }
}

fn without_page_number(text: &str) -> String {
    let is_number = |sign: char| sign.is_ascii_digit() || sign.is_whitespace() || sign == '|';
    text.trim_matches(is_number).to_owned()
}

/// `12`, `- 12 -`, `F-3`, `Page 12`.
fn is_page_number(text: &str) -> bool {
    let number = text.trim_matches(|sign: char| sign.is_whitespace() || "-–—|".contains(sign));
    let number =
        number.strip_prefix("Page ").or_else(|| number.strip_prefix("F-")).unwrap_or(number);
    (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// A paragraph within an item, or what separates two pages.
pub(crate) enum PagePart<'a> {
    Text(&'a str),
    Break,
}

/// The paragraphs of an item, without page breaks. A sentence that a page break splits is joined.
pub(crate) fn join_pages<'a>(parts: impl Iterator<Item = PagePart<'a>>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut is_behind_break = false;
    for part in parts {
        let PagePart::Text(text) = part else {
            is_behind_break = true;
            continue;
        };
        let continues = is_behind_break && text.starts_with(char::is_lowercase);
        is_behind_break = false;
        match joined.last_mut() {
            Some(before) if continues && is_unfinished(before) => {
                before.push(' ');
                before.push_str(text);
            }
            _ => joined.push(text.to_owned()),
        }
    }
    joined
}

fn is_unfinished(text: &str) -> bool {
    text.ends_with(|sign: char| sign.is_alphanumeric() || sign == ',')
}
