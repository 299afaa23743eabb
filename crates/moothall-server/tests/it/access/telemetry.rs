//! Metrics and spans as their consumers receive them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use moothall_server::{AccessMode, OtlpProtocol, OtlpSettings, SpanLayer, exporter};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt as _;

use super::place::Place;

type Got = Arc<Mutex<Vec<Value>>>;

/// Starts a collector on a free port.
async fn collector() -> (String, Got) {
    let got = Got::default();
    let app = Router::new()
        .route(
            "/v1/traces",
            post(async |State(got): State<Got>, body: String| {
                let body: Value = serde_json::from_str(&body).unwrap();
                let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
                got.lock().unwrap().extend(spans.iter().cloned());
                "{}"
            }),
        )
        .with_state(got.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, got)
}

#[tokio::test]
async fn model_calls_are_in_the_trace_of_their_request_without_any_text() {
    let (address, got) = collector().await;
    let settings = OtlpSettings {
        url: format!("{address}/v1/traces"),
        protocol: OtlpProtocol::Json,
        headers: reqwest::header::HeaderMap::new(),
        resource: Vec::new(),
        timeout: std::time::Duration::from_secs(10),
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (spans, exporter) = exporter(settings, reqwest::Client::new());
    // The test runs on one thread, so this subscriber receives all spans.
    let _listening = tracing::subscriber::set_default(tracing_subscriber::registry().with(spans));
    let place = Place::new(AccessMode::Everyone).await;
    let closing = CancellationToken::new();
    let exporting = tokio::spawn(exporter.run(closing.clone()));
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let answered = place
        .post("/api/runs")
        .header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"))
        .header("authorization-hint", "moot_secret")
        .body(r#"{"workflow":"consult","ticker":"HLXI","brief":"a secret brief"}"#)
        .send()
        .await
        .unwrap();
    assert_eq!(answered.status(), 409);
    closing.cancel();
    exporting.await.unwrap();

    let got = got.lock().unwrap();
    let find = |name: &str| got.iter().find(|span| span["name"] == name).unwrap();
    let (request, run, call) = (find("http_request"), find("run"), find("chat m1"));
    for span in [request, run, call] {
        assert_eq!(span["traceId"], trace, "{span}");
    }
    assert_eq!(request["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(run["parentSpanId"], request["spanId"]);
    assert_eq!(call["parentSpanId"], run["spanId"]);
    let value = |span: &Value, key: &str| {
        let attributes = span["attributes"].as_array().unwrap();
        attributes.iter().find(|one| one["key"] == key).map(|one| one["value"].clone())
    };
    let text = |text: &str| Some(serde_json::json!({ "stringValue": text }));
    let number = |number: &str| Some(serde_json::json!({ "intValue": number }));
    assert_eq!(value(request, "http.route"), text("/api/runs"));
    assert_eq!(value(request, "http.response.status_code"), number("409"));
    assert_eq!(value(call, "gen_ai.request.model"), text("m1"));
    assert_eq!(value(call, "gen_ai.provider.name"), text("lab"));
    assert_eq!(value(call, "gen_ai.operation.name"), text("chat"));
    assert_eq!(value(call, "gen_ai.usage.input_tokens"), number("7"));
    assert!(!serde_json::to_string(&*got).unwrap().contains("secret"), "{got:?}");
}

#[tokio::test]
async fn metrics_are_labelled_by_route_and_model_and_never_by_user_input() {
    let place = Place::new(AccessMode::Everyone).await;
    let spans = SpanLayer::counting(Arc::clone(&place.metrics));
    let _listening = tracing::subscriber::set_default(tracing_subscriber::registry().with(spans));
    for path in ["/api/runs", "/api/runs/x0123", "/api/runs/x4567", "/made/up", "/made/up/too"] {
        place.get(path).send().await.unwrap();
    }
    place.post("/api/runs").body(r#"{"workflow":"consult","ticker":"HLXI"}"#).send().await.unwrap();
    let answer = place.get("/metrics").send().await.unwrap();
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let page = answer.text().await.unwrap();
    for line in [
        r#"moothall_http_requests_total{route="/api/runs",method="GET",status="2xx"} 1"#,
        r#"moothall_http_requests_total{route="/api/runs/{run}",method="GET",status="4xx"} 2"#,
        r#"moothall_model_calls_total{model="lab/m1",outcome="answered"} 1"#,
        r#"moothall_model_tokens_total{model="lab/m1"} 12"#,
        r#"moothall_runs{state="running"} 2"#,
        r#"moothall_http_request_duration_seconds_count{route="/api/runs/{run}"} 2"#,
    ] {
        assert!(page.lines().any(|there| there == line), "{line} is not in\n{page}");
    }
    for made_up in ["x0123", "x4567", "made/up"] {
        assert!(!page.contains(made_up), "{page}");
    }
    assert!(page.ends_with("# EOF\n"), "{page}");
}
