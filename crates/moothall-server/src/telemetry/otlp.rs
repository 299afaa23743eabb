//! Exports spans to a collector: OTLP over HTTP in JSON.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::SpanLayer;

/// Maximum spans that wait to be sent; more are dropped.
const MAX_QUEUED_SPANS: usize = 4_096;

/// Maximum spans per request.
const MAX_SPANS_PER_REQUEST: usize = 512;

/// How long the first span of a batch waits for others.
const BATCH_WINDOW: Duration = Duration::from_millis(500);

/// Timeout of a request to the collector.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends spans to a collector until it is stopped.
#[derive(Debug)]
pub struct SpanExporter {
    receiver: mpsc::Receiver<Value>,
    client: reqwest::Client,
    address: String,
}

/// Creates a layer that collects spans and an exporter that sends them to `endpoint`, such as
/// `http://127.0.0.1:4318`.
///
/// # Errors
///
/// Fails if the HTTP client cannot be created.
pub fn exporter(endpoint: &str) -> Result<(SpanLayer, SpanExporter), reqwest::Error> {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_SPANS);
    // Fails if the process already has a provider; any provider is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(EXPORT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let address = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    Ok((SpanLayer::new(sender), SpanExporter { receiver, client, address }))
}

impl SpanExporter {
    /// Sends spans as they arrive; after `closing` is cancelled, sends the remaining ones and
    /// returns.
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
            if !spans.is_empty() {
                self.send(spans).await;
            }
            if ends && !is_full {
                return;
            }
        }
    }

    /// If the collector is unreachable, the spans are dropped.
    async fn send(&self, spans: Vec<Value>) {
        let count = spans.len();
        let sent = self
            .client
            .post(&self.address)
            .header("content-type", "application/json")
            .body(envelope(spans).to_string())
            .send()
            .await
            .and_then(reqwest::Response::error_for_status);
        if let Err(error) = sent {
            let error = error.without_url();
            tracing::warn!(target: "moothall::server", %error, spans = count, "could not export spans");
        }
    }
}

fn envelope(spans: Vec<Value>) -> Value {
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    json!({
        "resourceSpans": [{
            "resource": {
                "attributes": [
                    text("service.name", "moothall"),
                    text("service.version", env!("CARGO_PKG_VERSION")),
                ]
            },
            "scopeSpans": [{ "scope": { "name": "moothall" }, "spans": spans }],
        }]
    })
}
