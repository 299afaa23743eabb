//! Which address is what, and what all of them have in common.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use moothall_core::ErrorCode;
use moothall_core::access::Scope;
use moothall_store::{RunFilter, Teams};
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::timeout::TimeoutLayer;

use crate::access::{self, session, tokens};
use crate::caller::Needs;
use crate::connections::{ConnectionLimits, serve_connections};
use crate::{
    App, Guard, Problem, assets, caller, company, control, drafts, guard, openapi, pages, reading,
    runs, stream, telemetry,
};

/// What one request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request.
    pub body_bytes: usize,
    /// Time until an answer begins. Streams go on after that.
    pub answer_within: Duration,
    /// Limits on the connections that requests come through.
    pub connections: ConnectionLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            answer_within: Duration::from_secs(60),
            connections: ConnectionLimits::default(),
        }
    }
}

/// An address of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// `GET` or `POST`.
    pub method: Method,
    /// With names in braces for what differs.
    pub path: &'static str,
    /// What whoever calls it must be allowed to do.
    pub needs: Needs,
}

/// All addresses of the API. The router is made of this and of nothing else.
pub fn routes() -> Vec<Route> {
    table().into_iter().map(|(route, _)| route).collect()
}

fn table() -> Vec<(Route, MethodRouter<App>)> {
    let read = Needs::Scope(Scope::Read);
    let of_run = Needs::ScopeOnRun;
    let of_server = Needs::ScopeOnServer;
    let look = |path, needs, handler| (Route { method: Method::GET, path, needs }, handler);
    let act = |path, needs, handler| (Route { method: Method::POST, path, needs }, handler);
    let thread = "/api/runs/{run}/moves/{move}/threads/{thread}";
    let revoke = "/api/tokens/{token}/revoke";
    let document = "/api/runs/{run}/artifacts/{name}";
    vec![
        look("/healthz", Needs::Nothing, get(async || "ok")),
        look("/readyz", Needs::Nothing, get(ready)),
        look("/metrics", of_server(Scope::Admin), get(telemetry::show)),
        look("/login", Needs::Nothing, get(session::open)),
        act("/login", Needs::Nothing, post(session::enter)),
        look("/api/session", read, get(session::show)),
        act("/api/logout", read, post(session::leave)),
        look("/api/tokens", Needs::Scope(Scope::Admin), get(tokens::list)),
        act("/api/tokens", Needs::Scope(Scope::Admin), post(tokens::make)),
        act(revoke, Needs::ScopeOnToken(Scope::Admin), post(tokens::revoke)),
        look("/api/runs", read, get(runs::list)),
        act("/api/runs", Needs::Scope(Scope::Run), post(runs::start)),
        look("/api/runs/{run}", of_run(Scope::Read), get(runs::snapshot)),
        look("/api/runs/{run}/events", of_run(Scope::Read), get(stream::events)),
        look("/api/runs/{run}/events.json", of_run(Scope::Read), get(pages::events_json)),
        look(thread, of_run(Scope::Read), get(reading::thread)),
        look("/api/runs/{run}/artifacts", of_run(Scope::Read), get(reading::artifacts)),
        look(document, of_run(Scope::Read), get(reading::artifact)),
        look("/api/runs/{run}/facts/{id}", of_run(Scope::Read), get(reading::fact)),
        look("/api/runs/{run}/{export}", of_run(Scope::Read), get(reading::export)),
        act("/api/runs/{run}/cancel", of_run(Scope::Run), post(control::cancel)),
        act("/api/runs/{run}/pause", of_run(Scope::Run), post(control::pause)),
        act("/api/runs/{run}/resume", of_run(Scope::Run), post(control::resume)),
        act("/api/runs/{run}/approve", of_run(Scope::Review), post(control::approve)),
        look("/api/runs/{run}/moves", of_run(Scope::Read), get(control::moves)),
        act("/api/runs/{run}/moves", of_run(Scope::Review), post(control::change_moves)),
        act("/api/estimate", read, post(company::estimate)),
        act("/api/check", read, post(company::check)),
        look("/api/facts/{ticker}", read, get(company::facts)),
        look("/api/tickers", read, get(company::tickers)),
        look("/api/committees", read, get(company::committees)),
        look("/api/settings", read, get(company::settings)),
        look("/api/doctor", of_server(Scope::Admin), get(company::doctor)),
        look("/api/drafts", of_server(Scope::Read), get(drafts::list)),
        look("/api/drafts/events", of_server(Scope::Read), get(drafts::events)),
        look("/api/drafts/{draft}", of_server(Scope::Read), get(drafts::show)),
        act("/api/drafts/{draft}/approve", of_server(Scope::Review), post(drafts::approve)),
        act("/api/drafts/{draft}/reject", of_server(Scope::Review), post(drafts::reject)),
        act("/api/drafts/{draft}/send-back", of_server(Scope::Review), post(drafts::send_back)),
        look("/api/audit", of_server(Scope::Read), get(drafts::audit)),
        look("/api/openapi.json", Needs::Nothing, get(openapi::json)),
        look("/api/docs", Needs::Nothing, get(openapi::page)),
    ]
}

/// All addresses, behind a guard.
pub fn router(app: App, guard: Guard, limits: Limits) -> Router {
    let api = table().into_iter().fold(Router::new(), |router, (route, handler)| {
        // Before anything of the request is read; what it is about is looked at where it is found
        // (`App::find`).
        let handler = handler.layer(from_fn_with_state(route.needs, caller::require));
        router.route(route.path, handler)
    });
    // Who calls is found out here, for everything above.
    let api = api.layer(from_fn_with_state(Arc::clone(&app.access), access::identify));
    let metrics = Arc::clone(&app.metrics);
    let guard = Arc::new(guard);
    Router::new()
        .merge(api)
        .fallback(assets::serve)
        .method_not_allowed_fallback(async || {
            let words = "this address does not take that method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::MethodNotAllowed, words)
        })
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, limits.answer_within))
        // Streams are left alone: whoever compresses holds frames back.
        .layer(CompressionLayer::new())
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(Arc::clone(&guard), guard::check))
        .layer(from_fn_with_state(guard, guard::headers))
        .layer(from_fn_with_state(metrics, telemetry::count))
        .with_state(app)
}

/// Serves until `closing`; then streams say goodbye, and answers under way are given.
///
/// Errors: those of the socket.
pub async fn serve(
    listener: TcpListener,
    app: App,
    guard: Guard,
    limits: Limits,
) -> std::io::Result<()> {
    let closing = app.closing.clone();
    let router = router(app, guard, limits);
    serve_connections(listener, router, limits.connections, closing).await;
    Ok(())
}

/// Whether runs can be read and drafts can be recorded.
async fn ready(State(app): State<App>) -> Response {
    let runs = app.store.runs(RunFilter { state: None, teams: Teams::All, limit: 1 }).await;
    if runs.is_err() {
        return not_ready("the runs cannot be read");
    }
    if app.closing.is_cancelled() {
        return not_ready("the server is about to end");
    }
    match app.workspaces.check_journals().await {
        true => "ready".into_response(),
        false => not_ready("the journal of drafts cannot be written"),
    }
}

fn not_ready(words: &str) -> Response {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::NotReady, words)
        .retry_after(1)
        .into_response()
}

/// A request that panics must not take the server down, nor tell how it is made.
fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!(target: "moothall::server", "a request panicked");
    let words = "something broke on the way";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, words).into_response()
}
