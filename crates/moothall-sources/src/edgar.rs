//! Client for the SEC's EDGAR service, with a rate limiter, retries and a cache.
//!
//! The SEC's requirements are few and strict: a contact address in every request, and fewer than
//! ten requests per second across the whole process. Its responses forbid caching and carry no
//! validators for conditional requests, so this module decides how long a response may be reused.

mod cache;
mod contact;
mod fetch;
mod limiter;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::evidence::{AccessionNumber, CalendarDay, Cik};
use moothall_models::SharedLimiter;

use self::cache::{EdgarCache, EdgarCacheEntry};
pub use self::contact::{InvalidContact, SecContact};
use self::fetch::EdgarFetcher;

/// Size limit of one document. The largest one seen, a bank's annual report, is 40 MB.
pub(crate) const MAX_BODY_BYTES: usize = 64 << 20;

/// A response younger than this is always reused.
const ALWAYS_FRESH: Duration = Duration::from_secs(60);

/// A file that EDGAR serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgarFile {
    /// All tickers and their filers.
    Tickers,
    /// Tickers with exchanges. Its rows differ from those of [`EdgarFile::Tickers`].
    TickersWithExchanges,
    /// A filer and its list of filings.
    Submissions(Cik),
    /// All XBRL values a filer has reported.
    CompanyFacts(Cik),
    /// One file of a filing.
    Archive {
        cik: Cik,
        accession: AccessionNumber,
        /// A file name without a path.
        document: String,
    },
}

impl EdgarFile {
    /// The path of its URL.
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

    /// Its URL at the SEC, even if another server is configured.
    pub fn public_url(&self) -> String {
        EdgarEndpoints::sec().url(self)
    }
}

/// The base URLs of EDGAR's two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgarEndpoints {
    /// Host of submissions and company facts.
    pub data: String,
    /// Host of tickers and archives.
    pub www: String,
}

impl EdgarEndpoints {
    pub fn sec() -> Self {
        Self { data: "https://data.sec.gov".to_owned(), www: "https://www.sec.gov".to_owned() }
    }

    /// Uses one server for both hosts.
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

/// Retry and timeout settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgarRetrySettings {
    /// Retries after the first attempt.
    pub retries: usize,
    /// Delay before the first retry; doubles with each further one.
    pub first_delay: Duration,
    /// Upper limit of a delay, including one requested with `Retry-After`.
    pub longest_delay: Duration,
    /// Time limit of one attempt, including its body.
    pub timeout: Duration,
}

impl Default for EdgarRetrySettings {
    fn default() -> Self {
        Self {
            retries: 3,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(30),
            timeout: Duration::from_secs(60),
        }
    }
}

/// Options of an [`EdgarClient`].
#[derive(Debug, Clone)]
pub struct EdgarOptions {
    pub endpoints: EdgarEndpoints,
    /// Contact address. The SEC rejects requests without one; recordings do not need it.
    pub contact: Option<SecContact>,
    /// Cache folder. `None` disables the cache.
    pub cache: Option<PathBuf>,
    pub retry: EdgarRetrySettings,
}

/// How long a cached response may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheFreshness {
    /// For documents that never change, such as filed reports.
    Forever,
    /// For a fixed time.
    For(Duration),
    /// Until something is filed after the day of the fetch, or on that day.
    UntilFiled {
        /// Date of the newest filing that may change the document.
        newest: Option<CalendarDay>,
    },
}

impl CacheFreshness {
    fn allows(self, fetched_at_ms: u64, now_ms: u64) -> bool {
        // A fetch time in the future means a clock was wrong, so the age is unknown.
        let Some(age_ms) = now_ms.checked_sub(fetched_at_ms) else { return false };
        let younger = |than: Duration| u128::from(age_ms) <= than.as_millis();
        match self {
            Self::Forever => true,
            Self::For(duration) => younger(duration),
            // EDGAR publishes data shortly after a filing, without saying when. A copy fetched on
            // the filing day may therefore be outdated.
            Self::UntilFiled { newest: Some(newest) } => {
                day_of(fetched_at_ms) > newest || younger(ALWAYS_FRESH)
            }
            Self::UntilFiled { newest: None } => younger(Duration::from_secs(24 * 60 * 60)),
        }
    }
}

/// The UTC date of a Unix timestamp.
pub(crate) fn day_of(unix_ms: u64) -> CalendarDay {
    CalendarDay::from_unix_seconds(i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX))
}

/// A document from EDGAR or the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgarDocument {
    pub bytes: Arc<[u8]>,
    pub sha256: Sha256Hex,
}

/// Why a document could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EdgarError {
    /// The SEC requires a contact in every request.
    #[error("the SEC requires a contact address, and none is configured")]
    NoContact,
    /// 404.
    #[error("document not found")]
    NotFound,
    /// 401 or 403.
    #[error("the server refused the request with status {status}")]
    Refused { status: u16 },
    /// 429, even after retries.
    #[error("the server's rate limit was exceeded")]
    RateLimited,
    #[error("the server returned status {status}")]
    Status { status: u16 },
    /// The connection failed or broke.
    #[error("{0}")]
    Transport(String),
    #[error("no complete response within {0:?}")]
    TimedOut(Duration),
    /// The document exceeds the size limit.
    #[error("document exceeds the limit of {} MiB", MAX_BODY_BYTES >> 20)]
    TooLarge,
}

impl EdgarError {
    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited | Self::Transport(_) | Self::TimedOut(_) => true,
            Self::Status { status } => *status >= 500,
            Self::NoContact | Self::NotFound | Self::Refused { .. } | Self::TooLarge => false,
        }
    }
}

/// Recorded responses of EDGAR, for use without a network.
pub trait RecordedResponses: std::fmt::Debug + Send + Sync {
    /// The response to a request for this path (see [`EdgarFile::path`]). May block.
    fn read(&self, path: &str) -> Option<Vec<u8>>;
}

#[derive(Debug)]
pub struct EdgarClient {
    endpoints: EdgarEndpoints,
    cache: Option<EdgarCache>,
    origin: ResponseOrigin,
}

#[derive(Debug)]
enum ResponseOrigin {
    Http(EdgarFetcher),
    Recording(Arc<dyn RecordedResponses>),
}

impl EdgarClient {
    /// Creates a client without connecting.
    pub fn new(options: EdgarOptions) -> Self {
        let EdgarOptions { endpoints, contact, cache, retry } = options;
        Self {
            endpoints,
            cache: cache.map(EdgarCache::new),
            origin: ResponseOrigin::Http(EdgarFetcher::new(contact, retry)),
        }
    }

    /// Creates a client that reads a recording and never uses the network.
    pub fn from_recording(recording: Arc<dyn RecordedResponses>) -> Self {
        let origin = ResponseOrigin::Recording(recording);
        // A recording is already on disk and needs no cache.
        Self { endpoints: EdgarEndpoints::sec(), cache: None, origin }
    }

    /// Shares the SEC's rate limit with other processes.
    #[must_use]
    pub fn with_shared_limiter(self, shared_limiter: Arc<dyn SharedLimiter>) -> Self {
        let origin = match self.origin {
            ResponseOrigin::Http(fetcher) => {
                ResponseOrigin::Http(fetcher.with_shared_limiter(shared_limiter))
            }
            recording @ ResponseOrigin::Recording(_) => recording,
        };
        Self { origin, ..self }
    }

    /// Returns the cached document if it is fresh enough, otherwise fetches it.
    ///
    /// A damaged cache entry is fetched again. A failure to write the cache is not an error.
    pub async fn get(
        &self,
        file: &EdgarFile,
        freshness: CacheFreshness,
        now_ms: u64,
    ) -> Result<EdgarDocument, EdgarError> {
        let url = self.endpoints.url(file);
        if let Some(cache) = &self.cache
            && let Some(cached) =
                cache.find(&url, move |entry| freshness.allows(entry.fetched_at_ms, now_ms)).await
        {
            tracing::debug!(
                path = file.path(),
                bytes = cached.bytes.len(),
                "document found in cache"
            );
            return Ok(cached);
        }
        let bytes = match &self.origin {
            ResponseOrigin::Http(fetcher) => fetcher.fetch(&url).await?,
            ResponseOrigin::Recording(recording) => read_recording(recording, file.path()).await?,
        };
        let document = EdgarDocument { sha256: Sha256Hex::of(&bytes), bytes: bytes.into() };
        tracing::info!(path = file.path(), bytes = document.bytes.len(), "document fetched");
        if let Some(cache) = &self.cache {
            let entry = EdgarCacheEntry {
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

async fn read_recording(
    recording: &Arc<dyn RecordedResponses>,
    path: String,
) -> Result<Vec<u8>, EdgarError> {
    let recording = Arc::clone(recording);
    let read = tokio::task::spawn_blocking(move || recording.read(&path)).await;
    let bytes = read.ok().flatten().ok_or(EdgarError::NotFound)?;
    if bytes.len() > MAX_BODY_BYTES {
        return Err(EdgarError::TooLarge);
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "edgar_tests.rs"]
mod tests;
