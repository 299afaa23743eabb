//! Headlines, where the user asks for them: from GDELT, from a feed, or from a file of either.
//!
//! Headline, link, day and source are taken and nothing else; the text of an article is the
//! publisher's and is not even looked at. News that cannot be had are a gap, never a failure.

mod fetch;

use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;

use moothall_core::Sha256Hex;
use moothall_core::evidence::news::{FoundHeadline, MAX_NEWS_BYTES, gdelt, headlines};
use moothall_core::evidence::{Company, Day, Headline, SourceFile};
use reqwest::Url;

/// GDELT refuses to look for shorter phrases.
const SHORTEST_PHRASE: usize = 5;
/// Headlines that are asked for.
const ASKED_FOR: &str = "75";

/// Where headlines come from.
#[derive(Clone, PartialEq, Eq)]
pub enum NewsSource {
    /// The GDELT DOC 2.0 service, asked for the company's name.
    Gdelt {
        /// Its address.
        endpoint: String,
    },
    /// A feed in RSS, Atom or JSON.
    Feed {
        /// Its address: `https`, or this machine.
        url: String,
    },
    /// A file that holds a feed or an answer of GDELT.
    File {
        /// Where it is.
        path: PathBuf,
    },
}

impl fmt::Debug for NewsSource {
    /// An address may hold a key of its owner's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NewsSource").field(&self.label()).finish()
    }
}

/// Headlines and where they are from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// Newest first.
    pub headlines: Vec<Headline>,
    /// Why there are none.
    pub missing: Vec<String>,
    /// The answer that they stood in.
    pub sources: Vec<SourceFile>,
}

impl NewsSource {
    /// The GDELT service itself.
    pub fn gdelt() -> Self {
        Self::Gdelt { endpoint: "https://api.gdeltproject.org/api/v2/doc/doc".to_owned() }
    }

    /// What it is called in evidence: without paths of this machine and without what follows the
    /// host of an address, which may be a key.
    pub fn label(&self) -> String {
        match self {
            Self::Gdelt { .. } => "gdelt".to_owned(),
            Self::Feed { url } => {
                let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
                format!("rss:{}", host.unwrap_or_default())
            }
            Self::File { path } => {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                let name: String = name.unwrap_or_default().chars().take(60).collect();
                format!("file:{name}")
            }
        }
    }

    /// Headlines about a company, up to a day if there is one.
    pub async fn read(&self, company: &Company, as_of: Option<Day>) -> News {
        let label = self.label();
        match self.found(company).await {
            Ok((found, source)) => {
                let headlines = headlines(found, as_of);
                let missing = match headlines.is_empty() {
                    true => vec![format!("news ({label}): no headline can be used")],
                    false => Vec::new(),
                };
                News { headlines, missing, sources: vec![source] }
            }
            Err(why) => News { missing: vec![format!("news ({label}): {why}")], ..News::default() },
        }
    }

    async fn found(&self, company: &Company) -> Result<(Vec<FoundHeadline>, SourceFile), String> {
        let bytes = match self {
            Self::Gdelt { endpoint } => fetch::fetch(&question(endpoint, company)?).await?,
            Self::Feed { url } => fetch::fetch(url).await?,
            Self::File { path } => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path)).await;
                read.map_err(|_| "it could not be read to its end".to_owned())??
            }
        };
        let (sha256, length) = (Sha256Hex::of(&bytes), bytes.len() as u64);
        let source = SourceFile { url: format!("news:{}", self.label()), sha256, bytes: length };
        let parsed = tokio::task::spawn_blocking(move || parse(&bytes)).await;
        let found = parsed.map_err(|_| "it could not be read to its end".to_owned())??;
        Ok((found, source))
    }
}

/// The address of a question to GDELT: the company's name as a phrase, as it stands in headlines.
fn question(endpoint: &str, company: &Company) -> Result<String, String> {
    if company.fictional {
        return Err("nobody writes about a company that does not exist".to_owned());
    }
    let name = spoken(&company.name);
    if name.chars().count() < SHORTEST_PHRASE {
        return Err(format!("the name `{name}` is too short to be looked for"));
    }
    let mut url = Url::parse(endpoint).map_err(|error| format!("bad address: {error}"))?;
    url.query_pairs_mut()
        .append_pair("query", &format!("\"{name}\""))
        .append_pair("mode", "artlist")
        .append_pair("format", "json")
        .append_pair("sort", "datedesc")
        .append_pair("timespan", "3m")
        .append_pair("maxrecords", ASKED_FOR);
    Ok(url.into())
}

/// `Apple` of `Apple Inc.`: headlines leave the legal form out.
fn spoken(name: &str) -> String {
    const FORMS: [&str; 17] = [
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
        if !bare.is_empty() && !FORMS.contains(&bare.as_str()) {
            break;
        }
        words.pop();
    }
    words.join(" ").trim_end_matches(',').to_owned()
}

fn read_file(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let broken = |error: std::io::Error| format!("the file cannot be read ({})", error.kind());
    let file = fs_err::File::open(path).map_err(broken)?;
    if !file.metadata().is_ok_and(|known| known.is_file()) {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MAX_NEWS_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(broken)?;
    if bytes.len() > MAX_NEWS_BYTES {
        return Err(format!("the file is longer than {MAX_NEWS_BYTES} bytes"));
    }
    Ok(bytes)
}

/// An answer of GDELT, or a feed in any of its forms.
fn parse(bytes: &[u8]) -> Result<Vec<FoundHeadline>, String> {
    let start = bytes.trim_ascii_start();
    let is_json = start.starts_with(b"{");
    let is_xml = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start).starts_with(b"<");
    if !is_xml {
        match gdelt(bytes) {
            Ok(found) if !found.is_empty() || !is_json => return Ok(found),
            Err(error) if !is_json => return Err(error.to_string()),
            // A feed may be JSON too; an empty list of articles is an empty list.
            Ok(_) | Err(_) => {}
        }
    }
    let feed = match feed_rs::parser::parse(bytes) {
        Ok(feed) => feed,
        Err(_) if is_json => return Ok(Vec::new()),
        Err(_) => return Err("it is not a feed that can be read".to_owned()),
    };
    let name = feed.title.map(|title| title.content).unwrap_or_default();
    let entry = |entry: feed_rs::model::Entry| {
        let published = entry.published.or(entry.updated);
        Some(FoundHeadline {
            title: entry.title?.content,
            url: entry.links.into_iter().next()?.href,
            source: name.clone(),
            published: published.map(|moment| Day::from_unix_seconds(moment.timestamp())),
        })
    };
    Ok(feed.entries.into_iter().filter_map(entry).collect())
}

#[cfg(test)]
#[path = "news_tests.rs"]
mod tests;
