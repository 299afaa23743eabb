//! One document over HTTP: the only socket of the evidence.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use moothall_models::Turnstile;
use moothall_models::connection::{causes, is_loopback};
use reqwest::header::{HeaderValue, RETRY_AFTER, USER_AGENT};
use reqwest::{Client, Response, StatusCode, Url};

use super::contact::Contact;
use super::{EdgarError, MAX_BODY_BYTES, Patience, limiter};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const PROGRAM: &str = concat!("moothall/", env!("CARGO_PKG_VERSION"));

/// Fetches with retries.
#[derive(Debug)]
pub(super) struct Fetcher {
    contact: Option<Contact>,
    patience: Patience,
    turnstile: Option<Arc<dyn Turnstile>>,
    /// Made when first needed: reading the system's certificates takes its time.
    direct: OnceLock<Result<Client, String>>,
    by_proxy: OnceLock<Result<Client, String>>,
}

/// A try that failed, and the pause that the service asked for.
struct Failed {
    error: EdgarError,
    retry_after: Option<Duration>,
}

impl From<EdgarError> for Failed {
    fn from(error: EdgarError) -> Self {
        Self { error, retry_after: None }
    }
}

impl Fetcher {
    pub(super) fn new(contact: Option<Contact>, patience: Patience) -> Self {
        let turnstile = None;
        Self { contact, patience, turnstile, direct: OnceLock::new(), by_proxy: OnceLock::new() }
    }

    pub(super) fn behind(self, turnstile: Arc<dyn Turnstile>) -> Self {
        Self { turnstile: Some(turnstile), ..self }
    }

    pub(super) async fn fetch(&self, address: &str) -> Result<Vec<u8>, EdgarError> {
        let url = Url::parse(address)
            .map_err(|error| EdgarError::Transport(format!("bad address: {error}")))?;
        let here = is_loopback(&url);
        let agent = match (&self.contact, here) {
            (Some(contact), _) => format!("{PROGRAM} {contact}"),
            (None, true) => PROGRAM.to_owned(),
            (None, false) => return Err(EdgarError::NoContact),
        };
        let agent = HeaderValue::try_from(agent).map_err(|_| EdgarError::NoContact)?;
        let client = self.client(here)?;
        let mut delays = self.delays();
        loop {
            // A server on this machine is a recording; the limit is the SEC's.
            if !here {
                limiter::wait(self.turnstile.as_deref()).await;
            }
            let request = client.get(url.clone()).header(USER_AGENT, agent.clone());
            let timeout = self.patience.timeout;
            let tried = tokio::time::timeout(timeout, exchange(request)).await;
            let failed = match tried {
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(failed)) => failed,
                Err(_) => EdgarError::TimedOut(timeout).into(),
            };
            let Failed { error, retry_after } = failed;
            let too_long = retry_after.is_some_and(|asked| asked > self.patience.longest_delay);
            if !error.is_retryable() || too_long {
                return Err(error);
            }
            let Some(delay) = delays.next() else { return Err(error) };
            let delay = retry_after.map_or(delay, |asked| asked.max(delay));
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(error = %error, delay_ms, "document not fetched, trying again");
            tokio::time::sleep(delay).await;
        }
    }

    /// The pauses between tries: growing, jittered, and never longer than the longest.
    fn delays(&self) -> impl Iterator<Item = Duration> + use<> {
        let Patience { retries, first_delay, longest_delay, .. } = self.patience;
        ExponentialBuilder::default()
            .with_min_delay(first_delay)
            .with_max_delay(longest_delay)
            .with_max_times(retries)
            .with_jitter()
            .build()
            .map(move |delay| delay.min(longest_delay))
    }

    /// Servers on this machine are never reached through the system's proxy.
    fn client(&self, here: bool) -> Result<&Client, EdgarError> {
        let cell = if here { &self.direct } else { &self.by_proxy };
        let made = cell.get_or_init(|| build(here).map_err(|error| error.to_string()));
        made.as_ref().map_err(|error| EdgarError::Transport(format!("no HTTP client: {error}")))
    }
}

fn build(here: bool) -> Result<Client, reqwest::Error> {
    // The first caller in the process decides; any provider will do, so a refusal is not an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(Duration::from_secs(60))
        // Documents have one address. Whoever sends us elsewhere is not the service.
        .redirect(reqwest::redirect::Policy::none());
    if here { builder.no_proxy() } else { builder }.build()
}

async fn exchange(request: reqwest::RequestBuilder) -> Result<Vec<u8>, Failed> {
    let response = request.send().await.map_err(|error| EdgarError::Transport(causes(&error)))?;
    let status = response.status();
    match status {
        StatusCode::OK => Ok(read(response).await?),
        StatusCode::NOT_FOUND => Err(EdgarError::NotFound.into()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(EdgarError::Refused { status: status.as_u16() }.into())
        }
        StatusCode::TOO_MANY_REQUESTS => {
            Err(Failed { error: EdgarError::RateLimited, retry_after: retry_after(&response) })
        }
        _ => Err(Failed {
            error: EdgarError::Status { status: status.as_u16() },
            retry_after: retry_after(&response),
        }),
    }
}

/// No length that the service tells is allocated.
async fn read(mut response: Response) -> Result<Vec<u8>, EdgarError> {
    let told = response.content_length();
    if told.is_some_and(|told| told > MAX_BODY_BYTES as u64) {
        return Err(EdgarError::TooLarge);
    }
    let mut body = Vec::new();
    let broken = |error: reqwest::Error| EdgarError::Transport(causes(&error));
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        if body.len() + piece.len() > MAX_BODY_BYTES {
            return Err(EdgarError::TooLarge);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Seconds, or a date.
fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(SystemTime::now()).unwrap_or_default())
}
