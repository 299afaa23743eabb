//! The server.

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
    behaviour::Behaviour,
    call::Call,
    connection::serve,
    desk::{Choice, Desk},
    stats::Stats,
    wire::Wire,
};

/// Connections that may wait to be accepted. With fewer, a burst of thousands would see retried
/// handshakes of a second each.
const BACKLOG: u32 = 8192;

/// Pause after a failed `accept`, which mostly means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A model provider on loopback that does as told. Dropping it stops the server and closes what is
/// still open.
///
/// Every call takes the next behaviour of the [script](Self::script); when there is none, the
/// default decides, which is whatever [`always`](Self::always) or
/// [`respond_with`](Self::respond_with) set last.
pub struct FakeProvider {
    address: SocketAddr,
    desk: Arc<Desk>,
    accepting: JoinHandle<()>,
}

impl FakeProvider {
    /// Starts a server on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// When the port cannot be had.
    pub async fn start() -> io::Result<Self> {
        Self::start_on((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Starts a server on this address.
    ///
    /// # Errors
    ///
    /// When the address cannot be had.
    pub async fn start_on(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let desk = Arc::new(Desk::default());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&desk)));
        Ok(Self { address, desk, accepting })
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL to configure a client with: `http://127.0.0.1:PORT/v1`, for Ollama without the
    /// `/v1`.
    pub fn base_url(&self, wire: Wire) -> String {
        format!("http://{}{}", self.address, wire.base_path())
    }

    /// Treats every call like this.
    pub fn always(&self, behaviour: impl Into<Behaviour>) {
        self.desk.set_fallback(Choice::Fixed(Arc::new(behaviour.into())));
    }

    /// Treats every call as this function says. It may run on several threads at once.
    pub fn respond_with(&self, function: impl Fn(&Call) -> Behaviour + Send + Sync + 'static) {
        self.desk.set_fallback(Choice::Function(Arc::new(function)));
    }

    /// Appends to the script: one behaviour a call, in order of arrival, before the default
    /// applies.
    pub fn script(&self, behaviours: impl IntoIterator<Item = impl Into<Behaviour>>) {
        self.desk.extend_script(behaviours.into_iter().map(Into::into));
    }

    /// How many behaviours of the script no call has taken yet.
    pub fn script_left(&self) -> usize {
        self.desk.script_length()
    }

    /// Every call so far, in order of arrival.
    pub fn calls(&self) -> Vec<Arc<Call>> {
        self.desk.calls()
    }

    /// The numbers so far.
    pub fn stats(&self) -> Stats {
        self.desk.stats()
    }

    /// From now on keeps neither calls nor single bills, and forgets those it has: for benches,
    /// whose memory they would fill.
    pub fn keep_only_totals(&self) {
        self.desk.keep_only_totals();
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
        // The task owns the listener and the set of connections, which end with it.
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, desk: Arc<Desk>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&desk)));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            // Frees ended connections. A panic of a test's own function has already printed itself.
            Some(_) = connections.join_next() => {}
        }
    }
}
