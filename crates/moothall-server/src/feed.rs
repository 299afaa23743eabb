//! Events on their way to those who follow runs.
//!
//! The log is the truth, and every reader has a cursor in it. What is here only makes reading it
//! cheap: for each run that somebody follows, the newest events as bytes that are ready to be sent,
//! made once for all readers, and a number that says how far the log goes. A driver in this process
//! tells about its commits; for those of other processes one task asks the store, for all runs in
//! one question, when the store has heard of something or a moment has passed. Nobody waits for a
//! reader: who is slow finds that the bytes are gone, and reads from the store.

mod tail;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use moothall_core::{Envelope, RunId};
use moothall_store::{Store, StoreError, StoredEvent};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use self::tail::Tail;
use crate::times::rfc3339;

/// How many events are read from the store at once, and so how many a slow reader holds.
const PAGE: u32 = 128;

/// Readers that may be in the store at once: they share its connections with everybody else.
const STORE_READERS: usize = 3;

/// How often the store is asked for what other processes wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Between two questions.
    pub look_again: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { look_again: Duration::from_millis(150) }
    }
}

/// Events of all runs that somebody follows.
pub struct Feed {
    store: Arc<dyn Store>,
    runs: Mutex<BTreeMap<RunId, Weak<RunFeed>>>,
    readers: Semaphore,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("runs", &self.runs().keys()).finish_non_exhaustive()
    }
}

/// How far the log of a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: u64,
    /// Nothing follows.
    pub(crate) terminal: bool,
    /// The run was deleted.
    pub(crate) gone: bool,
}

/// The events of one run.
pub(crate) struct RunFeed {
    run_id: RunId,
    tail: Mutex<Tail>,
    head: watch::Sender<Head>,
}

impl Feed {
    /// A feed of what is in this store. [`Feed::watch`] keeps it going.
    pub fn new(store: Arc<dyn Store>) -> Arc<Self> {
        let readers = Semaphore::new(STORE_READERS);
        Arc::new(Self { store, runs: Mutex::default(), readers })
    }

    /// A driver of this process has committed an event.
    pub fn committed(&self, run_id: &RunId, stored: &StoredEvent) {
        let followed = self.runs().get(run_id).and_then(Weak::upgrade);
        if let Some(run) = followed {
            run.push(std::slice::from_ref(stored));
        }
    }

    /// Looks for what other processes wrote, until `closing`.
    pub async fn watch(self: Arc<Self>, timing: Timing, closing: CancellationToken) {
        let mut seen = 0;
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                heard = self.store.movement(seen, timing.look_again) => seen = heard,
            }
            if let Err(error) = self.look().await {
                tracing::warn!(target: "moothall::server", %error, "events cannot be read");
            }
        }
    }

    /// The events of a run that exists.
    pub(crate) async fn follow(&self, run_id: &RunId) -> Result<Arc<RunFeed>, StoreError> {
        if let Some(run) = self.runs().get(run_id).and_then(Weak::upgrade) {
            return Ok(run);
        }
        let row = self.store.run(run_id).await?;
        let row = row.ok_or_else(|| StoreError::UnknownRun(run_id.clone()))?;
        let head = Head { seq: row.events, terminal: row.state.is_terminal(), gone: false };
        // What most readers want is the whole of a run, so the end of it is read once for all.
        let from = row.events.saturating_sub(tail::MOST_FRAMES as u64);
        let mut tail = Tail::after(from);
        while tail.end() < head.seq {
            let page = self.page(run_id, tail.end()).await?;
            if page.is_empty() {
                break;
            }
            page.iter().for_each(|stored| {
                tail.push(stored.seq, frame(run_id, stored));
            });
        }
        let end = tail.end().max(head.seq);
        let terminal = head.terminal;
        let made = Arc::new(RunFeed {
            run_id: run_id.clone(),
            tail: Mutex::new(tail),
            head: watch::Sender::new(Head { seq: end, terminal, gone: false }),
        });
        let mut runs = self.runs();
        // Another reader may have been faster, and its feed may know more.
        if let Some(run) = runs.get(run_id).and_then(Weak::upgrade) {
            return Ok(run);
        }
        runs.insert(run_id.clone(), Arc::downgrade(&made));
        Ok(made)
    }

    /// Events after a cursor, from the store.
    pub(crate) async fn page(
        &self,
        run_id: &RunId,
        after: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let _permit = self.readers.acquire().await;
        self.store.events(run_id, after, PAGE).await
    }

    /// One look at the store for every run that somebody follows.
    async fn look(&self) -> Result<(), StoreError> {
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
                run.head.send_modify(|head| head.gone = true);
                continue;
            };
            loop {
                let known = run.head().seq;
                if known >= *head {
                    break;
                }
                let page = self.page(&run.run_id, known).await?;
                if page.is_empty() {
                    break;
                }
                run.push(&page);
            }
        }
        Ok(())
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Weak<RunFeed>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunFeed {
    /// How far the log goes.
    pub(crate) fn head(&self) -> Head {
        *self.head.borrow()
    }

    /// Hears when it goes further.
    pub(crate) fn changes(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    fn is_over(&self) -> bool {
        let head = self.head();
        head.terminal || head.gone
    }

    /// Bytes of events after a cursor that are ready, with the number of the last one; nothing where
    /// they are not here.
    pub(crate) fn ready(&self, after: u64) -> Option<(u64, Bytes)> {
        self.tail().after_cursor(after, PAGE as usize)
    }

    fn push(&self, stored: &[StoredEvent]) {
        let mut tail = self.tail();
        let mut terminal = false;
        for one in stored {
            // What is known came twice; what leaves a gap comes again when the store is asked.
            if one.seq == tail.end().saturating_add(1) {
                tail.push(one.seq, frame(&self.run_id, one));
                terminal |= one.event.body.is_terminal();
            }
        }
        let seq = tail.end();
        drop(tail);
        self.head.send_if_modified(|head| {
            let further = seq > head.seq;
            if further {
                head.seq = seq;
                head.terminal |= terminal;
            }
            further
        });
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RunFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFeed").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

/// An event as it travels.
pub(crate) fn envelope(run_id: &RunId, stored: &StoredEvent) -> Envelope {
    Envelope {
        seq: stored.seq,
        run_id: run_id.clone(),
        at: rfc3339(stored.at_ms),
        body: stored.event.body.clone(),
    }
}

/// An event as a frame of a stream. Numbers and our own names are all that stands outside of the
/// JSON, which has no line breaks.
pub(crate) fn frame(run_id: &RunId, stored: &StoredEvent) -> Bytes {
    let json = serde_json::to_string(&envelope(run_id, stored)).unwrap_or_default();
    let (seq, name) = (stored.seq, stored.event.body.name());
    Bytes::from(format!("id: {seq}\nevent: {name}\ndata: {json}\n\n"))
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
