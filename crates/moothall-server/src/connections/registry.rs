//! Registry of open connections; decides which one to close when a limit is reached.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ConnectionLimits;

/// Younger connections are not closed in favor of new ones. New connections wait this long instead,
/// because many legitimate clients may connect at the same moment.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// How often a full server checks whether waiting connections have sent a request.
const SETTLE_POLL: Duration = Duration::from_millis(2);

/// Minimum interval between log messages about a reached limit.
const WARN_INTERVAL: Duration = Duration::from_secs(10);

/// All open connections of one server.
#[derive(Debug)]
pub(crate) struct ConnectionRegistry {
    limits: ConnectionLimits,
    table: Arc<Mutex<ConnectionTable>>,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    /// Keyed by a counter, so the first entry is the oldest connection.
    open: BTreeMap<u64, OpenConnection>,
    waiting: usize,
    negotiating: usize,
    next: u64,
    warned: Option<Instant>,
}

#[derive(Debug)]
struct OpenConnection {
    address: Option<IpAddr>,
    phase: ConnectionPhase,
    /// Waiting, and already handed to the HTTP implementation.
    is_negotiating: bool,
    evicted: CancellationToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionPhase {
    /// No complete request header yet.
    Waiting { since: Instant },
    /// Requests in progress.
    Busy { requests: usize },
    /// Between two requests.
    Idle { since: Instant },
}

impl ConnectionRegistry {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, table: Arc::default() }
    }

    /// Waits while the server is full and every connection without a request is too young to be
    /// closed.
    pub(crate) async fn settle(&self) {
        while self.is_settling() {
            tokio::time::sleep(SETTLE_POLL).await;
        }
    }

    fn is_settling(&self) -> bool {
        let table = lock(&self.table);
        table.waiting >= self.limits.waiting
            && table.oldest_waiting(None).is_some_and(|(_, since)| since.elapsed() < SETTLE_TIME)
    }

    /// Adds a connection; `address` counts toward the limit per address. If a limit is reached,
    /// closes the oldest connection without a request, otherwise the longest idle one. Returns `None`
    /// if all connections are busy.
    pub(crate) fn admit(&self, address: Option<IpAddr>) -> Option<ConnectionHandle> {
        let mut table = lock(&self.table);
        let mut is_full = false;
        if address.is_some() {
            let same = table.open.values().filter(|open| open.address == address).count();
            if same >= self.limits.per_address {
                is_full = true;
                table.make_room(address)?;
            }
        }
        if table.waiting >= self.limits.waiting {
            is_full = true;
            let oldest = table.oldest_waiting(None);
            oldest.into_iter().for_each(|(id, _)| table.evict(id));
        }
        if table.open.len() >= self.limits.total {
            is_full = true;
            table.make_room(None)?;
        }
        if is_full {
            table.warn();
        }
        let (id, evicted) = (table.next, CancellationToken::new());
        table.next += 1;
        table.waiting += 1;
        let phase = ConnectionPhase::Waiting { since: Instant::now() };
        let open =
            OpenConnection { address, phase, is_negotiating: false, evicted: evicted.clone() };
        table.open.insert(id, open);
        let (limits, table) = (self.limits, Arc::clone(&self.table));
        Some(ConnectionHandle { id, limits, evicted, table })
    }
}

impl ConnectionTable {
    /// The oldest connection without a request, from `address` or from any address.
    fn oldest_waiting(&self, address: Option<IpAddr>) -> Option<(u64, Instant)> {
        self.open.iter().find_map(|(id, open)| match open.phase {
            ConnectionPhase::Waiting { since } if open.is_from(address) => Some((*id, since)),
            _ => None,
        })
    }

    fn longest_idle(&self, address: Option<IpAddr>) -> Option<u64> {
        let idle = self.open.iter().filter(|(_, open)| open.is_from(address));
        let idle = idle.filter_map(|(id, open)| match open.phase {
            ConnectionPhase::Idle { since } => Some((since, *id)),
            _ => None,
        });
        idle.min().map(|(_, id)| id)
    }

    /// Closes one connection from `address` or from any address. Returns `None` if all are busy.
    fn make_room(&mut self, address: Option<IpAddr>) -> Option<()> {
        let waiting = self.oldest_waiting(address).map(|(id, _)| id);
        let Some(id) = waiting.or_else(|| self.longest_idle(address)) else {
            self.warn();
            return None;
        };
        self.evict(id);
        Some(())
    }

    fn evict(&mut self, id: u64) {
        if let Some(open) = self.remove(id) {
            open.evicted.cancel();
        }
    }

    fn remove(&mut self, id: u64) -> Option<OpenConnection> {
        let open = self.open.remove(&id)?;
        if matches!(open.phase, ConnectionPhase::Waiting { .. }) {
            self.waiting -= 1;
        }
        if open.is_negotiating {
            self.negotiating -= 1;
        }
        Some(open)
    }

    fn warn(&mut self) {
        if self.warned.is_some_and(|at| at.elapsed() < WARN_INTERVAL) {
            return;
        }
        self.warned = Some(Instant::now());
        let (open, waiting) = (self.open.len(), self.waiting);
        tracing::warn!(
            target: "moothall::server", open, waiting,
            "connection limit reached: closing connections without a request"
        );
    }
}

impl OpenConnection {
    fn is_from(&self, address: Option<IpAddr>) -> bool {
        address.is_none() || self.address == address
    }
}

/// One open connection. Dropping it removes the connection from the registry.
#[derive(Debug)]
pub(crate) struct ConnectionHandle {
    id: u64,
    limits: ConnectionLimits,
    evicted: CancellationToken,
    table: Arc<Mutex<ConnectionTable>>,
}

impl ConnectionHandle {
    /// Completes when the connection is evicted.
    pub(crate) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Whether the connection has not sent a complete request header yet.
    pub(crate) fn is_waiting(&self) -> bool {
        let table = lock(&self.table);
        let open = table.open.get(&self.id);
        open.is_none_or(|open| matches!(open.phase, ConnectionPhase::Waiting { .. }))
    }

    /// Marks the connection as handed to the HTTP implementation, which uses more memory. If too
    /// many such connections have no request, the oldest is closed.
    pub(crate) fn begin_protocol(&self) {
        let mut table = lock(&self.table);
        if table.negotiating >= self.limits.negotiating {
            let mut negotiating = table.open.iter().filter(|(_, open)| open.is_negotiating);
            let oldest = negotiating.next().map(|(id, _)| *id);
            oldest.into_iter().for_each(|id| table.evict(id));
            table.warn();
        }
        if let Some(open) = table.open.get_mut(&self.id) {
            open.is_negotiating = true;
            table.negotiating += 1;
        }
    }

    /// Marks the connection as busy until the returned guard is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        let mut guard = lock(&self.table);
        let table = &mut *guard;
        if let Some(open) = table.open.get_mut(&self.id) {
            if matches!(open.phase, ConnectionPhase::Waiting { .. }) {
                table.waiting -= 1;
            }
            if std::mem::take(&mut open.is_negotiating) {
                table.negotiating -= 1;
            }
            let requests = match open.phase {
                ConnectionPhase::Busy { requests } => requests + 1,
                ConnectionPhase::Waiting { .. } | ConnectionPhase::Idle { .. } => 1,
            };
            open.phase = ConnectionPhase::Busy { requests };
        }
        ActiveRequest(Arc::clone(self))
    }
}

impl Drop for ConnectionHandle {
    fn drop(&mut self) {
        lock(&self.table).remove(self.id);
    }
}

/// A request in progress.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<ConnectionHandle>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut table = lock(&self.0.table);
        if let Some(open) = table.open.get_mut(&self.0.id)
            && let ConnectionPhase::Busy { requests } = open.phase
        {
            open.phase = match requests {
                0 | 1 => ConnectionPhase::Idle { since: Instant::now() },
                more => ConnectionPhase::Busy { requests: more - 1 },
            };
        }
    }
}

fn lock(table: &Mutex<ConnectionTable>) -> MutexGuard<'_, ConnectionTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
