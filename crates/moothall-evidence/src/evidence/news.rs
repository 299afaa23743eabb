//! N0: headlines, each with its link, its day and who printed it. Of an article nothing else is
//! kept: the words are the publisher's.
//!
//! A headline says that something was printed, not that it is true.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::day::Day;
use super::error::{EvidenceError, within};
use super::text::cleaned;

const WHAT: &str = "list of articles";
/// The most headlines that are kept, newest first.
pub const MAX_HEADLINES: usize = 40;
/// The most bytes that are read of one answer.
pub const MAX_NEWS_BYTES: usize = 4 << 20;
const MAX_TITLE_CHARS: usize = 240;
const MAX_SOURCE_CHARS: usize = 80;
const MAX_URL_BYTES: usize = 500;

/// A headline; its citation is `[N0:<number>]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// Its number, from 1.
    pub number: u32,
    /// What it says.
    pub text: String,
    /// Where the article is.
    pub url: String,
    /// Who printed it.
    pub source: String,
    /// The day it was printed or first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Day>,
}

/// A headline as a feed has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundHeadline {
    /// What it says.
    pub title: String,
    /// Where the article is.
    pub url: String,
    /// Who printed it.
    pub source: String,
    /// The day it was printed or first seen.
    pub published: Option<Day>,
}

/// The headlines that may be cited: newest first, each once, with an address on the web, numbered
/// from 1. With a day, only what was printed up to it; what has no day does not count then.
pub fn headlines(found: Vec<FoundHeadline>, as_of: Option<Day>) -> Vec<Headline> {
    let mut sound: Vec<FoundHeadline> = found
        .into_iter()
        .filter_map(|one| {
            let title = cleaned(&one.title, MAX_TITLE_CHARS);
            let source = cleaned(&one.source, MAX_SOURCE_CHARS);
            let in_time = as_of.is_none_or(|day| one.published.is_some_and(|on| on <= day));
            let is_sound = in_time && !title.is_empty() && is_link(&one.url);
            is_sound.then_some(FoundHeadline { title, source, ..one })
        })
        .collect();
    sound.sort_by(|one, other| {
        let newest_first = other.published.cmp(&one.published);
        newest_first.then_with(|| (&one.title, &one.url).cmp(&(&other.title, &other.url)))
    });
    let mut seen = BTreeSet::new();
    sound.retain(|one| seen.insert(one.title.to_lowercase()));
    (1..)
        .zip(sound.into_iter().take(MAX_HEADLINES))
        .map(|(number, FoundHeadline { title, url, source, published })| Headline {
            number,
            text: title,
            url,
            source,
            published,
        })
        .collect()
}

/// An address on the web that can be printed: no user, no space, nothing that is not visible ASCII.
fn is_link(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'<>\\^`{|}[]()".contains(&byte);
    url.len() <= MAX_URL_BYTES
        && !host.is_empty()
        && !host.contains('@')
        && url.bytes().all(is_plain)
}

#[derive(Deserialize)]
struct Articles {
    #[serde(default)]
    articles: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    #[serde(default)]
    url: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    seendate: String,
    #[serde(default)]
    domain: String,
}

/// Reads an answer of the GDELT DOC 2.0 service (`mode=artlist&format=json`). What it refuses it
/// refuses in plain text, which is told.
pub fn gdelt(bytes: &[u8]) -> Result<Vec<FoundHeadline>, EvidenceError> {
    within(MAX_NEWS_BYTES, WHAT, bytes)?;
    if !bytes.trim_ascii_start().starts_with(b"{") {
        let reason = cleaned(&String::from_utf8_lossy(bytes), 160);
        return Err(EvidenceError::Invalid { what: WHAT, reason });
    }
    let read: Articles = serde_json::from_slice(bytes)
        .map_err(|source| EvidenceError::Json { what: WHAT, source })?;
    let one = |article: Article| FoundHeadline {
        published: seen_on(&article.seendate),
        title: article.title,
        url: article.url,
        source: article.domain,
    };
    Ok(read.articles.into_iter().map(one).collect())
}

/// The day of `20260131T120000Z`.
fn seen_on(text: &str) -> Option<Day> {
    let day = text.get(..8).filter(|day| day.bytes().all(|byte| byte.is_ascii_digit()))?;
    Day::parse(&format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..]))
}

#[cfg(test)]
#[path = "news_tests.rs"]
mod tests;
