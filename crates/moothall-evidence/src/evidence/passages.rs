//! T0: passages of a company's annual report, word for word.
//!
//! Items are found by their headings, which vary: capitals, a part number before them, the title in
//! the next paragraph, several items together, the same words in a table of contents or in page
//! headers. Every matching heading is tried, and the one followed by the most prose is used. An item
//! that is not found is a gap; nothing is guessed.
//!
//! The text is untrusted data: it is quoted, never followed as an instruction, and never rendered
//! as HTML.

mod headings;
mod html;
mod pages;

use serde::{Deserialize, Serialize};

use self::headings::{ItemHeading, MAX_HEADING_CHARS, headings, split_run_in_headings};
use self::pages::{PageLines, PagePart, join_pages};
use super::error::{EvidenceError, check_size};
use super::submissions::Filing;

const DOCUMENT_KIND: &str = "annual report";
/// Annual reports of banks have 20 MB and more.
const MAX_BYTES: usize = 64 << 20;
/// Limit on paragraphs per report.
pub const MAX_PASSAGES: usize = 40;
/// Limit on the length of a paragraph; longer ones are truncated at the end of a sentence.
pub const MAX_PASSAGE_CHARS: usize = 1200;
/// Shorter paragraphs are headings, page numbers and captions.
const MIN_PROSE_CHARS: usize = 60;

/// A paragraph of an annual report, word for word; its citation is `[T0:accession:item:paragraph]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilingPassage {
    /// The accession number of the filing.
    pub accession: String,
    /// Its form, such as `10-K`.
    pub form: String,
    /// Its item: `1`, `1A` or `7`; in a 20-F `3.D`, `4` or `5`.
    pub item: String,
    /// Number of the paragraph within the item, from 1.
    pub paragraph: u32,
    /// Its text, with each run of white space collapsed to one space; long paragraphs are
    /// truncated.
    pub text: String,
}

/// An item to extract.
struct ItemSelector {
    /// The item as written in citations.
    item: &'static str,
    /// The number as written in headings, with its letter if it has one.
    number: &'static str,
    /// Text that the title must contain, in lower case.
    title: &'static str,
    /// A heading inside the item at which extraction starts.
    from: Option<&'static str>,
    letters: ItemLetterRule,
}

/// The meaning of a letter after an item number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemLetterRule {
    /// A separate item: 1A is not part of item 1 of a 10-K.
    OtherItems,
    /// A part of the item: 4.B is part of item 4 of a 20-F.
    Parts,
}

const TEN_K: &[ItemSelector] =
    &[ten_k("1", "business"), ten_k("1A", "risk factor"), ten_k("7", "discussion")];

const TWENTY_F: &[ItemSelector] = &[
    ItemSelector { item: "3.D", from: Some("risk factor"), ..twenty_f("3", "key information") },
    twenty_f("4", "information on the company"),
    twenty_f("5", "operating and financial review"),
];

const fn ten_k(item: &'static str, title: &'static str) -> ItemSelector {
    ItemSelector { item, number: item, title, from: None, letters: ItemLetterRule::OtherItems }
}

const fn twenty_f(item: &'static str, title: &'static str) -> ItemSelector {
    ItemSelector { item, number: item, title, from: None, letters: ItemLetterRule::Parts }
}

impl ItemSelector {
    fn is_among(&self, numbers: &[String]) -> bool {
        numbers.iter().any(|number| number == self.number)
    }

    /// Whether a heading ends this item.
    fn ends_at(&self, next: &ItemHeading) -> bool {
        match self.letters {
            ItemLetterRule::OtherItems => !self.is_among(&next.numbers),
            // 4A, unlike 4.A, is a separate item.
            ItemLetterRule::Parts => {
                let without_letter =
                    |number: &String| number.trim_end_matches(char::is_alphabetic) == self.number;
                !next.numbers.iter().any(without_letter)
                    || next.title.to_lowercase().contains("unresolved staff")
            }
        }
    }
}

/// Extracts passages from the main file of an annual report. The result is empty if no item is
/// found.
pub fn passages(document: &[u8], filing: &Filing) -> Result<Vec<FilingPassage>, EvidenceError> {
    check_size(MAX_BYTES, DOCUMENT_KIND, document)?;
    let selectors = match filing.form.as_str() {
        form if form.starts_with("10-K") => TEN_K,
        form if form.starts_with("20-F") => TWENTY_F,
        _ => return Ok(Vec::new()),
    };
    let document = String::from_utf8_lossy(document);
    let paragraphs = split_run_in_headings(html::paragraphs(first_document(&document)));
    let headings = headings(&paragraphs);
    let lines = PageLines::of(&paragraphs);
    let found: Vec<(&ItemSelector, Vec<String>)> = selectors
        .iter()
        .map(|selector| (selector, section(&paragraphs, &headings, &lines, selector)))
        .collect();
    let shares = shares(&found.iter().map(|(_, prose)| prose.len()).collect::<Vec<_>>());
    let mut passages = Vec::new();
    for ((selector, prose), share) in found.into_iter().zip(shares) {
        passages.extend((1..).zip(prose).take(share).map(|(paragraph, text)| FilingPassage {
            accession: filing.accession.to_string(),
            form: filing.form.clone(),
            item: selector.item.to_owned(),
            paragraph,
            text: cut(&text).to_owned(),
        }));
    }
    Ok(passages)
}

/// The report itself: a complete submission file has its exhibits behind it.
fn first_document(text: &str) -> &str {
    const END: &str = "</document>";
    let is_end = |at: &usize| {
        text.as_bytes()
            .get(*at..*at + END.len())
            .is_some_and(|tag| tag.eq_ignore_ascii_case(END.as_bytes()))
    };
    let end = text.match_indices("</").map(|(at, _)| at).find(is_end);
    end.map_or(text, |end| &text[..end])
}

/// The prose of an item: the longest text after one of its headings, up to the heading of another
/// item. A page header that repeats the item's own heading does not end it.
fn section(
    paragraphs: &[String],
    headings: &[ItemHeading],
    lines: &PageLines,
    selector: &ItemSelector,
) -> Vec<String> {
    let mut best: Vec<String> = Vec::new();
    let mut best_bytes = 0;
    let mut behind = 0;
    for (index, heading) in headings.iter().enumerate() {
        // Skip headings inside a section that was already examined.
        if heading.at < behind || !is_selected(paragraphs, heading, selector) {
            continue;
        }
        let other = headings[index..].iter().find(|next| selector.ends_at(next));
        behind = other.map_or(paragraphs.len(), |next| next.at);
        let mut start = heading.at + 1;
        if let Some(from) = selector.from {
            let is_start = |text: &String| {
                text.len() <= MAX_HEADING_CHARS && text.to_lowercase().contains(from)
            };
            start = match paragraphs[start..behind.max(start)].iter().position(is_start) {
                Some(found) => start + found + 1,
                None => behind,
            };
        }
        // Headings inside are the item's own, repeated on its pages.
        let is_heading = |at: usize| headings.binary_search_by_key(&at, |one| one.at).is_ok();
        let inside = (start..).zip(&paragraphs[start..behind.max(start)]);
        let mut prose =
            join_pages(inside.map(|(at, text)| match is_heading(at) || lines.contains(text) {
                true => PagePart::Break,
                false => PagePart::Text(text),
            }));
        prose.retain(|text| is_prose(text));
        let bytes = prose.iter().map(String::len).sum();
        if bytes > best_bytes {
            (best, best_bytes) = (prose, bytes);
        }
    }
    best
}

fn is_selected(paragraphs: &[String], heading: &ItemHeading, selector: &ItemSelector) -> bool {
    if !selector.is_among(&heading.numbers) {
        return false;
    }
    let next = paragraphs.get(heading.at + 1).filter(|next| next.len() <= MAX_HEADING_CHARS);
    let title = match (heading.title.as_str(), next) {
        // The title is in a separate cell or paragraph.
        ("", Some(next)) => next.to_lowercase(),
        (title, _) => title.to_lowercase(),
    };
    title.contains(selector.title)
}

/// Whether the text is sentences rather than a heading, caption, table row or line of a table of
/// contents.
fn is_prose(text: &str) -> bool {
    if text.ends_with(|sign: char| sign.is_ascii_digit())
        && (text.contains("..") || text.contains(". ."))
    {
        return false;
    }
    let (mut letters, mut signs, mut chars) = (0_usize, 0_usize, 0_usize);
    for sign in text.chars() {
        chars += 1;
        if !sign.is_whitespace() {
            signs += 1;
            letters += usize::from(sign.is_alphabetic());
        }
    }
    chars >= MIN_PROSE_CHARS && letters * 10 >= signs * 7 && text.contains(['.', ';', ':'])
}

/// How many paragraphs each item gets. Items take turns until all paragraphs are assigned or the
/// limit is reached, so short items leave more for the others.
fn shares(lengths: &[usize]) -> Vec<usize> {
    let mut shares = vec![0; lengths.len()];
    let mut room = MAX_PASSAGES;
    while room > 0 {
        let mut taken = false;
        for (share, length) in shares.iter_mut().zip(lengths) {
            if *share < *length && room > 0 {
                *share += 1;
                room -= 1;
                taken = true;
            }
        }
        if !taken {
            break;
        }
    }
    shares
}

/// Truncates a text at the end of a sentence if possible, otherwise between words.
fn cut(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(MAX_PASSAGE_CHARS) else { return text };
    let head = &text[..end];
    let sentence = head.rfind(". ").map(|dot| dot + 1);
    let word = head.rfind(' ');
    // A sentence that ends in the first half would discard too much.
    let at = sentence.filter(|at| *at * 2 > end).or(word).unwrap_or(end);
    head[..at].trim_end()
}

#[cfg(test)]
#[path = "passages_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "passages/layouts_tests.rs"]
mod layouts_tests;
