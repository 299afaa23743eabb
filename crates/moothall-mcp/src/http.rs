//! The protocol over HTTP, on this machine only.
//!
//! Pages of strangers can make a browser knock here, so whoever comes needs the token of the file
//! that only the user can read; a request that a page sent is refused all the same, and so is a name
//! that points here but is not ours.

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

use crate::front::Front;
use moothall_server::{ClientAddress, ConnectionLimits, serve_connections};

/// Where the protocol is spoken.
const PATH: &str = "/mcp";

/// What a caller has to show. Kept as a hash, so that comparing takes as long for every guess.
#[derive(Debug, Clone, Copy)]
pub struct Bearer(Sha256Hex);

impl Bearer {
    /// Of this token.
    pub fn of(token: &str) -> Self {
        Self(Sha256Hex::of(token.as_bytes()))
    }

    fn is_shown(self, request: &Request) -> bool {
        let shown = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = shown.and_then(|shown| shown.strip_prefix(b"Bearer "));
        token.is_some_and(|token| Sha256Hex::of(token) == self.0)
    }
}

/// What one request may take.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// Bytes of its body.
    pub body_bytes: usize,
    /// Time until all of it is here.
    pub body_within: Duration,
    /// Limits on the connections that requests come through.
    pub connections: ConnectionLimits,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            body_within: Duration::from_secs(10),
            connections: ConnectionLimits::default(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Door {
    bearer: Option<Bearer>,
    limits: HttpLimits,
}

/// Serves until `closing`, or until a process behind is gone. Without a `bearer` it is the listener
/// that keeps others out: a socket file of the user's.
pub async fn serve_http<L>(
    listener: L,
    front: Front,
    bearer: Option<Bearer>,
    hosts: Vec<String>,
    limits: HttpLimits,
    closing: CancellationToken,
) -> std::io::Result<()>
where
    L: Listener,
    L::Addr: ClientAddress,
{
    // Whoever listens on a socket file has no name that a page could point at it.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .enforce_origin_validation()
        .with_max_request_body_bytes(limits.body_bytes)
        .with_cancellation_token(closing.child_token());
    let watching = front.clone();
    let service = StreamableHttpService::new(
        move || Ok(front.for_another()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let router = Router::new()
        .route_service(PATH, service)
        .layer(from_fn_with_state(Door { bearer, limits }, let_in));
    let served = serve_connections(listener, router, limits.connections, closing);
    tokio::select! {
        () = served => Ok(()),
        () = watching.lost() => Err(std::io::Error::other(crate::LinkError)),
    }
}

/// Looks at the token first, and reads no byte of who has none. The whole body is here before
/// anything is made of it: a client that goes away in the middle has asked for nothing.
async fn let_in(State(door): State<Door>, request: Request, next: Next) -> Response {
    if let Some(bearer) = door.bearer
        && !bearer.is_shown(&request)
    {
        let wanted = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
        return (StatusCode::UNAUTHORIZED, wanted, "the token is missing or wrong\n")
            .into_response();
    }
    let (parts, body) = request.into_parts();
    let reading = axum::body::to_bytes(body, door.limits.body_bytes);
    let bytes = match tokio::time::timeout(door.limits.body_within, reading).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            return (StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n").into_response();
        }
        Err(_) => {
            return (StatusCode::REQUEST_TIMEOUT, "the request took too long\n").into_response();
        }
    };
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}
