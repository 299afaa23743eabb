//! Fetches one EDGAR document over HTTP.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use moothall_models::connection::{causes, is_loopback};
use moothall_models::{SharedLimiter, build_http_client};
use reqwest::header::{HeaderValue, RETRY_AFTER, USER_AGENT};
use reqwest::{Client, Response, StatusCode, Url};

use super::contact::SecContact;
use super::{EdgarError, EdgarRetrySettings, MAX_BODY_BYTES, limiter};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const PROGRAM: &str = concat!("moothall/", env!("CARGO_PKG_VERSION"));

/// HTTP client with retries.
#[derive(Debug)]
pub(crate) struct EdgarFetcher {
    contact: Option<SecContact>,
    retry: EdgarRetrySettings,
    shared_limiter: Option<Arc<dyn SharedLimiter>>,
    /// Built on first use, because loading the system's certificates is slow.
    direct: OnceLock<Result<Client, String>>,
    by_proxy: OnceLock<Result<Client, String>>,
}

/// A failed attempt, with the delay from `Retry-After`.
struct FetchFailure {
    error: EdgarError,
    retry_after: Option<Duration>,
}

impl From<EdgarError> for FetchFailure {
    fn from(error: EdgarError) -> Self {
        Self { error, retry_after: None }
    }
}

impl EdgarFetcher {
    pub(crate) fn new(contact: Option<SecContact>, retry: EdgarRetrySettings) -> Self {
        let shared_limiter = None;
        Self { contact, retry, shared_limiter, direct: OnceLock::new(), by_proxy: OnceLock::new() }
    }

    pub(crate) fn with_shared_limiter(self, shared_limiter: Arc<dyn SharedLimiter>) -> Self {
        Self { shared_limiter: Some(shared_limiter), ..self }
    }

    pub(crate) async fn fetch(&self, address: &str) -> Result<Vec<u8>, EdgarError> {
        let url = Url::parse(address)
            .map_err(|error| EdgarError::Transport(format!("invalid URL: {error}")))?;
        let loopback = is_loopback(&url);
        let agent = match (&self.contact, loopback) {
            (Some(contact), _) => format!("{PROGRAM} {contact}"),
            (None, true) => PROGRAM.to_owned(),
            (None, false) => return Err(EdgarError::NoContact),
        };
        let agent = HeaderValue::try_from(agent).map_err(|_| EdgarError::NoContact)?;
        let client = self.client(loopback)?;
        let mut delays = self.delays();
        loop {
            // A loopback server is a recording, and the SEC's rate limit does not apply.
            if !loopback {
                limiter::wait(self.shared_limiter.as_deref()).await;
            }
            let request = client.get(url.clone()).header(USER_AGENT, agent.clone());
            let timeout = self.retry.timeout;
            let attempt = tokio::time::timeout(timeout, exchange(request)).await;
            let failure = match attempt {
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(failure)) => failure,
                Err(_) => EdgarError::TimedOut(timeout).into(),
            };
            let FetchFailure { error, retry_after } = failure;
            let too_long =
                retry_after.is_some_and(|requested| requested > self.retry.longest_delay);
            if !error.is_retryable() || too_long {
                return Err(error);
            }
            let Some(delay) = delays.next() else { return Err(error) };
            let delay = retry_after.map_or(delay, |requested| requested.max(delay));
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(error = %error, delay_ms, "document fetch failed, retrying");
            tokio::time::sleep(delay).await;
        }
    }

    /// Delays between attempts: exponential, with jitter, capped at `longest_delay`.
    fn delays(&self) -> impl Iterator<Item = Duration> + use<> {
        let EdgarRetrySettings { retries, first_delay, longest_delay, .. } = self.retry;
        ExponentialBuilder::default()
            .with_min_delay(first_delay)
            .with_max_delay(longest_delay)
            .with_max_times(retries)
            .with_jitter()
            .build()
            .map(move |delay| delay.min(longest_delay))
    }

    /// Loopback servers are never reached through the system's proxy.
    fn client(&self, loopback: bool) -> Result<&Client, EdgarError> {
        let cell = if loopback { &self.direct } else { &self.by_proxy };
        let client_result = cell.get_or_init(|| build(loopback).map_err(|error| error.to_string()));
        client_result.as_ref().map_err(|error| {
            EdgarError::Transport(format!("cannot create an HTTP client: {error}"))
        })
    }
}

fn build(loopback: bool) -> Result<Client, reqwest::Error> {
    build_http_client(|builder| {
        let builder = builder
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(Duration::from_secs(60))
            // EDGAR documents do not move, so a redirect is never followed.
            .redirect(reqwest::redirect::Policy::none());
        if loopback { builder.no_proxy() } else { builder }
    })
}

async fn exchange(request: reqwest::RequestBuilder) -> Result<Vec<u8>, FetchFailure> {
    let response = request.send().await.map_err(|error| EdgarError::Transport(causes(&error)))?;
    let status = response.status();
    match status {
        StatusCode::OK => Ok(read(response).await?),
        StatusCode::NOT_FOUND => Err(EdgarError::NotFound.into()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(EdgarError::Refused { status: status.as_u16() }.into())
        }
        StatusCode::TOO_MANY_REQUESTS => Err(FetchFailure {
            error: EdgarError::RateLimited,
            retry_after: retry_after(&response),
        }),
        _ => Err(FetchFailure {
            error: EdgarError::Status { status: status.as_u16() },
            retry_after: retry_after(&response),
        }),
    }
}

/// Does not preallocate from `Content-Length`, which is untrusted.
async fn read(mut response: Response) -> Result<Vec<u8>, EdgarError> {
    let content_length = response.content_length();
    if content_length.is_some_and(|length| length > MAX_BODY_BYTES as u64) {
        return Err(EdgarError::TooLarge);
    }
    let mut body = Vec::new();
    let transport_error = |error: reqwest::Error| EdgarError::Transport(causes(&error));
    while let Some(piece) = response.chunk().await.map_err(transport_error)? {
        if body.len() + piece.len() > MAX_BODY_BYTES {
            return Err(EdgarError::TooLarge);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Parses `Retry-After`, given in seconds or as a date.
fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(SystemTime::now()).unwrap_or_default())
}
