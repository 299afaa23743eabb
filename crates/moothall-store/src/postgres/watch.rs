//! Hearing that runs moved which other processes drive.
//!
//! A word says that some run moved, and not which: the truth is in the tables, a word that is lost
//! costs a moment, and a word is never as long as what happened. It is said after the commit and
//! not in it: commits that notify stand in one queue for the whole server, and would be flushed to
//! the disk one by one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// The channel that all processes speak and hear on.
const CHANNEL: &str = "moothall_head";

/// The shortest time between two words of one process, and between two looks of one that hears
/// many.
const BETWEEN: Duration = Duration::from_millis(50);

/// A word may be lost, with its speaker or with the connection.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);

/// How long to wait before a lost connection is made again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Watch {
    options: PgConnectOptions,
    pool: PgPool,
    moved: Arc<Notify>,
    speaker: OnceLock<AbortHandle>,
    listener: OnceLock<Listener>,
}

/// Not derived: the options would show the password.
impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("listener", &self.listener).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Listener {
    task: AbortHandle,
    heard: watch::Receiver<Heard>,
}

/// What came over the channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Heard {
    /// Whether there is a connection.
    listens: bool,
    words: u64,
}

impl Watch {
    pub(super) fn new(pool: &PgPool, options: PgConnectOptions) -> Self {
        Self {
            options,
            pool: pool.clone(),
            moved: Arc::default(),
            speaker: OnceLock::new(),
            listener: OnceLock::new(),
        }
    }

    /// A run of this process moved. Others hear of it in a moment.
    pub(super) fn tell(&self) {
        self.speaker.get_or_init(|| {
            let (pool, moved) = (self.pool.clone(), Arc::clone(&self.moved));
            tokio::spawn(async move {
                loop {
                    moved.notified().await;
                    // Whoever does not hear it looks by itself.
                    let _ = say(&pool).await;
                    tokio::time::sleep(BETWEEN).await;
                }
            })
            .abort_handle()
        });
        self.moved.notify_one();
    }

    /// Waits for a word beyond those that were seen; without a connection that hears one, for as long
    /// as was asked.
    pub(super) async fn movement(&self, seen: u64, look_again: Duration) -> u64 {
        let listener = self.listener.get_or_init(|| {
            let (sender, heard) = watch::channel(Heard::default());
            let task = tokio::spawn(listen(self.options.clone(), sender)).abort_handle();
            Listener { task, heard }
        });
        tokio::time::sleep(BETWEEN.min(look_again)).await;
        let mut heard = listener.heard.clone();
        let at_most = if heard.borrow().listens { LOOK_ANYWAY } else { look_again };
        let _ = tokio::time::timeout(at_most, heard.wait_for(|heard| heard.words != seen)).await;
        heard.borrow().words
    }

    pub(super) async fn close(&self) {
        if let Some(speaker) = self.speaker.get() {
            speaker.abort();
            // The last word of a process that ends.
            let _ = say(&self.pool).await;
        }
        if let Some(listener) = self.listener.get() {
            listener.task.abort();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let listener = self.listener.get().map(|listener| &listener.task);
        self.speaker.get().into_iter().chain(listener).for_each(AbortHandle::abort);
    }
}

/// Says that something moved. It is not worth waiting for the disk.
async fn say(pool: &PgPool) -> Result<(), sqlx::Error> {
    let words = format!("BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}; COMMIT");
    sqlx::raw_sql(AssertSqlSafe(words)).execute(pool).await.map(drop)
}

/// Hears words until nobody wants to know, on a connection of its own: requests never wait for it.
async fn listen(options: PgConnectOptions, heard: watch::Sender<Heard>) {
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    while !heard.is_closed() {
        if let Ok(mut listener) = PgListener::connect_with(&pool).await
            && listener.listen(CHANNEL).await.is_ok()
        {
            // What was said before the connection was there is a reason to look, too.
            heard.send_modify(|heard| *heard = Heard { listens: true, words: heard.words + 1 });
            while let Ok(Some(_)) = listener.try_recv().await {
                heard.send_modify(|heard| heard.words += 1);
            }
        }
        heard.send_modify(|heard| heard.listens = false);
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}
