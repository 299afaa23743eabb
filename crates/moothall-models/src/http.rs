//! The HTTP backend of model providers.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moothall_core::model::{FailureKind, ModelFailure};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};

use crate::api_key::ApiKey;
use crate::backend::{
    AnswerFuture, BackendReply, BillingRisk, FailedAttempt, ModelAttempt, ModelBackend,
    ReplyListener,
};
use crate::catalog::ModelProvider;
use crate::connection::{causes, is_loopback};
use crate::http_client::build_http_client;
use crate::model_limiters::ModelLimiters;
use crate::provider_connections::ProviderConnections;
use crate::shared_limiter::{MinuteQuota, SharedLimiter};
use crate::wire::{self, EncodedRequest, MAX_BODY_BYTES, RawReply, ReplyDelivery, StreamDecoder};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Size limit of an error response.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// HTTP clients shared by all providers. Built on first use, because loading the system's
/// certificates takes milliseconds that a run without a provider should not spend.
#[derive(Debug, Default)]
pub(crate) struct HttpClients {
    direct: OnceLock<Result<Client, String>>,
    by_proxy: OnceLock<Result<Client, String>>,
}

impl HttpClients {
    /// Loopback servers are never reached through the system's proxy.
    fn for_address(&self, url: &Url) -> Result<&Client, ModelFailure> {
        let (cell, proxy) = if is_loopback(url) {
            (&self.direct, ProxyMode::Never)
        } else {
            (&self.by_proxy, ProxyMode::AsSystem)
        };
        let client = cell.get_or_init(|| build(proxy).map_err(|error| error.to_string()));
        client.as_ref().map_err(|error| {
            ModelFailure::new(
                FailureKind::Transport,
                format!("cannot create an HTTP client: {error}"),
            )
        })
    }
}

enum ProxyMode {
    Never,
    AsSystem,
}

fn build(proxy: ProxyMode) -> Result<Client, reqwest::Error> {
    build_http_client(|builder| {
        let builder = builder
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(Duration::from_secs(60))
            .user_agent(concat!("moothall/", env!("CARGO_PKG_VERSION")))
            // A redirect would send the API key to an address that was not configured.
            .redirect(reqwest::redirect::Policy::none());
        match proxy {
            ProxyMode::Never => builder.no_proxy(),
            ProxyMode::AsSystem => builder,
        }
    })
}

/// A provider reached over HTTP.
#[derive(Debug)]
pub(crate) struct HttpBackend {
    provider: ModelProvider,
    key: Option<ApiKey>,
    clients: Arc<HttpClients>,
    limiters: Arc<ModelLimiters>,
    shared_limiter: Option<Arc<dyn SharedLimiter>>,
    /// URL and headers, the same for every call; or the reason no call can be made.
    target: Result<RequestTarget, ModelFailure>,
}

#[derive(Debug)]
struct RequestTarget {
    url: Url,
    headers: HeaderMap,
}

impl HttpBackend {
    pub(crate) fn new(
        provider: ModelProvider,
        key: Option<ApiKey>,
        connections: &ProviderConnections,
        shared_limiter: Option<Arc<dyn SharedLimiter>>,
    ) -> Self {
        let (clients, limiters) = (connections.clients(), connections.limiters(&provider));
        let target = RequestTarget::new(&provider, key.as_ref());
        Self { provider, key, clients, limiters, shared_limiter, target }
    }

    async fn try_once(&self, call: ModelAttempt<'_>) -> Result<BackendReply, FailedAttempt> {
        let limiter = self.limiters.of(call.request.model.name());
        let request = call.request;
        let tokens = || request.prompt_tokens_expected() + u64::from(request.max_tokens);
        let permit = tokio::select! {
            biased;
            permit = limiter.enter(call.reservation.run(), tokens) => {
                permit.map_err(|pause| unbilled(stopped(pause)))?
            }
            // The provider may have asked for minutes, and nothing has been sent yet.
            () = call.reservation.run_pauses() => {
                let detail = "the run paused before the call was sent".to_owned();
                return Err(unbilled(ModelFailure::new(FailureKind::RateLimited, detail)));
            }
        };
        let _shared_permit = match &self.shared_limiter {
            Some(shared_limiter) => {
                let (model, limits) = (request.model.to_string(), self.provider.limits);
                let pass = shared_limiter.enter(&model, limits.concurrent.get()).await;
                if let Some(limit) = limits.requests_per_minute {
                    let name = format!("{model} requests");
                    shared_limiter.wait_for_quota(&name, 1, MinuteQuota::requests(limit)).await;
                }
                if let Some(limit) = limits.tokens_per_minute {
                    let name = format!("{model} tokens");
                    shared_limiter
                        .wait_for_quota(&name, tokens(), MinuteQuota::tokens(limit))
                        .await;
                }
                Some(pass)
            }
            None => None,
        };
        // Encode only after the permit, so that thousands of waiting calls hold no bodies, and
        // before the timeout starts, because the first call builds the HTTP client, which takes
        // longer than some timeouts.
        let delivery =
            if call.listener.is_some() { ReplyDelivery::Streamed } else { ReplyDelivery::Whole };
        let encoded =
            wire::encode(&self.provider, call.card, request, delivery).map_err(unbilled)?;
        let window = encoded.window;
        let outgoing = self.outgoing(encoded).map_err(unbilled)?;
        let timeout = request.timeout_ms.map_or(self.provider.timeout, Duration::from_millis);
        call.reservation.mark_sent();
        let exchange = self.exchange(outgoing, call.listener);
        let outcome = match tokio::time::timeout(timeout, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(FailedAttempt {
                failure: ModelFailure::new(
                    FailureKind::TimedOut,
                    format!("no complete reply within {timeout:?}"),
                ),
                bill: BillingRisk::Possible,
            }),
        };
        match &outcome {
            Ok(_) => permit.succeeded(),
            Err(failed) if failed.failure.kind.is_throttling() => {
                permit.slow_down(failed.failure.retry_after_ms.map(Duration::from_millis));
            }
            Err(_) => drop(permit),
        }
        match outcome {
            Ok(answer) => Ok(BackendReply { answer: self.answer_without_key(answer), window }),
            Err(failed) => Err(self.without_key(failed)),
        }
    }

    fn outgoing(&self, encoded: EncodedRequest) -> Result<RequestBuilder, ModelFailure> {
        let RequestTarget { url, headers } = self.target.as_ref().map_err(Clone::clone)?;
        let client = self.clients.for_address(url)?;
        Ok(client.post(url.clone()).headers(headers.clone()).body(encoded.body))
    }

    async fn exchange(
        &self,
        outgoing: RequestBuilder,
        listener: Option<&mut dyn ReplyListener>,
    ) -> Result<RawReply, FailedAttempt> {
        let response = outgoing.send().await.map_err(|error| {
            let bill = if error.is_connect() { BillingRisk::None } else { BillingRisk::Possible };
            FailedAttempt {
                failure: ModelFailure::new(FailureKind::Transport, causes(&error)),
                bill,
            }
        })?;
        match (listener, response.status().is_success()) {
            (Some(listener), true) => self.read_stream(response, listener).await,
            (_, _) => self.read_whole(response).await,
        }
    }

    async fn read_whole(&self, response: Response) -> Result<RawReply, FailedAttempt> {
        let status = response.status();
        let retry_after = retry_after_ms(response.headers());
        let longest = if status.is_success() { MAX_BODY_BYTES } else { MAX_ERROR_BYTES };
        let body = read_body(response, longest).await;
        match body {
            Ok(body) => wire::decode(self.provider.wire, status.as_u16(), retry_after, &body)
                .map_err(|failure| {
                    let bill =
                        if status.is_success() { BillingRisk::Possible } else { BillingRisk::None };
                    FailedAttempt { failure, bill }
                }),
            // The status alone is enough to classify a refusal whose body broke off.
            Err(_) if !status.is_success() => {
                wire::decode(self.provider.wire, status.as_u16(), retry_after, b"")
                    .map_err(unbilled)
            }
            Err(failure) => Err(FailedAttempt {
                failure: failure.with_status(status.as_u16()),
                bill: BillingRisk::Possible,
            }),
        }
    }

    async fn read_stream(
        &self,
        mut response: Response,
        listener: &mut dyn ReplyListener,
    ) -> Result<RawReply, FailedAttempt> {
        let possible =
            |failure: ModelFailure| FailedAttempt { failure, bill: BillingRisk::Possible };
        let mut decoder = StreamDecoder::new(self.provider.wire);
        let mut redactor = KeyRedactor { key: self.key.as_ref(), pending: String::new(), listener };
        let answer = loop {
            match response.chunk().await {
                Ok(Some(piece)) => {
                    decoder.push(&piece, &mut |text| redactor.text(text)).map_err(possible)?;
                }
                Ok(None) => break decoder.finish().map_err(possible)?,
                // The reply may have been complete before the connection broke; the decoder knows.
                Err(error) => {
                    let failure = ModelFailure::new(FailureKind::Truncated, causes(&error));
                    break decoder.finish().map_err(|_| possible(failure))?;
                }
            }
        };
        redactor.end();
        Ok(answer)
    }

    fn without_key(&self, mut failed: FailedAttempt) -> FailedAttempt {
        if let Some(key) = &self.key {
            failed.failure.detail = key.remove_from(&failed.failure.detail);
        }
        failed
    }

    /// Removes the API key if a server echoes it, because replies are stored and displayed.
    fn answer_without_key(&self, mut answer: RawReply) -> RawReply {
        if let Some(key) = &self.key {
            for text in std::iter::once(&mut answer.text).chain(&mut answer.model) {
                if key.is_in(text) {
                    *text = key.remove_from(text);
                }
            }
        }
        answer
    }
}

/// Forwards text with the API key removed, even if the key is split across chunks.
struct KeyRedactor<'a> {
    key: Option<&'a ApiKey>,
    pending: String,
    listener: &'a mut dyn ReplyListener,
}

impl KeyRedactor<'_> {
    fn text(&mut self, text: &str) {
        let Some(key) = self.key else { return self.listener.text(text) };
        self.pending.push_str(text);
        let harmless = key.take_harmless(&mut self.pending);
        if !harmless.is_empty() {
            self.listener.text(&harmless);
        }
    }

    /// Forwards the withheld text, which turned out not to be the key.
    fn end(self) {
        if !self.pending.is_empty() {
            self.listener.text(&self.pending);
        }
    }
}

impl RequestTarget {
    fn new(provider: &ModelProvider, key: Option<&ApiKey>) -> Result<Self, ModelFailure> {
        let endpoint = wire::endpoint(provider.wire);
        let address = format!("{}{}", provider.base_url, endpoint.path);
        let url = Url::parse(&address).map_err(|error| {
            ModelFailure::new(FailureKind::BadRequest, format!("invalid base URL: {error}"))
        })?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in endpoint.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        match key {
            Some(key) => {
                let name = HeaderName::from_static(endpoint.key_header);
                headers.insert(name, key_value(endpoint.key_prefix, key, &url)?);
            }
            None if provider.needs_key() => {
                let (name, wanted) = (&provider.name, provider.key_env.join(" or "));
                let detail = format!("no API key for {name}: set {wanted}");
                return Err(ModelFailure::new(FailureKind::Auth, detail));
            }
            None => {}
        }
        Ok(Self { url, headers })
    }
}

fn key_value(prefix: &str, key: &ApiKey, url: &Url) -> Result<HeaderValue, ModelFailure> {
    if url.scheme() == "http" && !is_loopback(url) {
        let detail = "an API key is never sent over plain http to another machine; use https";
        return Err(ModelFailure::new(FailureKind::Auth, detail));
    }
    let mut value = HeaderValue::try_from(format!("{prefix}{}", key.expose())).map_err(|_| {
        ModelFailure::new(FailureKind::Auth, "the API key contains invalid characters")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

impl ModelBackend for HttpBackend {
    fn answer<'a>(&'a self, call: ModelAttempt<'a>) -> AnswerFuture<'a> {
        Box::pin(self.try_once(call))
    }
}

async fn read_body(mut response: Response, longest: usize) -> Result<Vec<u8>, ModelFailure> {
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| ModelFailure::new(FailureKind::Truncated, causes(&error)))?
    {
        if body.len() + piece.len() > longest {
            let detail = format!("the reply is larger than {} KiB", longest >> 10);
            return Err(ModelFailure::new(FailureKind::Malformed, detail));
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

/// The provider requested a longer pause than a call waits for.
fn stopped(pause: Duration) -> ModelFailure {
    let detail = format!("the provider requested a pause; {} seconds are left", pause.as_secs());
    let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
    ModelFailure::new(FailureKind::RateLimited, detail).with_retry_after_ms(Some(pause_ms))
}

fn unbilled(failure: ModelFailure) -> FailedAttempt {
    FailedAttempt { failure, bill: BillingRisk::None }
}
