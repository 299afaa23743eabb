//! Delivers run events to the clients that follow them.
//!
//! The event log in the store is the source of truth, and every client has a cursor into it. The
//! feed makes reading cheap: for each followed run it holds the newest events as encoded frames,
//! shared by all clients, and the sequence number of the log's end. Drivers in this process report
//! their commits directly. Commits of other processes are found by one task that queries the store
//! for all concurrent runs, when the store reports activity or the poll interval has passed. Slow
//! clients do not block others: once their frames have been dropped from memory, they read from the store.

mod frame_buffer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use moothall_core::{EventEnvelope, RunId};
use moothall_store::{RunRow, Store, StoreError, StoredEvent};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use self::frame_buffer::FrameBuffer;
use crate::times::rfc3339;

/// Events per read from the store; also the maximum that a slow client holds in memory.
const PAGE_EVENTS: u32 = 128;

/// Maximum concurrent reads by the feed, because it shares the store's connections with all other
/// requests.
const STORE_READERS: usize = 3;

/// Polling of the store for events from other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedTiming {
    /// Poll interval.
    pub poll_interval: Duration,
}

impl Default for FeedTiming {
    fn default() -> Self {
        Self { poll_interval: Duration::from_millis(150) }
    }
}

/// Events of all followed runs.
pub struct EventFeed {
    store: Arc<dyn Store>,
    runs: Mutex<BTreeMap<RunId, Weak<RunFeed>>>,
    readers: Semaphore,
}

impl fmt::Debug for EventFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventFeed").field("runs", &self.runs().keys()).finish_non_exhaustive()
    }
}

/// End of a run's event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventLogHead {
    pub(crate) seq: u64,
    /// No more events will follow.
    pub(crate) terminal: bool,
    /// The run was deleted.
    pub(crate) deleted: bool,
}

/// Events of one followed run.
pub(crate) struct RunFeed {
    run_id: RunId,
    tail: Mutex<FrameBuffer>,
    head: watch::Sender<EventLogHead>,
}

impl EventFeed {
    /// Creates a feed for this store. [`EventFeed::watch`] must run to pick up events from other
    /// processes.
    pub fn new(store: Arc<dyn Store>) -> Arc<Self> {
        let readers = Semaphore::new(STORE_READERS);
        Arc::new(Self { store, runs: Mutex::default(), readers })
    }

    /// Reports an event committed by this process.
    pub fn committed(&self, run_id: &RunId, stored: &StoredEvent) {
        let followed = self.runs().get(run_id).and_then(Weak::upgrade);
        if let Some(run) = followed {
            run.push(std::slice::from_ref(stored));
        }
    }

    /// Polls for events from other processes until `closing` is cancelled.
    pub async fn watch(self: Arc<Self>, timing: FeedTiming, closing: CancellationToken) {
        let mut seen = 0;
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                version = self.store.wait_for_change(seen, timing.poll_interval) => seen = version,
            }
            if let Err(error) = self.poll_heads().await {
                tracing::warn!(target: "moothall::server", %error, "events cannot be read");
            }
        }
    }

    /// Returns the feed of an existing run.
    pub(crate) async fn follow(&self, run_id: &RunId) -> Result<Arc<RunFeed>, StoreError> {
        if let Some(run) = self.runs().get(run_id).and_then(Weak::upgrade) {
            return Ok(run);
        }
        let row = self.store.run(run_id).await?;
        let row = row.ok_or_else(|| StoreError::UnknownRun(run_id.clone()))?;
        self.open(&row).await
    }

    /// Creates the feed of a run whose log may have grown since its row was read.
    async fn open(&self, row: &RunRow) -> Result<Arc<RunFeed>, StoreError> {
        let run_id = &row.run_id;
        // Most clients read a run from its start, so load as much of it as fits once for all of
        // them.
        let seq = row.events.saturating_sub(frame_buffer::MAX_FRAMES as u64);
        let terminal = row.state.is_terminal();
        let feed = Arc::new(RunFeed {
            run_id: run_id.clone(),
            tail: Mutex::new(FrameBuffer::after(seq)),
            head: watch::Sender::new(EventLogHead { seq, terminal, deleted: false }),
        });
        self.catch_up(&feed, row.events).await?;
        let mut runs = self.runs();
        // Another client may have created the feed first, and it may be further ahead.
        if let Some(run) = runs.get(run_id).and_then(Weak::upgrade) {
            return Ok(run);
        }
        runs.insert(run_id.clone(), Arc::downgrade(&feed));
        Ok(feed)
    }

    /// Reads the events after a cursor from the store.
    pub(crate) async fn page(
        &self,
        run_id: &RunId,
        after: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let _permit = self.readers.acquire().await;
        self.store.events(run_id, after, PAGE_EVENTS).await
    }

    /// Reads the events up to this sequence number from the store, and those that follow in the same
    /// page.
    async fn catch_up(&self, run: &RunFeed, seq: u64) -> Result<(), StoreError> {
        let mut known = run.head().seq;
        while known < seq {
            run.push(&self.page(&run.run_id, known).await?);
            if run.head().seq == known {
                break;
            }
            known = run.head().seq;
        }
        Ok(())
    }

    /// Queries the store once for all followed runs.
    async fn poll_heads(&self) -> Result<(), StoreError> {
        let followed: Vec<Arc<RunFeed>> = {
            let mut runs = self.runs();
            runs.retain(|_, run| run.strong_count() > 0);
            runs.values().filter_map(Weak::upgrade).collect()
        };
        let open: Vec<&Arc<RunFeed>> = followed.iter().filter(|run| !run.is_over()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let ids: Vec<RunId> = open.iter().map(|run| run.run_id.clone()).collect();
        let heads = self.store.heads(&ids).await?;
        for run in open {
            let Some(head) = heads.get(&run.run_id) else {
                run.head.send_modify(|head| head.deleted = true);
                continue;
            };
            self.catch_up(run, *head).await?;
        }
        Ok(())
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Weak<RunFeed>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunFeed {
    /// Returns the end of the log.
    pub(crate) fn head(&self) -> EventLogHead {
        *self.head.borrow()
    }

    /// Subscribes to changes of the head.
    pub(crate) fn changes(&self) -> watch::Receiver<EventLogHead> {
        self.head.subscribe()
    }

    fn is_over(&self) -> bool {
        let head = self.head();
        head.terminal || head.deleted
    }

    /// Returns encoded events after a cursor with the sequence number of the last one; `None` if
    /// they are not in memory.
    pub(crate) fn ready(&self, after: u64) -> Option<(u64, Bytes)> {
        self.tail().after_cursor(after, PAGE_EVENTS as usize)
    }

    fn push(&self, stored: &[StoredEvent]) {
        let mut tail = self.tail();
        let mut terminal = false;
        for one in stored {
            // Skip duplicates. An event after a gap is read again at the next poll.
            if one.seq == tail.end().saturating_add(1) {
                tail.push(one.seq, frame(&self.run_id, one));
                terminal |= one.event.body.is_terminal();
            }
        }
        let seq = tail.end();
        drop(tail);
        self.head.send_if_modified(|head| {
            let is_newer = seq > head.seq;
            if is_newer {
                head.seq = seq;
                head.terminal |= terminal;
            }
            is_newer
        });
    }

    fn tail(&self) -> MutexGuard<'_, FrameBuffer> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RunFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFeed").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

/// Builds the response form of an event.
pub(crate) fn envelope(run_id: &RunId, stored: &StoredEvent) -> EventEnvelope {
    EventEnvelope {
        seq: stored.seq,
        run_id: run_id.clone(),
        at: rfc3339(stored.at_ms),
        body: stored.event.body.clone(),
    }
}

/// Encodes an event as a server-sent event frame. Only numbers and fixed names appear outside the
/// JSON, and the JSON has no line breaks, so content cannot forge a frame.
pub(crate) fn frame(run_id: &RunId, stored: &StoredEvent) -> Bytes {
    let json = serde_json::to_string(&envelope(run_id, stored)).unwrap_or_default();
    let (seq, name) = (stored.seq, stored.event.body.name());
    Bytes::from(format!("id: {seq}\nevent: {name}\ndata: {json}\n\n"))
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
