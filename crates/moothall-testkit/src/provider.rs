//! The fake provider's server.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket},
    task::{JoinHandle, JoinSet},
};

use crate::{
    behaviour::ProviderBehaviour,
    call::ProviderCall,
    connection::serve,
    protocol::ProviderProtocol,
    provider_state::{BehaviourSource, ProviderState},
    stats::ProviderStats,
};

/// Maximum number of connections waiting to be accepted. With fewer, a burst of thousands of
/// clients would see handshake retries of one second each.
const BACKLOG: u32 = 8192;

/// Pause after a failed `accept`, usually caused by a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A fake model provider on loopback. Dropping it stops the server and closes all connections.
///
/// Every call takes the next behaviour of the [script](Self::script). When the script is empty, the
/// default applies, as last set by [`always`](Self::always) or
/// [`respond_with`](Self::respond_with).
pub struct FakeProvider {
    address: SocketAddr,
    state: Arc<ProviderState>,
    accepting: JoinHandle<()>,
}

impl FakeProvider {
    /// Starts a server on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// If the port cannot be bound.
    pub async fn start() -> io::Result<Self> {
        Self::start_on((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Starts a server on this address.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound.
    pub async fn start_on(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let state = Arc::new(ProviderState::default());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self { address, state, accepting })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL for a client: `http://127.0.0.1:PORT/v1`, for Ollama without the `/v1`.
    pub fn base_url(&self, wire: ProviderProtocol) -> String {
        format!("http://{}{}", self.address, wire.base_path())
    }

    /// Sets the default behaviour.
    pub fn always(&self, behaviour: impl Into<ProviderBehaviour>) {
        self.state.set_fallback(BehaviourSource::Fixed(Arc::new(behaviour.into())));
    }

    /// Sets a function that determines the default behaviour of each call. It may run on several
    /// threads concurrently.
    pub fn respond_with(
        &self,
        function: impl Fn(&ProviderCall) -> ProviderBehaviour + Send + Sync + 'static,
    ) {
        self.state.set_fallback(BehaviourSource::Function(Arc::new(function)));
    }

    /// Appends to the script: one behaviour per call, in order of arrival, used before the default.
    pub fn script(&self, behaviours: impl IntoIterator<Item = impl Into<ProviderBehaviour>>) {
        self.state.extend_script(behaviours.into_iter().map(Into::into));
    }

    /// The number of unused behaviours in the script.
    pub fn script_left(&self) -> usize {
        self.state.script_length()
    }

    /// Every call so far, in order of arrival.
    pub fn calls(&self) -> Vec<Arc<ProviderCall>> {
        self.state.calls()
    }

    /// The statistics so far.
    pub fn stats(&self) -> ProviderStats {
        self.state.stats()
    }

    /// Stops recording calls and individual bills and deletes the existing ones. For benchmarks,
    /// where they would use too much memory.
    pub fn keep_only_totals(&self) {
        self.state.keep_only_totals();
    }
}

impl fmt::Debug for FakeProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FakeProvider")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        // The task owns the listener and the set of connections, which are dropped with it.
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<ProviderState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&state)));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            // Frees closed connections. A panic in a test's own function has already been printed.
            Some(_) = connections.join_next() => {}
        }
    }
}
