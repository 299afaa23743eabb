//! The SEC's service: documents by their kind, with a limiter, retries and a cache.
//!
//! Our own client, because what the SEC demands is small and must be kept exactly: a contact address
//! in every request, and less than ten requests a second over everything that this process does. Its
//! answers forbid caching and carry no marks to ask by, so what may be used again is decided here.

mod cache;
mod contact;
mod fetch;
mod limiter;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::evidence::{Accession, Cik, Day};
use moothall_models::Turnstile;

use self::cache::{Cache, Entry};
pub use self::contact::{Contact, InvalidContact};
use self::fetch::Fetcher;

/// The longest document that is read. The largest seen, an annual report of a bank, has 40 MB.
pub(crate) const MAX_BODY_BYTES: usize = 64 << 20;

/// How long an answer that has just arrived is not asked for again.
const JUST_ASKED: Duration = Duration::from_secs(60);

/// A document of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgarFile {
    /// Tickers and their filers.
    Tickers,
    /// The same with exchanges; not the same rows everywhere.
    TickersWithExchanges,
    /// A filer and what it filed.
    Submissions(Cik),
    /// Every tagged value that a filer reported.
    CompanyFacts(Cik),
    /// A file of a filing.
    Archive {
        /// Whose filing.
        cik: Cik,
        /// Which one.
        accession: Accession,
        /// The name of the file, a plain one.
        document: String,
    },
}

impl EdgarFile {
    /// Its path at the service.
    pub fn path(&self) -> String {
        match self {
            Self::Tickers => "/files/company_tickers.json".to_owned(),
            Self::TickersWithExchanges => "/files/company_tickers_exchange.json".to_owned(),
            Self::Submissions(cik) => format!("/submissions/CIK{cik}.json"),
            Self::CompanyFacts(cik) => format!("/api/xbrl/companyfacts/CIK{cik}.json"),
            Self::Archive { cik, accession, document } => {
                format!("/Archives/edgar/data/{}/{}/{document}", cik.number(), accession.digits())
            }
        }
    }

    /// Its address at the SEC, whoever answers.
    pub fn public_url(&self) -> String {
        Endpoints::sec().url(self)
    }
}

/// Where the service is: two hosts, both the SEC's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Lists of filings and facts.
    pub data: String,
    /// Tickers and archives.
    pub www: String,
}

impl Endpoints {
    /// The SEC itself.
    pub fn sec() -> Self {
        Self { data: "https://data.sec.gov".to_owned(), www: "https://www.sec.gov".to_owned() }
    }

    /// One server that answers for both hosts.
    pub fn at(base: &str) -> Self {
        Self { data: base.to_owned(), www: base.to_owned() }
    }

    fn url(&self, file: &EdgarFile) -> String {
        let base = match file {
            EdgarFile::Submissions(_) | EdgarFile::CompanyFacts(_) => &self.data,
            EdgarFile::Tickers | EdgarFile::TickersWithExchanges | EdgarFile::Archive { .. } => {
                &self.www
            }
        };
        format!("{}{}", base.trim_end_matches('/'), file.path())
    }
}

/// How often and how long is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Tries after the first.
    pub retries: usize,
    /// The pause before the second try; each further one is twice as long.
    pub first_delay: Duration,
    /// The longest pause between two tries, also one that the service asks for.
    pub longest_delay: Duration,
    /// How long one try may take, its body included.
    pub timeout: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            retries: 3,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(30),
            timeout: Duration::from_secs(60),
        }
    }
}

/// What a client needs to know.
#[derive(Debug, Clone)]
pub struct EdgarOptions {
    /// Where the service is.
    pub endpoints: Endpoints,
    /// Who asks. The SEC turns away whoever does not say so; a recording does not care.
    pub contact: Option<Contact>,
    /// The folder in which answers are kept; without one none are.
    pub cache: Option<PathBuf>,
    /// How often and how long is tried.
    pub patience: Patience,
}

/// When a kept answer may be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// What is filed never changes.
    Forever,
    /// For so long.
    For(Duration),
    /// Until something is filed on a later day, or on the day it was fetched.
    UntilFiled {
        /// The newest day on which anything was filed that may change it.
        newest: Option<Day>,
    },
}

impl Freshness {
    fn allows(self, fetched_at_ms: u64, now_ms: u64) -> bool {
        // A time in the future says that a clock was wrong, so nothing is known about its age.
        let Some(age_ms) = now_ms.checked_sub(fetched_at_ms) else { return false };
        let younger = |than: Duration| u128::from(age_ms) <= than.as_millis();
        match self {
            Self::Forever => true,
            Self::For(duration) => younger(duration),
            // Documents are public a moment after they are filed, but which moment is not told.
            Self::UntilFiled { newest: Some(newest) } => {
                day_of(fetched_at_ms) > newest || younger(JUST_ASKED)
            }
            Self::UntilFiled { newest: None } => younger(Duration::from_secs(24 * 60 * 60)),
        }
    }
}

/// The day of a moment, in UTC.
pub(crate) fn day_of(unix_ms: u64) -> Day {
    Day::from_unix_seconds(i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX))
}

/// A document that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Their hash.
    pub sha256: Sha256Hex,
}

/// Why there is no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EdgarError {
    /// Requests to the SEC must say who asks.
    #[error("the SEC wants to know who asks, and no contact is configured")]
    NoContact,
    /// 404.
    #[error("there is no such document")]
    NotFound,
    /// 401 or 403.
    #[error("the service refused the request with status {status}")]
    Refused {
        /// The status.
        status: u16,
    },
    /// 429, also after waiting.
    #[error("the service wants fewer requests")]
    RateLimited,
    /// Any other status.
    #[error("the service answered with status {status}")]
    Status {
        /// The status.
        status: u16,
    },
    /// No connection, or one that broke.
    #[error("{0}")]
    Transport(String),
    /// No complete answer in time.
    #[error("no complete answer within {0:?}")]
    TimedOut(Duration),
    /// Longer than is read.
    #[error("the document is longer than {MAX_BODY_BYTES} bytes")]
    TooLarge,
}

impl EdgarError {
    /// Whether the same request may succeed a moment later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited | Self::Transport(_) | Self::TimedOut(_) => true,
            Self::Status { status } => *status >= 500,
            Self::NoContact | Self::NotFound | Self::Refused { .. } | Self::TooLarge => false,
        }
    }
}

/// Reads documents of the service.
#[derive(Debug)]
pub struct EdgarClient {
    endpoints: Endpoints,
    cache: Option<Cache>,
    fetcher: Fetcher,
}

impl EdgarClient {
    /// A client. Nothing is asked yet.
    pub fn new(options: EdgarOptions) -> Self {
        let EdgarOptions { endpoints, contact, cache, patience } = options;
        Self { endpoints, cache: cache.map(Cache::new), fetcher: Fetcher::new(contact, patience) }
    }

    /// Shares what the service allows with others.
    #[must_use]
    pub fn behind(self, turnstile: Arc<dyn Turnstile>) -> Self {
        Self { fetcher: self.fetcher.behind(turnstile), ..self }
    }

    /// Reads a document: one that was kept, if it is fresh enough, else the service's.
    ///
    /// What was kept and is broken is fetched again; an answer that cannot be kept is used all the
    /// same.
    pub async fn get(
        &self,
        file: &EdgarFile,
        freshness: Freshness,
        now_ms: u64,
    ) -> Result<Document, EdgarError> {
        let url = self.endpoints.url(file);
        if let Some(cache) = &self.cache
            && let Some(kept) =
                cache.find(&url, move |entry| freshness.allows(entry.fetched_at_ms, now_ms)).await
        {
            tracing::debug!(path = file.path(), bytes = kept.bytes.len(), "document was kept");
            return Ok(kept);
        }
        let bytes = self.fetcher.fetch(&url).await?;
        let document = Document { sha256: Sha256Hex::of(&bytes), bytes: bytes.into() };
        tracing::info!(path = file.path(), bytes = document.bytes.len(), "document fetched");
        if let Some(cache) = &self.cache {
            let entry = Entry {
                url,
                sha256: document.sha256,
                bytes: document.bytes.len() as u64,
                status: 200,
                fetched_at_ms: now_ms,
            };
            cache.keep(entry, document.clone()).await;
        }
        Ok(document)
    }
}

#[cfg(test)]
#[path = "edgar_tests.rs"]
mod tests;
