//! Splits a text into units of checking: sentences, and lines that are not sentences.

use std::ops::Range;

use super::claim_regex::ClaimRegex;

/// A line of at least this many bytes may be part of a wrapped paragraph; a shorter one is a title
/// or a list item.
const MIN_WRAPPED_LINE_BYTES: usize = 40;

/// Quotations longer than this may be split into sentences.
const MAX_QUOTATION: usize = 600;

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "U.S", "U.K", "E.U", "Inc", "Corp", "Ltd", "vs", "approx", "No", "e.g", "i.e", "Co", "c", "ca",
    "St", "Mr", "Ms", "Mrs", "Dr", "Jr", "cf", "est", "incl", "excl", "p.a",
];

/// Text in brackets or quotation marks, which is not split at a full stop.
pub(crate) static BRACKETED_OR_QUOTED: ClaimRegex =
    ClaimRegex::new(r#"\[[^\[\]\n]{0,600}\]|“[^“”\n]{0,600}”|"[^"\n]{0,600}""#);

/// Citations at the start of a sentence.
pub(crate) static LEADING_CITATIONS: ClaimRegex =
    ClaimRegex::new(r"^\s*(?:\[\s*[A-Z][0-9]{0,2}\s*(?::[^\[\]]*)?\][\s,;]*)+[.]?");

static LIST_MARKER: ClaimRegex = ClaimRegex::new(r"^\s*(?:[-*+#>|•–]|[0-9]{1,3}[.)]\s)");

/// Returns the ranges of the sentences, in order and without overlap. A citation that opens a
/// sentence belongs to the previous one: `... billion. [F0:Revenue:FY2025] Margins ...`
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for block in blocks(text) {
        split(text, block, &mut found);
    }
    for at in 1..found.len() {
        let (earlier, later) = found.split_at_mut(at);
        let (Some(earlier), Some(later)) = (earlier.last_mut(), later.first_mut()) else {
            continue;
        };
        let Some(leading) = LEADING_CITATIONS.find(&text[later.clone()]) else { continue };
        let end = later.start + leading.end();
        let is_alone = text[end..later.end].trim().is_empty();
        // A citation at the start of a line that has other words belongs to that line.
        if is_alone || !opens_a_line(text, later.start) {
            earlier.end = text[..end].trim_end().len().max(earlier.end);
            later.start = end.min(later.end);
        }
    }
    found.retain(|range| !text[range.clone()].trim().is_empty());
    found
}

fn opens_a_line(text: &str, at: usize) -> bool {
    let words = at + text[at..].len() - text[at..].trim_start().len();
    let before = &text[..words];
    before[before.trim_end().len()..].contains('\n')
}

/// Groups lines into blocks; the lines of a wrapped paragraph form one block.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    let mut last_line = "";
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        match blocks.last_mut() {
            Some(block) if continues(last_line, line) => block.end = end,
            _ => blocks.push(start..end),
        }
        last_line = line;
        start = end;
    }
    blocks
}

fn continues(last_line: &str, line: &str) -> bool {
    let last = last_line.trim();
    let is_open = last.len() >= MIN_WRAPPED_LINE_BYTES
        && !last.ends_with(['.', '!', '?', ':', ';', '|', ']']);
    is_open
        && !last.starts_with(['#', '|'])
        && !line.trim().is_empty()
        && !LIST_MARKER.is_match(line)
}

fn split(text: &str, block: Range<usize>, found: &mut Vec<Range<usize>>) {
    let line = &text[block.clone()];
    let mut held = BRACKETED_OR_QUOTED
        .find_iter(line)
        .map(|found| found.range())
        .filter(|range| range.len() <= MAX_QUOTATION)
        .peekable();
    let mut start = 0;
    for (at, mark) in line.match_indices(['.', '!', '?', '。']) {
        while held.next_if(|range| range.end <= at).is_some() {}
        // A full stop before a closing quotation mark may also end the sentence.
        let end = match held.peek() {
            Some(range) if range.contains(&at) && at + mark.len() + 3 < range.end => continue,
            Some(range) if range.contains(&at) => range.end,
            _ => at + mark.len(),
        };
        if start < end && ends_here(&line[start..end], &line[end..]) {
            found.push(block.start + start..block.start + end);
            start = end;
        }
    }
    if start < line.len() {
        found.push(block.start + start..block.end);
    }
}

/// A full stop ends a sentence if a possible sentence start follows and no abbreviation precedes
/// it.
fn ends_here(sentence: &str, rest: &str) -> bool {
    let mut next = rest.chars();
    if !next.next().is_some_and(char::is_whitespace) {
        return false;
    }
    let opens = next
        .find(|c| !c.is_whitespace())
        .is_some_and(|c| c.is_uppercase() || c.is_ascii_digit() || "[\"“‘*$€£¥(".contains(c));
    let word = sentence
        .trim_end_matches(['.', '”', '"'])
        .rsplit(|c: char| c.is_whitespace() || c == '(')
        .next()
        .unwrap_or_default();
    opens && !ABBREVIATIONS.contains(&word)
}

#[cfg(test)]
pub(crate) static ALL: &[&ClaimRegex] = &[&BRACKETED_OR_QUOTED, &LEADING_CITATIONS, &LIST_MARKER];

#[cfg(test)]
#[path = "sentences_tests.rs"]
mod tests;
