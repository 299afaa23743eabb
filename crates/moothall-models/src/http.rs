//! The HTTP backend of model providers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moothall_core::model::{FailureKind, ModelFailure, ModelRequest};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, ClientBuilder, Response, Url};

use crate::backend::{
    AnswerFuture, BackendReply, BillingRisk, FailedAttempt, ModelAttempt, ModelBackend,
    ReplyListener,
};
use crate::catalog::{ConnectionOptions, ModelProvider};
use crate::connection::{causes, is_loopback};
use crate::http_client::build_http_client;
use crate::key_supply::{ProviderSecrets, SentSecrets};
use crate::model_limiters::ModelLimiters;
use crate::provider_connections::ProviderConnections;
use crate::request_target::{RequestHeaders, RequestTarget};
use crate::shared_limiter::{MinuteQuota, Pass, SharedLimiter};
use crate::wire::{self, EncodedRequest, MAX_BODY_BYTES, RawReply, ReplyDelivery, StreamDecoder};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Size limit of an error response.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Size limit of a file with certificates. Those of a whole system have about 250 KB.
const MAX_CA_BYTES: u64 = 4 << 20;

/// HTTP clients shared by all providers. Built on first use, because loading the system's
/// certificates takes milliseconds that a run without a provider should not spend.
#[derive(Debug, Default)]
pub(crate) struct HttpClients {
    direct: OnceLock<Result<Client, String>>,
    by_proxy: OnceLock<Result<Client, String>>,
    /// Clients with own certificates or an own proxy.
    special: Mutex<BTreeMap<SpecialClient, Client>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SpecialClient {
    ca_file: Option<PathBuf>,
    proxy: Option<String>,
    is_loopback: bool,
}

impl HttpClients {
    pub(crate) fn for_provider(
        &self,
        options: &ConnectionOptions,
        url: &Url,
    ) -> Result<Client, ModelFailure> {
        if options.ca_file.is_none() && options.proxy.is_none() {
            return self.for_address(url).cloned();
        }
        let special = SpecialClient {
            ca_file: options.ca_file.clone(),
            proxy: options.proxy.clone(),
            is_loopback: is_loopback(url),
        };
        let mut clients = self.special.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&special) {
            return Ok(client.clone());
        }
        let client = build_special(&special)
            .map_err(|detail| ModelFailure::new(FailureKind::BadRequest, detail))?;
        clients.insert(special, client.clone());
        Ok(client)
    }

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
        let builder = with_defaults(builder);
        match proxy {
            ProxyMode::Never => builder.no_proxy(),
            ProxyMode::AsSystem => builder,
        }
    })
}

fn build_special(special: &SpecialClient) -> Result<Client, String> {
    let proxy = special.proxy.as_ref().map(reqwest::Proxy::all).transpose();
    let proxy = proxy.map_err(|_| "invalid `proxy`".to_owned())?;
    let certificates = special.ca_file.as_deref().map(read_certificates).transpose()?;
    let client = build_http_client(|builder| {
        let mut builder = with_defaults(builder);
        if let Some(proxy) = &proxy {
            // Without the variables that exclude hosts from the system's proxy.
            builder = builder.no_proxy().proxy(proxy.clone());
        } else if special.is_loopback {
            builder = builder.no_proxy();
        }
        match &certificates {
            Some(certificates) => builder.tls_certs_merge(certificates.clone()),
            None => builder,
        }
    });
    client.map_err(|error| format!("cannot create an HTTP client: {}", causes(&error)))
}

fn read_certificates(path: &Path) -> Result<Vec<reqwest::Certificate>, String> {
    let problem = |cause: &str| format!("cannot use `ca_file` {}: {cause}", path.display());
    let size = fs_err::metadata(path).map_err(|error| problem(&error.kind().to_string()))?.len();
    if size > MAX_CA_BYTES {
        return Err(problem("it is too large"));
    }
    let pem = fs_err::read(path).map_err(|error| problem(&error.kind().to_string()))?;
    match reqwest::Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(problem("it contains no certificate in PEM format")),
    }
}

fn with_defaults(builder: ClientBuilder) -> ClientBuilder {
    builder
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(Duration::from_secs(60))
        .user_agent(concat!("moothall/", env!("CARGO_PKG_VERSION")))
        // A redirect would send the API key to an address that was not configured.
        .redirect(reqwest::redirect::Policy::none())
}

/// A provider reached over HTTP.
#[derive(Debug)]
pub(crate) struct HttpBackend {
    provider: ModelProvider,
    clients: Arc<HttpClients>,
    limiters: Arc<ModelLimiters>,
    shared_limiter: Option<Arc<dyn SharedLimiter>>,
    /// Where calls are sent, or the reason no call can be made.
    target: Result<RequestTarget, ModelFailure>,
    /// Learned from its answers, so that later calls need one request each.
    refuses_streams: AtomicBool,
}

/// What an attempt sends, and where.
struct OutgoingCall<'a> {
    target: &'a RequestTarget,
    client: Client,
    timeout: Duration,
}

impl HttpBackend {
    pub(crate) fn new(
        provider: ModelProvider,
        secrets: ProviderSecrets,
        connections: &ProviderConnections,
        shared_limiter: Option<Arc<dyn SharedLimiter>>,
    ) -> Self {
        let (clients, limiters) = (connections.clients(), connections.limiters(&provider));
        let path = wire::endpoint(provider.wire).path;
        let target = RequestTarget::new(&provider, path, secrets);
        let refuses_streams = AtomicBool::new(false);
        Self { provider, clients, limiters, shared_limiter, target, refuses_streams }
    }

    async fn try_once(&self, call: ModelAttempt<'_>) -> Result<BackendReply, FailedAttempt> {
        let limiter = self.limiters.of(call.request.model.name());
        let request = call.request;
        let turn = async {
            let tokens = || tokens_of(request);
            let permit = limiter.enter(call.reservation.run(), tokens).await;
            let permit = permit.map_err(|pause| unbilled(stopped(pause)))?;
            Ok::<_, FailedAttempt>((permit, self.enter_shared_limiter(request).await))
        };
        let (permit, _shared_permit) = tokio::select! {
            biased;
            turn = turn => turn?,
            // The provider may have asked for minutes, and nothing has been sent yet.
            () = call.reservation.run_pauses() => {
                let detail = "the run paused before the call was sent".to_owned();
                return Err(unbilled(ModelFailure::new(FailureKind::RateLimited, detail)));
            }
        };
        // Encode only after the permit, so that thousands of waiting calls hold no bodies, and
        // before the timeout starts, because the first call builds the HTTP client, which takes
        // longer than some timeouts.
        let mut listener = call.listener;
        let refuses_streams = self.refuses_streams.load(Ordering::Relaxed);
        let delivery = match listener {
            Some(_) if !refuses_streams => ReplyDelivery::Streamed,
            _ => ReplyDelivery::Whole,
        };
        let encode =
            |delivery| wire::encode(&self.provider, call.card, request, delivery).map_err(unbilled);
        let EncodedRequest { body, window } = encode(delivery)?;
        let timeout = request.timeout_ms.map_or(self.provider.timeout, Duration::from_millis);
        let outgoing = self.outgoing(timeout).map_err(unbilled)?;
        let headers = outgoing.target.headers("POST", &body).await.map_err(unbilled)?;
        let key = headers.key.clone();
        call.reservation.mark_sent();
        let mut outcome =
            self.exchange_in_time(&outgoing, headers, body, listener.as_deref_mut()).await;
        // Access tokens expire. A rejected request is not billed, so a second one with a new key
        // belongs to the same attempt.
        if let (Some(key), true) = (&key, is_key_rejected(&outcome)) {
            let body = encode(delivery)?.body;
            if let Some(headers) = outgoing.target.headers_after(key, "POST", &body).await {
                let listener = listener.as_deref_mut();
                outcome = self.exchange_in_time(&outgoing, headers, body, listener).await;
            }
        }
        // Some servers refuse streams, or the option that asks for the usage of one.
        if delivery == ReplyDelivery::Streamed && is_stream_refused(&outcome) {
            let body = encode(ReplyDelivery::Whole)?.body;
            let headers = outgoing.target.headers("POST", &body).await.map_err(unbilled)?;
            outcome = self.exchange_in_time(&outgoing, headers, body, listener).await;
            if outcome.is_ok() {
                self.refuses_streams.store(true, Ordering::Relaxed);
            }
        }
        match &outcome {
            Ok(_) => permit.succeeded(),
            Err(failed) if failed.failure.kind.is_throttling() => {
                permit.slow_down(failed.failure.retry_after_ms.map(Duration::from_millis));
            }
            Err(_) => drop(permit),
        }
        outcome.map(|answer| BackendReply { answer, window })
    }

    async fn enter_shared_limiter(&self, request: &ModelRequest) -> Option<Pass> {
        let shared_limiter = self.shared_limiter.as_ref()?;
        let (model, limits) = (request.model.to_string(), self.provider.limits);
        let pass = shared_limiter.enter(&model, limits.concurrent.get()).await;
        if let Some(limit) = limits.requests_per_minute {
            let name = format!("{model} requests");
            shared_limiter.wait_for_quota(&name, 1, MinuteQuota::requests(limit)).await;
        }
        if let Some(limit) = limits.tokens_per_minute {
            let (name, quota) = (format!("{model} tokens"), MinuteQuota::tokens(limit));
            shared_limiter.wait_for_quota(&name, tokens_of(request), quota).await;
        }
        Some(pass)
    }

    fn outgoing(&self, timeout: Duration) -> Result<OutgoingCall<'_>, ModelFailure> {
        let target = self.target.as_ref().map_err(Clone::clone)?;
        let client = self.clients.for_provider(&self.provider.connection, &target.url)?;
        Ok(OutgoingCall { target, client, timeout })
    }

    async fn exchange_in_time(
        &self,
        outgoing: &OutgoingCall<'_>,
        headers: RequestHeaders,
        body: Vec<u8>,
        listener: Option<&mut (dyn ReplyListener + '_)>,
    ) -> Result<RawReply, FailedAttempt> {
        let timeout = outgoing.timeout;
        let secrets = headers.secrets.clone();
        let exchange = self.exchange(outgoing, headers, body, listener);
        let outcome = tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| {
            let detail = format!("no complete reply within {timeout:?}");
            Err(FailedAttempt {
                failure: ModelFailure::new(FailureKind::TimedOut, detail),
                bill: BillingRisk::Possible,
            })
        });
        outcome.map_err(|mut failed| {
            failed.failure.detail = secrets.remove_from(&failed.failure.detail);
            failed
        })
    }

    async fn exchange(
        &self,
        outgoing: &OutgoingCall<'_>,
        headers: RequestHeaders,
        body: Vec<u8>,
        listener: Option<&mut (dyn ReplyListener + '_)>,
    ) -> Result<RawReply, FailedAttempt> {
        let RequestHeaders { headers, secrets, .. } = headers;
        let request = outgoing.client.post(outgoing.target.url.clone()).headers(headers).body(body);
        let response = request.send().await.map_err(|error| {
            let bill = if error.is_connect() { BillingRisk::None } else { BillingRisk::Possible };
            FailedAttempt {
                failure: ModelFailure::new(FailureKind::Transport, causes(&error)),
                bill,
            }
        })?;
        let listener = match listener {
            Some(listener) if is_stream(&response) => {
                let answer = self.read_stream(response, &secrets, listener).await?;
                return Ok(without_secrets(answer, &secrets));
            }
            other => other,
        };
        let answer = without_secrets(self.read_whole(response).await?, &secrets);
        if let Some(listener) = listener {
            listener.text(&answer.text);
        }
        Ok(answer)
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
        secrets: &SentSecrets,
        listener: &mut dyn ReplyListener,
    ) -> Result<RawReply, FailedAttempt> {
        let possible =
            |failure: ModelFailure| FailedAttempt { failure, bill: BillingRisk::Possible };
        let mut decoder = StreamDecoder::new(self.provider.wire);
        let mut redactor = KeyRedactor { secrets, pending: String::new(), listener };
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
}

/// Whether the answer to a request for a stream is one: refusals and answers of servers that cannot
/// stream are single JSON documents.
fn is_stream(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    response.status().is_success() && !media_type.trim().eq_ignore_ascii_case("application/json")
}

/// What a call counts against a limit of tokens.
fn tokens_of(request: &ModelRequest) -> u64 {
    request.prompt_tokens_expected() + u64::from(request.max_tokens)
}

/// Whether the provider rejected the key, which may have expired.
fn is_key_rejected(outcome: &Result<RawReply, FailedAttempt>) -> bool {
    outcome.as_ref().is_err_and(|failed| {
        failed.failure.kind == FailureKind::Auth && matches!(failed.failure.status, Some(401 | 403))
    })
}

/// Whether the provider rejected the request because of its delivery, not its content.
fn is_stream_refused(outcome: &Result<RawReply, FailedAttempt>) -> bool {
    outcome.as_ref().is_err_and(|FailedAttempt { failure, .. }| {
        failure.kind == FailureKind::BadRequest
            && matches!(failure.status, Some(400 | 422))
            && failure.detail.contains("stream")
    })
}

/// Removes secrets that a server echoes, because replies are stored and displayed.
fn without_secrets(mut answer: RawReply, secrets: &SentSecrets) -> RawReply {
    for text in std::iter::once(&mut answer.text).chain(&mut answer.model) {
        if secrets.are_in(text) {
            *text = secrets.remove_from(text);
        }
    }
    answer
}

/// Forwards text with secrets removed, even if one is split across chunks.
struct KeyRedactor<'a> {
    secrets: &'a SentSecrets,
    pending: String,
    listener: &'a mut dyn ReplyListener,
}

impl KeyRedactor<'_> {
    fn text(&mut self, text: &str) {
        if self.secrets.is_empty() {
            return self.listener.text(text);
        }
        self.pending.push_str(text);
        let harmless = self.secrets.take_harmless(&mut self.pending);
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

impl ModelBackend for HttpBackend {
    fn answer<'a>(&'a self, call: ModelAttempt<'a>) -> AnswerFuture<'a> {
        Box::pin(self.try_once(call))
    }
}

pub(crate) async fn read_body(
    mut response: Response,
    longest: usize,
) -> Result<Vec<u8>, ModelFailure> {
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
