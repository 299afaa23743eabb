//! Notifies other processes that runs have new events, and listens for such notifications.
//!
//! A notification does not say which run changed: readers query the tables, a lost notification
//! costs only a short delay, and its size is constant. It is sent after the commit, not within it,
//! because PostgreSQL serializes notifying commits across the whole server, which would flush them
//! to disk one by one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// The channel shared by all processes.
const CHANNEL: &str = "moothall_head";

/// Minimum time between two notifications of a process, and between two polls of a listener.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// Poll interval despite notifications, because one may be lost with its sender or the connection.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Delay before reconnecting.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct ChangeWatcher {
    options: PgConnectOptions,
    pool: PgPool,
    changed: Arc<Notify>,
    notifier: OnceLock<AbortHandle>,
    listener: OnceLock<NotificationListener>,
}

/// Implemented by hand because the options contain the password.
impl std::fmt::Debug for ChangeWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeWatcher").field("listener", &self.listener).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct NotificationListener {
    task: AbortHandle,
    state: watch::Receiver<NotificationState>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct NotificationState {
    /// Whether there is a connection.
    connected: bool,
    count: u64,
}

impl ChangeWatcher {
    pub(crate) fn new(pool: &PgPool, options: PgConnectOptions) -> Self {
        Self {
            options,
            pool: pool.clone(),
            changed: Arc::default(),
            notifier: OnceLock::new(),
            listener: OnceLock::new(),
        }
    }

    /// Notifies other processes, with a short delay, that a run of this process has new events.
    pub(crate) fn notify(&self) {
        self.notifier.get_or_init(|| {
            let (pool, changed) = (self.pool.clone(), Arc::clone(&self.changed));
            tokio::spawn(async move {
                loop {
                    changed.notified().await;
                    // Listeners that miss it poll anyway.
                    let _ = send_notification(&pool).await;
                    tokio::time::sleep(MIN_INTERVAL).await;
                }
            })
            .abort_handle()
        });
        self.changed.notify_one();
    }

    /// Waits for a notification after the ones already seen. Without a listening connection, waits
    /// for `poll_interval`.
    pub(crate) async fn wait_for_change(&self, seen: u64, poll_interval: Duration) -> u64 {
        let listener = self.listener.get_or_init(|| {
            let (sender, state) = watch::channel(NotificationState::default());
            let task = tokio::spawn(listen(self.options.clone(), sender)).abort_handle();
            NotificationListener { task, state }
        });
        tokio::time::sleep(MIN_INTERVAL.min(poll_interval)).await;
        let mut state = listener.state.clone();
        let at_most = if state.borrow().connected { POLL_INTERVAL } else { poll_interval };
        let _ = tokio::time::timeout(at_most, state.wait_for(|state| state.count != seen)).await;
        state.borrow().count
    }

    pub(crate) async fn close(&self) {
        if let Some(notifier) = self.notifier.get() {
            notifier.abort();
            // A final notification before the process ends.
            let _ = send_notification(&self.pool).await;
        }
        if let Some(listener) = self.listener.get() {
            listener.task.abort();
        }
    }
}

impl Drop for ChangeWatcher {
    fn drop(&mut self) {
        let listener = self.listener.get().map(|listener| &listener.task);
        self.notifier.get().into_iter().chain(listener).for_each(AbortHandle::abort);
    }
}

/// Sends a notification, without waiting for the disk.
async fn send_notification(pool: &PgPool) -> Result<(), sqlx::Error> {
    let statement = format!("BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}; COMMIT");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(pool).await.map(drop)
}

/// Listens until all receivers are gone. Uses its own connection so that requests never wait for
/// it.
async fn listen(options: PgConnectOptions, state: watch::Sender<NotificationState>) {
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    while !state.is_closed() {
        if let Ok(mut listener) = PgListener::connect_with(&pool).await
            && listener.listen(CHANNEL).await.is_ok()
        {
            // Count connecting as a notification, because earlier ones may have been missed.
            state.send_modify(|state| {
                *state = NotificationState { connected: true, count: state.count + 1 }
            });
            while let Ok(Some(_)) = listener.try_recv().await {
                state.send_modify(|state| state.count += 1);
            }
        }
        state.send_modify(|state| state.connected = false);
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}
