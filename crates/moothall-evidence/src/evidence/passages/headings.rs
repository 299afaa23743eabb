//! Finds the headings of items in the paragraphs of an annual report.

use std::sync::LazyLock;

use regex::Regex;

/// Longer lines are not headings.
pub(crate) const MAX_HEADING_CHARS: usize = 200;
/// A title ends with at most this many words that titles do not have, or it is a sentence.
const MAX_SENTENCE_WORDS: usize = 2;

/// Titles of the items of Form 10-K, in lower case.
const TITLES: &[&str] = &[
    "business",
    "risk factors",
    "unresolved staff comments",
    "cybersecurity",
    "properties",
    "legal proceedings",
    "mine safety disclosures",
    "market for registrant's common equity, related stockholder matters and issuer purchases of equity securities",
    "selected financial data",
    "management's discussion and analysis of financial condition and results of operations",
    "quantitative and qualitative disclosures about market risk",
    "financial statements and supplementary data",
    "changes in and disagreements with accountants on accounting and financial disclosure",
    "controls and procedures",
    "other information",
    "disclosure regarding foreign jurisdictions that prevent inspections",
    "directors, executive officers and corporate governance",
    "executive compensation",
    "security ownership of certain beneficial owners and management and related stockholder matters",
    "certain relationships and related transactions, and director independence",
    "principal accountant fees and services",
    "exhibits and financial statement schedules",
    "form 10-k summary",
];

/// Words that titles write in lower case.
const SMALL_WORDS: &[&str] = &[
    "a", "about", "an", "and", "by", "for", "from", "in", "its", "of", "on", "or", "our", "that",
    "the", "to", "with",
];

/// A paragraph that looks like the heading of an item, or of several items together.
pub(crate) struct ItemHeading {
    pub(crate) at: usize,
    /// The numbers with their letters, such as `1A`. More than one for "Items 1 and 2".
    pub(crate) numbers: Vec<String>,
    /// The rest of the line.
    pub(crate) title: String,
}

/// `Item 1A. Risk Factors` or `Items 1 and 2. Business and Properties`: the numbers, the
/// punctuation after them and the title.
static ITEM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let part = r"(?:part\s+[ivx]+[\s.,:;–—-]*)?";
    let number = r"\d{1,2}(?:\s?\.?\s?\(?[a-e]\)?)?";
    let more = format!(r"(?:\s*\.?\s*(?:,|&|and|,\s*and)\s*(?:item\s*)?(?:{number}))*");
    Regex::new(&format!(r"(?i)^{part}items?\s*({number}{more})([\s.:|–—-]+|$)(.*)$")).ok()
});

static NUMBER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(\d{1,2})(?:\s?\.?\s?\(?([a-e])\b\)?)?").ok());

pub(crate) fn headings(paragraphs: &[String]) -> Vec<ItemHeading> {
    let heading = |(at, text): (usize, &String)| {
        if text.len() > MAX_HEADING_CHARS * 4 || text.chars().count() > MAX_HEADING_CHARS {
            return None;
        }
        let line = ItemLine::parse(text)?;
        line.is_heading().then(|| ItemHeading {
            at,
            numbers: line.numbers(),
            title: line.title.to_owned(),
        })
    };
    paragraphs.iter().enumerate().filter_map(heading).collect()
}

/// Separates headings from the text that follows them in the same paragraph, as in "Item 2.
/// Properties. We own …".
pub(crate) fn split_run_in_headings(paragraphs: Vec<String>) -> Vec<String> {
    let mut split = Vec::with_capacity(paragraphs.len());
    for text in paragraphs {
        match run_in_title_end(&text) {
            Some(end) => {
                let (heading, prose) = text.split_at(end);
                split.push(heading.trim_end().to_owned());
                split.push(prose.trim_start_matches(is_separator).to_owned());
            }
            None => split.push(text),
        }
    }
    split
}

fn is_separator(sign: char) -> bool {
    sign.is_whitespace() || matches!(sign, '.' | ':' | '–' | '—' | '-')
}

/// Where the title of a run-in heading ends: behind a known title that is followed by punctuation
/// and the start of a sentence.
fn run_in_title_end(text: &str) -> Option<usize> {
    // Most paragraphs are ruled out before the regular expression reads them.
    let start = text.get(..4)?;
    if !start.eq_ignore_ascii_case("item") && !start.eq_ignore_ascii_case("part") {
        return None;
    }
    let line = ItemLine::parse(text)?;
    let known = known_title_bytes(line.title)?;
    let behind = line.title.get(known..)?;
    let prose = behind.trim_start_matches(is_separator);
    let punctuation = behind.get(..behind.len() - prose.len())?;
    let is_run_in = punctuation.contains(['.', ':', '–', '—', '-'])
        && prose.chars().next().is_some_and(char::is_uppercase)
        && prose.split_whitespace().count() > MAX_SENTENCE_WORDS
        && prose.ends_with(['.', '!', '?', ':', ';', '”', '"', ')']);
    is_run_in.then(|| text.len() - behind.len())
}

/// A line that starts with the number of an item.
struct ItemLine<'a> {
    numbers: &'a str,
    separator: &'a str,
    title: &'a str,
}

impl<'a> ItemLine<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let parts = ITEM.as_ref()?.captures(text)?;
        let part = |index| parts.get(index).map_or("", |part| part.as_str());
        Some(Self { numbers: part(1), separator: part(2), title: part(3).trim() })
    }

    fn numbers(&self) -> Vec<String> {
        let Some(number) = NUMBER.as_ref() else { return Vec::new() };
        let of = |parts: regex::Captures<'_>| {
            let letter =
                parts.get(2).map_or(String::new(), |letter| letter.as_str().to_uppercase());
            format!("{}{letter}", &parts[1])
        };
        number.captures_iter(self.numbers).map(of).collect()
    }

    /// "Item 7 of this report describes …" is a sentence, not a heading.
    fn is_heading(&self) -> bool {
        let Some(first) = self.title.chars().next() else { return true };
        let ends_like_sentence = self.title.ends_with(['.', ',', ';']);
        if first.is_lowercase() {
            // Lower case in the source is often displayed as capitals.
            return self.separator.contains(['.', ':', '–', '—', '-']) && !ends_like_sentence;
        }
        let known = known_title_bytes(self.title).unwrap_or(0);
        let rest = self.title.get(known..).unwrap_or_default();
        let is_sentence_word =
            |word: &&str| word.starts_with(char::is_lowercase) && !SMALL_WORDS.contains(word);
        !ends_like_sentence
            || rest.split_whitespace().filter(is_sentence_word).count() <= MAX_SENTENCE_WORDS
    }
}

/// The length of the longest known title at the start of a text.
fn known_title_bytes(text: &str) -> Option<usize> {
    let lengths = TITLES.iter().filter_map(|title| {
        let mut rest = text.chars();
        for expected in title.chars() {
            let found = rest.next()?;
            let found = if found == '’' { '\'' } else { found };
            if !found.to_lowercase().eq(expected.to_lowercase()) {
                return None;
            }
        }
        let behind = rest.as_str();
        (!behind.starts_with(char::is_alphanumeric)).then(|| text.len() - behind.len())
    });
    lengths.max()
}
