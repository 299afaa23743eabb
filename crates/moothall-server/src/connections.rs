//! Serves HTTP connections, with limits on their number and idle time.
//!
//! Used by `moothall serve` and `moothall mcp --http`. A connection costs memory and a file
//! descriptor before its sender is known. It must therefore send a complete request header within
//! [`ConnectionLimits::header_within`], and when a limit is reached, a connection without a request
//! is closed in favor of the new one. Half-open connections cannot block other clients.

mod first_header;
mod registry;

use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::serve::Listener;
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::first_header::{PrefixedStream, read_first_header};
use self::registry::{ActiveRequest, ConnectionHandle, ConnectionRegistry};

/// Maximum open connections per server.
const MAX_CONNECTIONS: usize = 4_096;

/// Maximum open connections per remote address. Loopback addresses are exempt: a reverse proxy or a
/// benchmark on the same machine uses one address for all its clients.
const MAX_CONNECTIONS_PER_ADDRESS: usize = 1_024;

/// Maximum connections without a complete request header. Each costs the bytes it has sent plus
/// about 2 kB.
const MAX_WAITING_CONNECTIONS: usize = 3_072;

/// Maximum of these that use HTTP/2 or have sent a very long header. Each costs about 20 kB or
/// more.
const MAX_NEGOTIATING_CONNECTIONS: usize = 512;

/// File descriptors reserved for the store, the journals and the sandboxes.
const RESERVED_FILES: usize = 256;

const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits on the connections of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Open connections.
    pub total: usize,
    /// Open connections of one remote address; loopback addresses and socket files are exempt.
    pub per_address: usize,
    /// Connections that have not sent a complete request header.
    pub waiting: usize,
    /// Of these, connections already handed to the HTTP implementation: HTTP/2 without a request.
    pub negotiating: usize,
    /// Time limit for a complete request header. Idle HTTP/1 connections are closed after the same
    /// time.
    pub header_within: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            total: MAX_CONNECTIONS,
            per_address: MAX_CONNECTIONS_PER_ADDRESS,
            waiting: MAX_WAITING_CONNECTIONS,
            negotiating: MAX_NEGOTIATING_CONNECTIONS,
            header_within: HEADER_TIMEOUT,
        }
    }
}

impl ConnectionLimits {
    /// Returns the default limits, lowered for a process that may open `files` files.
    pub fn for_open_files(files: u64) -> Self {
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let available = files.saturating_sub(RESERVED_FILES).max(files / 2);
        let limits = Self::default();
        Self {
            total: limits.total.min(available),
            per_address: limits.per_address.min(available),
            waiting: limits.waiting.min(available / 2),
            negotiating: limits.negotiating.min(available / 4),
            ..limits
        }
    }
}

/// Remote address of a request, stored as a request extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerAddress(pub(crate) Option<IpAddr>);

/// Address of a client, if this kind of listener has one.
pub trait ClientAddress: Send + fmt::Debug {
    /// The IP address, or `None` for a client of a Unix socket.
    fn ip(&self) -> Option<IpAddr>;
}

impl ClientAddress for SocketAddr {
    fn ip(&self) -> Option<IpAddr> {
        Some(Self::ip(self).to_canonical())
    }
}

impl ClientAddress for tokio::net::unix::SocketAddr {
    fn ip(&self) -> Option<IpAddr> {
        None
    }
}

/// Serves until `closing` is cancelled. Then it accepts no more connections, closes those without a
/// request, and returns when all responses in progress are complete. Dropping the future closes
/// everything.
pub async fn serve_connections<L>(
    mut listener: L,
    router: Router,
    limits: ConnectionLimits,
    closing: CancellationToken,
) where
    L: Listener,
    L::Addr: ClientAddress,
{
    let registry = Arc::new(ConnectionRegistry::new(limits));
    let builder = Arc::new(builder(limits));
    // Built once: `axum::serve` copies the route table for every connection, about 70 kB.
    let router = TowerToHyperService::new(router);
    let mut tasks = JoinSet::new();
    loop {
        let accepted = async {
            registry.settle().await;
            listener.accept().await
        };
        let (io, address) = tokio::select! {
            () = closing.cancelled() => break,
            Some(_) = tasks.join_next() => continue,
            accepted = accepted => accepted,
        };
        let address = address.ip();
        // Dropping `io` closes the connection.
        let Some(handle) = registry.admit(address.and_then(limited_address)) else { continue };
        let (builder, router, closing) = (Arc::clone(&builder), router.clone(), closing.clone());
        tasks.spawn(async move {
            serve_connection(io, address, handle, &builder, router, limits, closing).await;
        });
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

fn builder(limits: ConnectionLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header_within);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .keep_alive_timeout(HTTP2_PING_TIMEOUT);
    builder
}

fn limited_address(address: IpAddr) -> Option<IpAddr> {
    (!address.is_loopback()).then(|| address_group(address))
}

/// Groups addresses for the limits per address: an IPv6 client usually owns a /64.
pub(crate) fn address_group(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
    }
}

async fn serve_connection<I>(
    mut io: I,
    address: Option<IpAddr>,
    handle: ConnectionHandle,
    builder: &Builder<TokioExecutor>,
    router: TowerToHyperService<Router>,
    limits: ConnectionLimits,
    closing: CancellationToken,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let header = tokio::select! {
        header = tokio::time::timeout(limits.header_within, read_first_header(&mut io)) => header,
        () = handle.evicted() => return,
        () = closing.cancelled() => return,
    };
    // Timeout, disconnect, or no bytes sent.
    let Ok(Ok(Some(header))) = header else { return };
    handle.begin_protocol();
    let io = TokioIo::new(PrefixedStream::new(header, io));
    // Boxed, so that waiting connections do not reserve memory for this future.
    let served = serve_requests(io, address, handle, builder, router, limits, closing);
    Box::pin(served).await;
}

async fn serve_requests<I>(
    io: TokioIo<PrefixedStream<I>>,
    address: Option<IpAddr>,
    handle: ConnectionHandle,
    builder: &Builder<TokioExecutor>,
    router: TowerToHyperService<Router>,
    limits: ConnectionLimits,
    closing: CancellationToken,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handle = Arc::new(handle);
    let requests = Arc::clone(&handle);
    let service = service_fn(move |request: Request<Incoming>| {
        let active = requests.begin_request();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(PeerAddress(address));
        let response = router.call(request);
        async move {
            let response = response.await?;
            Ok::<_, Infallible>(response.map(|body| TrackedBody { body, _active: active }))
        }
    });
    let mut connection = pin!(builder.serve_connection(io, service));
    // HTTP/1 has its own header timeout; this one covers HTTP/2.
    let mut first_request = pin!(tokio::time::sleep(limits.header_within));
    let (mut is_timed, mut is_closing) = (true, false);
    loop {
        tokio::select! {
            // Errors are the client's: it disconnected or did not speak HTTP.
            _ = connection.as_mut() => return,
            () = handle.evicted() => return,
            () = first_request.as_mut(), if is_timed => {
                if handle.is_waiting() {
                    return;
                }
                is_timed = false;
            }
            () = closing.cancelled(), if !is_closing => {
                if handle.is_waiting() {
                    return;
                }
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// A response body that marks its connection as busy until it is sent or dropped.
struct TrackedBody {
    body: Body,
    _active: ActiveRequest,
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
