//! Exports spans to a collector: OTLP over HTTP.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::SpanLayer;
use super::encode::{FinishedSpan, json_body, protobuf_body};

/// Maximum spans that wait to be sent; more are dropped.
const MAX_QUEUED_SPANS: usize = 16_384;

/// Maximum spans per request.
const MAX_SPANS_PER_REQUEST: usize = 512;

/// How long the first span of a batch waits for others.
const BATCH_WINDOW: Duration = Duration::from_millis(500);

/// Pauses before a failed request is sent again; then its spans are dropped.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// Where and how spans are sent.
#[derive(Clone)]
pub struct OtlpSettings {
    /// The complete URL, such as `http://127.0.0.1:4318/v1/traces`.
    pub url: String,
    /// The encoding.
    pub protocol: OtlpProtocol,
    /// Headers of every request, such as an authorization.
    pub headers: HeaderMap,
    /// Attributes of this process, such as `service.name`.
    pub resource: Vec<(String, String)>,
    /// Timeout of a request.
    pub timeout: Duration,
}

impl fmt::Debug for OtlpSettings {
    // Headers and URL may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpSettings").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

/// The encoding of requests to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// `http/protobuf`.
    Protobuf,
    /// `http/json`.
    Json,
}

/// Sends spans to a collector until it is stopped.
#[derive(Debug)]
pub struct SpanExporter {
    receiver: mpsc::Receiver<FinishedSpan>,
    client: reqwest::Client,
    settings: OtlpSettings,
    lost: Arc<AtomicU64>,
}

/// Creates a layer that collects spans and an exporter that sends them with this client, which
/// should not follow redirects.
pub fn exporter(settings: OtlpSettings, client: reqwest::Client) -> (SpanLayer, SpanExporter) {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_SPANS);
    let lost = Arc::<AtomicU64>::default();
    let layer = SpanLayer::exporting(sender, Arc::clone(&lost));
    (layer, SpanExporter { receiver, client, settings, lost })
}

/// Why a request to the collector failed.
struct ExportFailure {
    detail: String,
    is_retryable: bool,
}

impl SpanExporter {
    /// Sends spans as they arrive; after `closing` is cancelled, sends the remaining ones, reports
    /// how many were lost and returns.
    pub async fn run(mut self, closing: CancellationToken) {
        loop {
            let mut spans = Vec::new();
            let ends = tokio::select! {
                got = self.receiver.recv_many(&mut spans, MAX_SPANS_PER_REQUEST) => got == 0,
                () = closing.cancelled() => true,
            };
            if !ends && spans.len() < MAX_SPANS_PER_REQUEST {
                tokio::select! {
                    () = tokio::time::sleep(BATCH_WINDOW) => {}
                    () = closing.cancelled() => {}
                }
            }
            while spans.len() < MAX_SPANS_PER_REQUEST
                && let Ok(span) = self.receiver.try_recv()
            {
                spans.push(span);
            }
            let is_full = spans.len() == MAX_SPANS_PER_REQUEST;
            let is_sent = spans.is_empty() || self.send(&spans, &closing).await;
            // Do not wait for a dead collector once for every remaining batch.
            if ends && (!is_full || !is_sent) {
                break;
            }
        }
        let rest = u64::try_from(self.receiver.len()).unwrap_or_default();
        let spans = self.lost.load(Ordering::Relaxed).saturating_add(rest);
        if spans > 0 {
            tracing::warn!(target: "moothall::telemetry", spans, "some spans were not exported");
        }
    }

    /// Sends one batch. If the collector remains unreachable, the spans are dropped.
    async fn send(&self, spans: &[FinishedSpan], closing: &CancellationToken) -> bool {
        let resource = &self.settings.resource;
        let (kind, body) = match self.settings.protocol {
            OtlpProtocol::Protobuf => ("application/x-protobuf", protobuf_body(resource, spans)),
            OtlpProtocol::Json => ("application/json", json_body(resource, spans)),
        };
        let mut delays = RETRY_DELAYS.iter();
        loop {
            let Err(failure) = self.post(kind, body.clone()).await else { return true };
            let (error, count) = (failure.detail, spans.len());
            tracing::debug!(target: "moothall::telemetry", error, spans = count, "could not export spans");
            let delay = delays.next().filter(|_| failure.is_retryable && !closing.is_cancelled());
            let Some(delay) = delay else {
                let count = u64::try_from(count).unwrap_or_default();
                self.lost.fetch_add(count, Ordering::Relaxed);
                return false;
            };
            tokio::select! {
                () = tokio::time::sleep(*delay) => {}
                // One last attempt.
                () = closing.cancelled() => {}
            }
        }
    }

    async fn post(&self, kind: &str, body: Vec<u8>) -> Result<(), ExportFailure> {
        let request = self
            .client
            .post(&self.settings.url)
            .headers(self.settings.headers.clone())
            .header(CONTENT_TYPE, kind)
            .body(body);
        let response = request.send().await.map_err(|error| ExportFailure {
            detail: error.without_url().to_string(),
            is_retryable: true,
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let is_retryable = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Err(ExportFailure { detail: format!("HTTP status {}", status.as_u16()), is_retryable })
    }
}
