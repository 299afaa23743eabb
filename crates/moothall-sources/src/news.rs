//! Optional headlines from GDELT, a feed, or a file with either.
//!
//! Only the headline, link, date and source are read; the article text belongs to its publisher and
//! is never fetched. Unavailable news is reported as missing and never fails a run.

mod fetch;

use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;

use moothall_core::Sha256Hex;
use moothall_core::evidence::news::{FeedHeadline, MAX_NEWS_BYTES, gdelt, headlines};
use moothall_core::evidence::{CalendarDay, CompanyProfile, NewsHeadline, SourceFile};
use reqwest::Url;

/// GDELT rejects shorter phrases.
const MIN_PHRASE_CHARS: usize = 5;
/// Number of headlines requested from GDELT.
const MAX_GDELT_RECORDS: &str = "75";

#[derive(Clone, PartialEq, Eq)]
pub enum NewsSource {
    /// The GDELT DOC 2.0 API, searched for the company's name.
    Gdelt { endpoint: String },
    /// An RSS, Atom or JSON feed.
    Feed {
        /// An `https` URL, or any loopback URL.
        url: String,
    },
    /// A file with a feed or a GDELT response.
    File { path: PathBuf },
    /// The content of such a file, sent with a request.
    Upload {
        /// Its name.
        name: String,
        /// Its content.
        content: Vec<u8>,
    },
}

impl fmt::Debug for NewsSource {
    /// Prints only the label, because a URL may contain a secret key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NewsSource").field(&self.label()).finish()
    }
}

/// Headlines and their source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewsHeadlines {
    /// Newest first.
    pub headlines: Vec<NewsHeadline>,
    /// Why there are no headlines.
    pub missing: Vec<String>,
    /// The response that contained the headlines.
    pub sources: Vec<SourceFile>,
}

impl NewsSource {
    /// The public GDELT service.
    pub fn gdelt() -> Self {
        Self::Gdelt { endpoint: "https://api.gdeltproject.org/api/v2/doc/doc".to_owned() }
    }

    /// The name shown in evidence. Omits local paths and everything after the host of a URL, which
    /// may contain a secret key.
    pub fn label(&self) -> String {
        match self {
            Self::Gdelt { .. } => "gdelt".to_owned(),
            Self::Feed { url } => {
                let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
                format!("rss:{}", host.unwrap_or_default())
            }
            Self::File { path } => {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                file_label(&name.unwrap_or_default())
            }
            Self::Upload { name, .. } => file_label(name),
        }
    }

    /// Reads headlines about a company, up to `as_of` if it is set.
    pub async fn read(
        &self,
        company: &CompanyProfile,
        as_of: Option<CalendarDay>,
    ) -> NewsHeadlines {
        let label = self.label();
        match self.found(company).await {
            Ok((found, source)) => {
                let headlines = headlines(found, as_of);
                let missing = match headlines.is_empty() {
                    true => vec![format!("news ({label}): no usable headlines")],
                    false => Vec::new(),
                };
                NewsHeadlines { headlines, missing, sources: vec![source] }
            }
            Err(why) => NewsHeadlines {
                missing: vec![format!("news ({label}): {why}")],
                ..NewsHeadlines::default()
            },
        }
    }

    async fn found(
        &self,
        company: &CompanyProfile,
    ) -> Result<(Vec<FeedHeadline>, SourceFile), String> {
        let bytes = match self {
            Self::Gdelt { endpoint } => fetch::fetch(&gdelt_url(endpoint, company)?).await?,
            Self::Feed { url } => fetch::fetch(url).await?,
            Self::File { path } => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path)).await;
                read.map_err(|_| "reading was interrupted".to_owned())??
            }
            Self::Upload { content, .. } => content.clone(),
        };
        let (sha256, length) = (Sha256Hex::of(&bytes), bytes.len() as u64);
        let source = SourceFile { url: format!("news:{}", self.label()), sha256, bytes: length };
        let parsed = tokio::task::spawn_blocking(move || parse(&bytes)).await;
        let found = parsed.map_err(|_| "reading was interrupted".to_owned())??;
        Ok((found, source))
    }
}

fn file_label(name: &str) -> String {
    let name: String = name.chars().take(60).collect();
    format!("file:{name}")
}

/// Builds the GDELT query URL, with the company's name as a phrase.
fn gdelt_url(endpoint: &str, company: &CompanyProfile) -> Result<String, String> {
    if company.fictional {
        return Err("fictional companies have no news".to_owned());
    }
    let name = without_legal_form(&company.name);
    if name.chars().count() < MIN_PHRASE_CHARS {
        return Err(format!("the name `{name}` is too short to search for"));
    }
    let mut url = Url::parse(endpoint).map_err(|error| format!("invalid URL: {error}"))?;
    url.query_pairs_mut()
        .append_pair("query", &format!("\"{name}\""))
        .append_pair("mode", "artlist")
        .append_pair("format", "json")
        .append_pair("sort", "datedesc")
        .append_pair("timespan", "3m")
        .append_pair("maxrecords", MAX_GDELT_RECORDS);
    Ok(url.into())
}

/// Removes the legal form, as headlines do: `Apple Inc.` becomes `Apple`.
fn without_legal_form(name: &str) -> String {
    const LEGAL_FORMS: [&str; 17] = [
        "&",
        "inc",
        "incorporated",
        "corp",
        "corporation",
        "co",
        "company",
        "ltd",
        "limited",
        "plc",
        "llc",
        "lp",
        "nv",
        "sa",
        "ag",
        "se",
        "gmbh",
    ];
    let plain = |sign: char| if sign == '"' || sign.is_control() { ' ' } else { sign };
    let name: String = name.chars().map(plain).collect();
    let mut words: Vec<&str> = name.split_whitespace().collect();
    while let [_, .., last] = words.as_slice() {
        let bare = last.replace(['.', ',', '/'], "").to_ascii_lowercase();
        if !bare.is_empty() && !LEGAL_FORMS.contains(&bare.as_str()) {
            break;
        }
        words.pop();
    }
    words.join(" ").trim_end_matches(',').to_owned()
}

fn read_file(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("cannot read the file ({})", error.kind());
    let file = fs_err::File::open(path).map_err(unreadable)?;
    if !file.metadata().is_ok_and(|known| known.is_file()) {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MAX_NEWS_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_NEWS_BYTES {
        return Err(format!("file is larger than {MAX_NEWS_BYTES} bytes"));
    }
    Ok(bytes)
}

/// Parses a GDELT response or a feed.
fn parse(bytes: &[u8]) -> Result<Vec<FeedHeadline>, String> {
    let start = bytes.trim_ascii_start();
    let is_json = start.starts_with(b"{");
    let is_xml = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start).starts_with(b"<");
    if !is_xml {
        match gdelt(bytes) {
            Ok(found) if !found.is_empty() || !is_json => return Ok(found),
            Err(error) if !is_json => return Err(error.to_string()),
            // JSON may also be a feed. If it is neither, there are no headlines.
            Ok(_) | Err(_) => {}
        }
    }
    let feed = match feed_rs::parser::parse(bytes) {
        Ok(feed) => feed,
        Err(_) if is_json => return Ok(Vec::new()),
        Err(_) => return Err("not a readable feed".to_owned()),
    };
    let name = feed.title.map(|title| title.content).unwrap_or_default();
    let entry = |entry: feed_rs::model::Entry| {
        let published = entry.published.or(entry.updated);
        Some(FeedHeadline {
            title: entry.title?.content,
            url: entry.links.into_iter().next()?.href,
            source: name.clone(),
            published: published.map(|moment| CalendarDay::from_unix_seconds(moment.timestamp())),
        })
    };
    Ok(feed.entries.into_iter().filter_map(entry).collect())
}

#[cfg(test)]
#[path = "news_tests.rs"]
mod tests;
