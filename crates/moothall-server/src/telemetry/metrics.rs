//! Prometheus metrics. All labels have a bounded number of values, so clients cannot inflate them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use moothall_store::RunState;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tracing::Instrument as _;

use super::spans::REQUEST;
use crate::{ApiProblem, AppState};

/// Model names come from callers; beyond this many distinct names they are counted as `other`.
const MAX_MODELS: usize = 50;
const OTHER_LABEL: &str = "other";

/// Upper bounds of the histogram buckets, in seconds.
const BUCKETS: [f64; 9] = [0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: String,
    status: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelCallLabels {
    model: String,
    outcome: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    model: String,
}

type Latencies = Family<RouteLabels, Histogram, fn() -> Histogram>;

/// Metrics of a server.
#[derive(Debug)]
pub struct ServerMetrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latencies: Latencies,
    model_calls: Family<ModelCallLabels, Counter>,
    model_tokens: Family<ModelLabels, Counter>,
    model_cost: Family<ModelLabels, Counter>,
    models: Mutex<BTreeSet<String>>,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("moothall");
        let requests = Family::default();
        let latencies: Latencies = Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let model_calls = Family::default();
        let model_tokens = Family::default();
        let model_cost = Family::default();
        registry.register("http_requests", "Completed requests", Family::clone(&requests));
        registry.register_with_unit(
            "http_request_duration",
            "Time until a response starts",
            Unit::Seconds,
            latencies.clone(),
        );
        registry.register("model_calls", "Model calls", Family::clone(&model_calls));
        registry.register("model_tokens", "Prompt and output tokens", Family::clone(&model_tokens));
        registry.register(
            "model_cost_micro_usd",
            "Known cost of model calls, in millionths of a dollar",
            Family::clone(&model_cost),
        );
        let models = Mutex::default();
        Self { registry, requests, latencies, model_calls, model_tokens, model_cost, models }
    }
}

impl ServerMetrics {
    /// Counts a model call.
    pub(crate) fn model_call(&self, model: &str, failed: bool, tokens: u64, micro_usd: u64) {
        let model = self.bounded(model);
        let outcome = if failed { "failed" } else { "answered" }.to_owned();
        self.model_calls.get_or_create(&ModelCallLabels { model: model.clone(), outcome }).inc();
        let of_model = ModelLabels { model };
        self.model_tokens.get_or_create(&of_model).inc_by(tokens);
        self.model_cost.get_or_create(&of_model).inc_by(micro_usd);
    }

    fn bounded(&self, model: &str) -> String {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.contains(model) {
            return model.to_owned();
        }
        if models.len() >= MAX_MODELS {
            return OTHER_LABEL.to_owned();
        }
        models.insert(model.to_owned());
        model.to_owned()
    }

    fn render(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode_registry(&mut page, &self.registry)?;
        Ok(page)
    }
}

/// Middleware that counts a request and opens its span. The label is the route template; unknown
/// paths are counted as `other`.
pub(crate) async fn count(
    State(metrics): State<Arc<ServerMetrics>>,
    request: Request,
    next: Next,
) -> Response {
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or(OTHER_LABEL, MatchedPath::as_str).to_owned();
    let method = match *request.method() {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        _ => OTHER_LABEL,
    };
    let from = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    let span = tracing::info_span!(
        target: "moothall::server",
        REQUEST,
        method,
        route,
        traceparent = from.unwrap_or_default(),
        status = tracing::field::Empty,
    );
    let began = Instant::now();
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    span.record("status", status);
    let class = format!("{}xx", status / 100);
    let answered = RequestLabels { route: route.clone(), method: method.to_owned(), status: class };
    metrics.requests.get_or_create(&answered).inc();
    metrics.latencies.get_or_create(&RouteLabels { route }).observe(began.elapsed().as_secs_f64());
    response
}

/// `/metrics`: the metrics, and the number of runs per state.
pub(crate) async fn show(State(app): State<AppState>) -> Result<Response, ApiProblem> {
    let mut page = app.metrics.render().map_err(|error| ApiProblem::internal(&error))?;
    page.push_str("# HELP moothall_runs Runs that have not ended, by state.\n");
    page.push_str("# TYPE moothall_runs gauge\n");
    for state in [RunState::Running, RunState::Paused] {
        let count = app.store.count_runs(state).await?;
        // Writing to a String cannot fail.
        let _ = writeln!(page, "moothall_runs{{state=\"{state}\"}} {count}");
    }
    page.push_str("# EOF\n");
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, page).into_response())
}
