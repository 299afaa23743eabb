//! The provider backend: real sockets.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moothall_core::model::{FailureKind, ModelFailure};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};

use crate::backend::{AnswerFuture, Answered, Backend, Bill, Call, FailedTry, Listener};
use crate::catalog::Provider;
use crate::lanes::Lanes;
use crate::secret::Secret;
use crate::wire::{self, Answer, Delivery, Encoded, MAX_BODY_BYTES, StreamDecoder};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// HTTP clients that all providers share. They are made when first needed: reading the system's certificates takes milliseconds that a
/// run without a provider should not pay.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    direct: OnceLock<Result<Client, String>>,
    by_proxy: OnceLock<Result<Client, String>>,
}

impl Clients {
    /// Servers on this machine are never reached through the system's proxy.
    fn for_address(&self, url: &Url) -> Result<&Client, ModelFailure> {
        let (cell, proxy) = if is_loopback(url) {
            (&self.direct, Proxy::Never)
        } else {
            (&self.by_proxy, Proxy::AsSystem)
        };
        let made = cell.get_or_init(|| build(proxy).map_err(|error| error.to_string()));
        made.as_ref().map_err(|error| {
            ModelFailure::new(FailureKind::Transport, format!("no HTTP client: {error}"))
        })
    }
}

enum Proxy {
    Never,
    AsSystem,
}

fn build(proxy: Proxy) -> Result<Client, reqwest::Error> {
    // The first caller in the process decides; any provider will do, so a refusal is not an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(Duration::from_secs(60))
        .user_agent(concat!("moothall/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the key to an address that nobody configured.
        .redirect(reqwest::redirect::Policy::none());
    match proxy {
        Proxy::Never => builder.no_proxy(),
        Proxy::AsSystem => builder,
    }
    .build()
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// One provider over HTTP.
#[derive(Debug)]
pub(crate) struct HttpBackend {
    provider: Provider,
    key: Option<Secret>,
    clients: Arc<Clients>,
    lanes: Lanes,
}

impl HttpBackend {
    pub(crate) fn new(provider: Provider, key: Option<Secret>, clients: Arc<Clients>) -> Self {
        let lanes = Lanes::new(provider.limits);
        Self { provider, key, clients, lanes }
    }

    async fn try_once(&self, call: Call<'_>) -> Result<Answered, FailedTry> {
        let lane = self.lanes.of(call.request.model.name());
        let expected_tokens =
            call.request.prompt_tokens_expected() + u64::from(call.request.max_tokens);
        let permit = lane.enter(expected_tokens).await;
        let timeout = call.request.timeout_ms.map_or(self.provider.timeout, Duration::from_millis);
        // Written only now: thousands of calls that wait for their turn hold no bodies.
        let outcome = match tokio::time::timeout(timeout, self.exchange(call)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(FailedTry {
                failure: ModelFailure::new(
                    FailureKind::TimedOut,
                    format!("no complete answer within {timeout:?}"),
                ),
                bill: Bill::Possible,
            }),
        };
        match &outcome {
            Ok(_) => permit.succeeded(),
            Err(failed) if failed.failure.kind.asks_for_less() => {
                permit.slow_down(failed.failure.retry_after_ms.map(Duration::from_millis));
            }
            Err(_) => drop(permit),
        }
        outcome.map_err(|failed| self.without_key(failed))
    }

    async fn exchange(&self, call: Call<'_>) -> Result<Answered, FailedTry> {
        let delivery = if call.listener.is_some() { Delivery::Streamed } else { Delivery::Whole };
        let encoded =
            wire::encode(&self.provider, call.card, call.request, delivery).map_err(unbilled)?;
        let window = encoded.window;
        let response = self.request(encoded).map_err(unbilled)?.send().await.map_err(|error| {
            let bill = if error.is_connect() { Bill::None } else { Bill::Possible };
            FailedTry { failure: ModelFailure::new(FailureKind::Transport, causes(&error)), bill }
        })?;
        let answer = match (call.listener, response.status().is_success()) {
            (Some(listener), true) => self.read_stream(response, listener).await,
            (_, _) => self.read_whole(response).await,
        }?;
        Ok(Answered { answer, window })
    }

    fn request(&self, encoded: Encoded) -> Result<RequestBuilder, ModelFailure> {
        let Encoded { path, headers, body, window: _ } = encoded;
        let address = format!("{}{path}", self.provider.base_url);
        let url = Url::parse(&address).map_err(|error| {
            ModelFailure::new(FailureKind::BadRequest, format!("bad base URL: {error}"))
        })?;
        let mut map = HeaderMap::with_capacity(headers.len() + 2);
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        match &self.key {
            Some(key) => {
                if url.scheme() == "http" && !is_loopback(&url) {
                    return Err(ModelFailure::new(
                        FailureKind::Auth,
                        "a key is never sent over plain http to another machine; use https",
                    ));
                }
                let (name, prefix) = wire::key_header(self.provider.wire);
                let mut value = HeaderValue::try_from(format!("{prefix}{}", key.expose()))
                    .map_err(|_| {
                        ModelFailure::new(
                            FailureKind::Auth,
                            "the key holds characters that no key has",
                        )
                    })?;
                value.set_sensitive(true);
                map.insert(HeaderName::from_static(name), value);
            }
            None if self.provider.needs_key() => {
                let wanted = self.provider.key_env.join(" or ");
                return Err(ModelFailure::new(
                    FailureKind::Auth,
                    format!("there is no API key for {}: set {wanted}", self.provider.name),
                ));
            }
            None => {}
        }
        Ok(self.clients.for_address(&url)?.post(url).headers(map).body(body))
    }

    async fn read_whole(&self, response: Response) -> Result<Answer, FailedTry> {
        let status = response.status();
        let retry_after = retry_after_ms(response.headers());
        let body = read_body(response).await;
        match body {
            Ok(body) => wire::decode(self.provider.wire, status.as_u16(), retry_after, &body)
                .map_err(|failure| {
                    let bill = if status.is_success() { Bill::Possible } else { Bill::None };
                    FailedTry { failure, bill }
                }),
            // A refusal is a refusal even if its explanation broke off.
            Err(_) if !status.is_success() => {
                wire::decode(self.provider.wire, status.as_u16(), retry_after, b"")
                    .map_err(unbilled)
            }
            Err(failure) => Err(FailedTry {
                failure: failure.with_status(status.as_u16()),
                bill: Bill::Possible,
            }),
        }
    }

    async fn read_stream(
        &self,
        mut response: Response,
        listener: &mut dyn Listener,
    ) -> Result<Answer, FailedTry> {
        let possible = |failure: ModelFailure| FailedTry { failure, bill: Bill::Possible };
        let mut decoder = StreamDecoder::new(self.provider.wire);
        loop {
            match response.chunk().await {
                Ok(Some(piece)) => {
                    decoder.push(&piece, &mut |text| listener.text(text)).map_err(possible)?
                }
                Ok(None) => return decoder.finish().map_err(possible),
                // The answer may have been complete before the connection broke; the decoder knows.
                Err(error) => {
                    return decoder.finish().map_err(|_| {
                        possible(ModelFailure::new(FailureKind::Truncated, causes(&error)))
                    });
                }
            }
        }
    }

    fn without_key(&self, mut failed: FailedTry) -> FailedTry {
        if let Some(key) = &self.key {
            failed.failure.detail = key.remove_from(&failed.failure.detail);
        }
        failed
    }
}

impl Backend for HttpBackend {
    fn answer<'a>(&'a self, call: Call<'a>) -> AnswerFuture<'a> {
        Box::pin(self.try_once(call))
    }
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, ModelFailure> {
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| ModelFailure::new(FailureKind::Truncated, causes(&error)))?
    {
        if body.len() + piece.len() > MAX_BODY_BYTES {
            return Err(ModelFailure::new(FailureKind::Malformed, "the answer has no end"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let now_ms = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(0));
    wire::retry_after_ms(|name| headers.get(name).and_then(|value| value.to_str().ok()), now_ms)
}

fn unbilled(failure: ModelFailure) -> FailedTry {
    FailedTry { failure, bill: Bill::None }
}

/// An error with its causes, without the URL: people put keys there, and the provider is named anyway.
fn causes(error: &reqwest::Error) -> String {
    let mut text = "the connection failed".to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
