//! N0: headlines with link, date and publisher. Nothing else of an article is stored, because the
//! text belongs to the publisher.
//!
//! A headline shows that something was published, not that it is true.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::day::CalendarDay;
use super::error::{EvidenceError, check_size};
use super::sanitize::cleaned;

const DOCUMENT_KIND: &str = "list of articles";
/// Limit on headlines; the newest are used.
pub const MAX_HEADLINES: usize = 40;
/// Limit on the size of one response.
pub const MAX_NEWS_BYTES: usize = 4 << 20;
const MAX_TITLE_CHARS: usize = 240;
const MAX_SOURCE_CHARS: usize = 80;
const MAX_URL_BYTES: usize = 500;

/// A headline; its citation is `[N0:<number>]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewsHeadline {
    /// Number, from 1.
    pub number: u32,
    /// The text of the headline.
    pub text: String,
    /// Link to the article.
    pub url: String,
    /// The publisher.
    pub source: String,
    /// The day of publication, or the day it was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<CalendarDay>,
}

/// A headline as found in a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedHeadline {
    /// The text of the headline.
    pub title: String,
    /// Link to the article.
    pub url: String,
    /// The publisher.
    pub source: String,
    /// The day of publication, or the day it was first seen.
    pub published: Option<CalendarDay>,
}

/// Selects the headlines that may be cited: newest first, without duplicates, with a valid link,
/// numbered from 1. With `as_of`, only those published on or before that day; headlines without a
/// date are then dropped.
pub fn headlines(found: Vec<FeedHeadline>, as_of: Option<CalendarDay>) -> Vec<NewsHeadline> {
    let mut sound: Vec<FeedHeadline> = found
        .into_iter()
        .filter_map(|one| {
            let title = cleaned(&one.title, MAX_TITLE_CHARS);
            let source = cleaned(&one.source, MAX_SOURCE_CHARS);
            let in_time = as_of.is_none_or(|day| one.published.is_some_and(|on| on <= day));
            let is_sound = in_time && !title.is_empty() && is_link(&one.url);
            is_sound.then_some(FeedHeadline { title, source, ..one })
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
        .map(|(number, FeedHeadline { title, url, source, published })| NewsHeadline {
            number,
            text: title,
            url,
            source,
            published,
        })
        .collect()
}

/// Whether the URL is safe to print: HTTP(S), no user name, only visible ASCII without quotes or
/// brackets.
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
struct GdeltResponse {
    #[serde(default)]
    articles: Vec<GdeltArticle>,
}

#[derive(Deserialize)]
struct GdeltArticle {
    #[serde(default)]
    url: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    seendate: String,
    #[serde(default)]
    domain: String,
}

/// Parses a response of the GDELT DOC 2.0 service (`mode=artlist&format=json`). GDELT reports
/// errors as plain text, which becomes the reason of the error.
pub fn gdelt(bytes: &[u8]) -> Result<Vec<FeedHeadline>, EvidenceError> {
    check_size(MAX_NEWS_BYTES, DOCUMENT_KIND, bytes)?;
    if !bytes.trim_ascii_start().starts_with(b"{") {
        let reason = cleaned(&String::from_utf8_lossy(bytes), 160);
        return Err(EvidenceError::Invalid { what: DOCUMENT_KIND, reason });
    }
    let read: GdeltResponse = serde_json::from_slice(bytes)
        .map_err(|source| EvidenceError::Json { what: DOCUMENT_KIND, source })?;
    let one = |article: GdeltArticle| FeedHeadline {
        published: parse_seen_date(&article.seendate),
        title: article.title,
        url: article.url,
        source: article.domain,
    };
    Ok(read.articles.into_iter().map(one).collect())
}

/// Parses the day of `20260131T120000Z`.
fn parse_seen_date(text: &str) -> Option<CalendarDay> {
    let day = text.get(..8).filter(|day| day.bytes().all(|byte| byte.is_ascii_digit()))?;
    CalendarDay::parse(&format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..]))
}

#[cfg(test)]
#[path = "news_tests.rs"]
mod tests;
