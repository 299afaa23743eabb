//! The route table and the middleware that all routes share.

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
use moothall_core::access::AccessScope;
use moothall_store::{RunFilter, TeamFilter};
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::timeout::TimeoutLayer;

use crate::access::{self, session, tokens};
use crate::caller::RoutePermission;
use crate::connections::{ConnectionLimits, serve_connections};
use crate::{
    ApiProblem, AppState, OriginGuard, assets, caller, calls, company, control, documents, drafts,
    event_pages, event_stream, guard, openapi, run_list, runs, telemetry,
};

/// Limits on requests and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Maximum size of a request body that can contain files, in bytes.
    pub upload_bytes: usize,
    /// Time limit until a response starts. Streams may continue after it.
    pub answer_within: Duration,
    /// Connection limits.
    pub connections: ConnectionLimits,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            // Files of 32 MiB in base64, and the rest of the request.
            upload_bytes: 44 << 20,
            answer_within: Duration::from_secs(60),
            connections: ConnectionLimits::default(),
        }
    }
}

/// The path that starts runs. Its requests can contain files.
const START_PATH: &str = "/api/runs";

/// An endpoint of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiRoute {
    /// `GET` or `POST`.
    pub method: Method,
    /// Path with parameters in braces.
    pub path: &'static str,
    /// The permission that callers need.
    pub needs: RoutePermission,
}

/// All endpoints of the API. The router is built from this table alone.
pub fn routes() -> Vec<ApiRoute> {
    table().into_iter().map(|(route, _)| route).collect()
}

fn table() -> Vec<(ApiRoute, MethodRouter<AppState>)> {
    let read = RoutePermission::Scope(AccessScope::Read);
    let of_run = RoutePermission::ScopeOnRun;
    let of_server = RoutePermission::ScopeOnServer;
    let get_route = |path, needs, handler| (ApiRoute { method: Method::GET, path, needs }, handler);
    let post_route =
        |path, needs, handler| (ApiRoute { method: Method::POST, path, needs }, handler);
    let thread = "/api/runs/{run}/moves/{move}/threads/{thread}";
    let revoke = "/api/tokens/{token}/revoke";
    let document = "/api/runs/{run}/artifacts/{name}";
    let compare = "/api/runs/{run}/compare/{other}";
    vec![
        get_route("/healthz", RoutePermission::Nothing, get(async || "ok")),
        get_route("/readyz", RoutePermission::Nothing, get(ready)),
        get_route("/metrics", of_server(AccessScope::Admin), get(telemetry::show)),
        get_route("/login", RoutePermission::Nothing, get(session::open)),
        post_route("/login", RoutePermission::Nothing, post(session::enter)),
        get_route("/api/session", read, get(session::show)),
        post_route("/api/logout", read, post(session::leave)),
        get_route("/api/tokens", RoutePermission::Scope(AccessScope::Admin), get(tokens::list)),
        post_route("/api/tokens", RoutePermission::Scope(AccessScope::Admin), post(tokens::make)),
        post_route(revoke, RoutePermission::ScopeOnToken(AccessScope::Admin), post(tokens::revoke)),
        get_route("/api/runs", read, get(run_list::list)),
        post_route(START_PATH, RoutePermission::Scope(AccessScope::Run), post(runs::start)),
        get_route("/api/runs/{run}", of_run(AccessScope::Read), get(runs::snapshot)),
        get_route("/api/runs/{run}/events", of_run(AccessScope::Read), get(event_stream::events)),
        get_route(
            "/api/runs/{run}/events.json",
            of_run(AccessScope::Read),
            get(event_pages::events_json),
        ),
        get_route(thread, of_run(AccessScope::Read), get(documents::thread)),
        get_route(
            "/api/runs/{run}/artifacts",
            of_run(AccessScope::Read),
            get(documents::artifacts),
        ),
        get_route(document, of_run(AccessScope::Read), get(documents::artifact)),
        get_route("/api/runs/{run}/calls", of_run(AccessScope::Read), get(calls::list)),
        get_route("/api/runs/{run}/calls/{call}", of_run(AccessScope::Read), get(calls::detail)),
        get_route("/api/runs/{run}/facts/{id}", of_run(AccessScope::Read), get(documents::fact)),
        get_route("/api/runs/{run}/memo", of_run(AccessScope::Read), get(documents::memo)),
        get_route(compare, of_run(AccessScope::Read), get(documents::compare)),
        get_route(
            "/api/runs/{run}/forecasts",
            of_run(AccessScope::Read),
            get(documents::forecasts),
        ),
        get_route("/api/runs/{run}/{export}", of_run(AccessScope::Read), get(documents::export)),
        post_route("/api/runs/{run}/cancel", of_run(AccessScope::Run), post(control::cancel)),
        post_route("/api/runs/{run}/pause", of_run(AccessScope::Run), post(control::pause)),
        post_route("/api/runs/{run}/resume", of_run(AccessScope::Run), post(control::resume)),
        post_route("/api/runs/{run}/delete", of_run(AccessScope::Admin), post(control::delete)),
        post_route("/api/runs/{run}/fork", of_run(AccessScope::Run), post(runs::fork)),
        post_route("/api/runs/{run}/approve", of_run(AccessScope::Review), post(control::approve)),
        get_route("/api/runs/{run}/moves", of_run(AccessScope::Read), get(control::moves)),
        post_route(
            "/api/runs/{run}/moves",
            of_run(AccessScope::Review),
            post(control::change_moves),
        ),
        post_route("/api/estimate", read, post(company::estimate)),
        post_route("/api/check", read, post(company::check)),
        get_route("/api/facts/{ticker}", read, get(company::facts)),
        get_route("/api/tickers", read, get(company::tickers)),
        get_route("/api/committees", read, get(company::committees)),
        get_route("/api/settings", read, get(company::settings)),
        get_route("/api/doctor", of_server(AccessScope::Admin), get(company::doctor)),
        get_route("/api/drafts", of_server(AccessScope::Read), get(drafts::list)),
        get_route("/api/drafts/events", of_server(AccessScope::Read), get(drafts::events)),
        get_route("/api/drafts/{draft}", of_server(AccessScope::Read), get(drafts::show)),
        get_route(
            "/api/drafts/{draft}/content",
            of_server(AccessScope::Review),
            get(drafts::content),
        ),
        post_route(
            "/api/drafts/{draft}/comments",
            of_server(AccessScope::Review),
            post(drafts::comment),
        ),
        post_route(
            "/api/drafts/{draft}/approve",
            of_server(AccessScope::Review),
            post(drafts::approve),
        ),
        post_route(
            "/api/drafts/{draft}/reject",
            of_server(AccessScope::Review),
            post(drafts::reject),
        ),
        post_route(
            "/api/drafts/{draft}/send-back",
            of_server(AccessScope::Review),
            post(drafts::send_back),
        ),
        post_route("/api/review-link/show", RoutePermission::Nothing, post(drafts::links::show)),
        post_route(
            "/api/review-link/decide",
            RoutePermission::Nothing,
            post(drafts::links::decide),
        ),
        get_route("/api/audit", of_server(AccessScope::Read), get(drafts::audit)),
        get_route("/api/openapi.json", RoutePermission::Nothing, get(openapi::json)),
        get_route("/api/docs", RoutePermission::Nothing, get(openapi::page)),
    ]
}

/// Builds the router with all middleware.
pub fn router(app: AppState, guard: OriginGuard, limits: ServerLimits) -> Router {
    let api = table().into_iter().fold(Router::new(), |router, (route, handler)| {
        // Checks the scope before the request is read. `AppState::find` checks access to the individual
        // run.
        let handler = match route.path == START_PATH && route.method == Method::POST {
            true => handler.layer(DefaultBodyLimit::max(limits.upload_bytes)),
            false => handler,
        };
        let handler = handler.layer(from_fn_with_state(route.needs, caller::require));
        router.route(route.path, handler)
    });
    // Identifies the caller for all routes above.
    let api = api.layer(from_fn_with_state(Arc::clone(&app.access), access::identify));
    let metrics = Arc::clone(&app.metrics);
    let guard = Arc::new(guard);
    Router::new()
        .merge(api)
        .fallback(assets::serve)
        .method_not_allowed_fallback(async || {
            let message = "method not allowed for this path";
            ApiProblem::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::MethodNotAllowed, message)
        })
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, limits.answer_within))
        // Event streams are not compressed, because compression delays frames.
        .layer(CompressionLayer::new())
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(Arc::clone(&guard), guard::check))
        .layer(from_fn_with_state(guard, guard::headers))
        .layer(from_fn_with_state(metrics, telemetry::count))
        .with_state(app)
}

/// Serves until `closing` is cancelled; then ends streams with a final message and completes
/// responses in progress.
///
/// # Errors
///
/// Fails if the socket fails.
pub async fn serve(
    listener: TcpListener,
    app: AppState,
    guard: OriginGuard,
    limits: ServerLimits,
) -> std::io::Result<()> {
    let closing = app.closing.clone();
    let router = router(app, guard, limits);
    serve_connections(listener, router, limits.connections, closing).await;
    Ok(())
}

/// Reports whether runs can be read and drafts can be recorded.
async fn ready(State(app): State<AppState>) -> Response {
    let runs = app.store.runs(RunFilter { state: None, teams: TeamFilter::All, limit: 1 }).await;
    if runs.is_err() {
        return not_ready("cannot read the run store");
    }
    if app.closing.is_cancelled() {
        return not_ready("the server is shutting down");
    }
    match app.workspaces.check_journals().await {
        true => "ready".into_response(),
        false => not_ready("cannot write the draft journal"),
    }
}

fn not_ready(message: &str) -> Response {
    ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::NotReady, message)
        .retry_after(1)
        .into_response()
}

/// Answers a panicking request without stopping the server or disclosing internals.
fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!(target: "moothall::server", "request handler panicked");
    let message = "internal server error";
    ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, message).into_response()
}
