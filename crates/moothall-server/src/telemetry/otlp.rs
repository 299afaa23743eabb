//! Spans on their way to a collector: OTLP over HTTP, in its JSON form.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Spans;

/// Spans that wait to be sent.
const MOST_WAITING: usize = 4_096;

/// Spans that are sent at once.
const MOST_AT_ONCE: usize = 512;

/// How long the first of them waits for others.
const GATHER: Duration = Duration::from_millis(500);

/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends spans to a collector until it is told to end.
#[derive(Debug)]
pub struct Exporter {
    receiver: mpsc::Receiver<Value>,
    client: reqwest::Client,
    address: String,
}

/// A layer that hears of spans, and the exporter that sends them to `endpoint`, such as
/// `http://127.0.0.1:4318`.
///
/// Errors: those of the HTTP client.
pub fn exporter(endpoint: &str) -> Result<(Spans, Exporter), reqwest::Error> {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    // The first caller in the process decides; any provider will do, so a refusal is not an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let address = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    Ok((Spans::new(sender), Exporter { receiver, client, address }))
}

impl Exporter {
    /// Sends what comes, and after `closing` what is there.
    pub async fn run(mut self, closing: CancellationToken) {
        loop {
            let mut spans = Vec::new();
            let ends = tokio::select! {
                got = self.receiver.recv_many(&mut spans, MOST_AT_ONCE) => got == 0,
                () = closing.cancelled() => true,
            };
            if !ends && spans.len() < MOST_AT_ONCE {
                tokio::select! {
                    () = tokio::time::sleep(GATHER) => {}
                    () = closing.cancelled() => {}
                }
            }
            while spans.len() < MOST_AT_ONCE
                && let Ok(span) = self.receiver.try_recv()
            {
                spans.push(span);
            }
            let is_full = spans.len() == MOST_AT_ONCE;
            if !spans.is_empty() {
                self.send(spans).await;
            }
            if ends && !is_full {
                return;
            }
        }
    }

    /// A collector that is not there costs spans and nothing else.
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
            tracing::warn!(target: "moothall::server", %error, spans = count, "spans were lost");
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
