//! MCP over HTTP, on this machine only.
//!
//! Foreign web pages can make a browser send requests here, so callers need the token from a file
//! that only the user can read. In addition, requests sent by a page and requests with an unknown
//! host name are refused.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::serve::Listener;
use moothall_core::Sha256Hex;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::frontend::McpFrontend;
use moothall_server::{ClientAddress, ConnectionLimits, serve_connections};

/// Path of the MCP endpoint.
const PATH: &str = "/mcp";

/// The expected bearer token, stored as a hash so that comparing it has no timing side channel.
#[derive(Debug, Clone, Copy)]
pub struct BearerToken(Sha256Hex);

impl BearerToken {
    /// Creates the check for this token.
    pub fn of(token: &str) -> Self {
        Self(Sha256Hex::of(token.as_bytes()))
    }

    fn is_shown(self, request: &Request) -> bool {
        let shown = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = shown.and_then(|shown| shown.strip_prefix(b"Bearer "));
        token.is_some_and(|token| Sha256Hex::of(token) == self.0)
    }
}

/// Limits on requests and connections.
#[derive(Debug, Clone, Copy)]
pub struct McpHttpLimits {
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Time limit for receiving the whole body.
    pub body_within: Duration,
    /// Connection limits.
    pub connections: ConnectionLimits,
}

impl Default for McpHttpLimits {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            body_within: Duration::from_secs(10),
            connections: ConnectionLimits::default(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct McpHttpGuard {
    bearer: Option<BearerToken>,
    limits: McpHttpLimits,
}

/// Serves until `closing` is cancelled or the gate or runner process has ended. Without a `bearer`,
/// the listener itself must keep others out, such as a Unix socket in the user's own folder.
pub async fn serve_http<L>(
    listener: L,
    frontend: McpFrontend,
    bearer: Option<BearerToken>,
    hosts: Vec<String>,
    limits: McpHttpLimits,
    closing: CancellationToken,
) -> std::io::Result<()>
where
    L: Listener,
    L::Addr: ClientAddress,
{
    // A Unix socket has no host name that a web page could point to it.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .enforce_origin_validation()
        .with_max_request_body_bytes(limits.body_bytes)
        .with_cancellation_token(closing.child_token());
    let watching = frontend.clone();
    let service = StreamableHttpService::new(
        move || Ok(frontend.new_session()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let router = Router::new()
        .route_service(PATH, service)
        .layer(from_fn_with_state(McpHttpGuard { bearer, limits }, authorize));
    let served = serve_connections(listener, router, limits.connections, closing);
    tokio::select! {
        () = served => Ok(()),
        () = watching.disconnected() => Err(std::io::Error::other(crate::IpcError)),
    }
}

/// Checks the token before reading the body. The whole body is received before the call is handled,
/// so a client that disconnects midway triggers nothing.
async fn authorize(State(guard): State<McpHttpGuard>, request: Request, next: Next) -> Response {
    if let Some(bearer) = guard.bearer
        && !bearer.is_shown(&request)
    {
        let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
        return (StatusCode::UNAUTHORIZED, challenge, "missing or wrong token\n").into_response();
    }
    let (parts, body) = request.into_parts();
    let reading = axum::body::to_bytes(body, guard.limits.body_bytes);
    let bytes = match tokio::time::timeout(guard.limits.body_within, reading).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            return (StatusCode::PAYLOAD_TOO_LARGE, "request too large\n").into_response();
        }
        Err(_) => {
            return (StatusCode::REQUEST_TIMEOUT, "request timed out\n").into_response();
        }
    };
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}
