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
const BETWEEN: Duration = Duration::from_millis(50);

/// Poll interval despite notifications, because one may be lost with its sender or the connection.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);

/// Delay before reconnecting.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

pub(crate) struct ChangeWatcher {
    options: PgConnectOptions,
    pool: PgPool,
    moved: Arc<Notify>,
    speaker: OnceLock<AbortHandle>,
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
    heard: watch::Receiver<NotificationState>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct NotificationState {
    /// Whether there is a connection.
    listens: bool,
    words: u64,
}

impl ChangeWatcher {
    pub(crate) fn new(pool: &PgPool, options: PgConnectOptions) -> Self {
        Self {
            options,
            pool: pool.clone(),
            moved: Arc::default(),
            speaker: OnceLock::new(),
            listener: OnceLock::new(),
        }
    }

    /// Notifies other processes, with a short delay, that a run of this process has new events.
    pub(crate) fn tell(&self) {
        self.speaker.get_or_init(|| {
            let (pool, moved) = (self.pool.clone(), Arc::clone(&self.moved));
            tokio::spawn(async move {
                loop {
                    moved.notified().await;
                    // Listeners that miss it poll anyway.
                    let _ = say(&pool).await;
                    tokio::time::sleep(BETWEEN).await;
                }
            })
            .abort_handle()
        });
        self.moved.notify_one();
    }

    /// Waits for a notification after the ones already seen. Without a listening connection, waits
    /// for `look_again`.
    pub(crate) async fn movement(&self, seen: u64, look_again: Duration) -> u64 {
        let listener = self.listener.get_or_init(|| {
            let (sender, heard) = watch::channel(NotificationState::default());
            let task = tokio::spawn(listen(self.options.clone(), sender)).abort_handle();
            NotificationListener { task, heard }
        });
        tokio::time::sleep(BETWEEN.min(look_again)).await;
        let mut heard = listener.heard.clone();
        let at_most = if heard.borrow().listens { LOOK_ANYWAY } else { look_again };
        let _ = tokio::time::timeout(at_most, heard.wait_for(|heard| heard.words != seen)).await;
        heard.borrow().words
    }

    pub(crate) async fn close(&self) {
        if let Some(speaker) = self.speaker.get() {
            speaker.abort();
            // A final notification before the process ends.
            let _ = say(&self.pool).await;
        }
        if let Some(listener) = self.listener.get() {
            listener.task.abort();
        }
    }
}

impl Drop for ChangeWatcher {
    fn drop(&mut self) {
        let listener = self.listener.get().map(|listener| &listener.task);
        self.speaker.get().into_iter().chain(listener).for_each(AbortHandle::abort);
    }
}

/// Sends a notification, without waiting for the disk.
async fn say(pool: &PgPool) -> Result<(), sqlx::Error> {
    let words = format!("BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}; COMMIT");
    sqlx::raw_sql(AssertSqlSafe(words)).execute(pool).await.map(drop)
}

/// Listens until all receivers are gone. Uses its own connection so that requests never wait for
/// it.
async fn listen(options: PgConnectOptions, heard: watch::Sender<NotificationState>) {
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    while !heard.is_closed() {
        if let Ok(mut listener) = PgListener::connect_with(&pool).await
            && listener.listen(CHANNEL).await.is_ok()
        {
            // Count connecting as a notification, because earlier ones may have been missed.
            heard.send_modify(|heard| {
                *heard = NotificationState { listens: true, words: heard.words + 1 }
            });
            while let Ok(Some(_)) = listener.try_recv().await {
                heard.send_modify(|heard| heard.words += 1);
            }
        }
        heard.send_modify(|heard| heard.listens = false);
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}
