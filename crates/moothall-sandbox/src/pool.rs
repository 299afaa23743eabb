//! Sandboxes that wait for someone to use them, each for the first and last time.
//!
//! A pool holds only sandboxes that nobody used; a used one is never put back. It is filled in the
//! background after one was taken, within a budget of memory that sandboxes in use count against
//! too. Who asks when the budget is used up waits; nothing runs for them meanwhile, so no limit of
//! theirs does either.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moothall_core::sandbox::Labels;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{Engine, SandboxError, Spec, Vessel};

/// The unit of the budget: a semaphore counts to 2^29 or so, bytes do not fit.
const MIB: u64 = 1 << 20;

/// How long the end of a pool waits for sandboxes that are just being started.
const COMING: Duration = Duration::from_secs(2);

/// How a pool is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Sandboxes that wait, for each spec that was asked for. Zero means that each is started when
    /// it is asked for.
    pub idle: usize,
    /// Memory of the host that all sandboxes together may take, used and waiting.
    pub memory_bytes: u64,
}

/// A vessel with its share of the memory budget.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) vessel: Vessel,
    pub(crate) share: OwnedSemaphorePermit,
}

/// Sandboxes of one engine.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Arc<dyn Engine>,
    options: PoolOptions,
    memory: Arc<Semaphore>,
    state: Mutex<State>,
    /// Told whenever a sandbox comes to a shelf.
    put: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// By spec; the specs asked for last stand last.
    shelves: Vec<Shelf>,
    fillers: JoinSet<()>,
    closed: bool,
}

#[derive(Debug)]
struct Shelf {
    spec: Spec,
    waiting: Vec<Held>,
    /// Sandboxes that are being started for this shelf.
    coming: usize,
}

/// Specs that sandboxes are kept ready for at once; the one asked for longest ago makes room.
const MOST_SHELVES: usize = 4;

impl Pool {
    pub(crate) fn new(engine: Arc<dyn Engine>, options: PoolOptions) -> Self {
        let units = usize::try_from(options.memory_bytes / MIB).unwrap_or(usize::MAX);
        let memory = Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)));
        let (state, put) = (Mutex::default(), Notify::new());
        Self { inner: Arc::new(Inner { engine, options, memory, state, put }) }
    }

    /// A sandbox that nobody used: one that waits, or a new one. Who has to wait for memory takes
    /// one that comes to the shelf meanwhile, and ends one that comes to another shelf: they may be
    /// what holds the memory.
    pub(crate) async fn take(&self, spec: &Spec, labels: &Labels) -> Result<Held, SandboxError> {
        let mut share = pin!(self.share(spec));
        let taken = loop {
            // Listened to before the shelf is looked at, so that nothing comes in between.
            let mut put = pin!(self.inner.put.notified());
            put.as_mut().enable();
            if let Some(mut held) = self.inner.pop(spec) {
                held.vessel.end.assign(labels);
                break Ok(held);
            }
            tokio::select! {
                biased;
                share = &mut share => {
                    let share = share?;
                    let started = self.inner.engine.start(spec, labels).await;
                    break started.map(|vessel| Held { vessel, share });
                }
                () = put => {
                    if self.waiting(spec) == 0 && let Some(other) = self.inner.pop_other(spec) {
                        other.vessel.end.finish().await;
                    }
                }
            }
        };
        self.fill(spec);
        taken
    }

    /// Makes a shelf for this spec and fills it.
    pub(crate) fn expect(&self, spec: &Spec) {
        self.inner.lock().shelf(spec);
        self.fill(spec);
    }

    /// Starts what is missing on the shelf of this spec, as far as memory allows without waiting.
    pub(crate) fn fill(&self, spec: &Spec) {
        let mut state = self.inner.lock();
        if state.closed {
            return;
        }
        // Results of fillers that are done are not needed.
        while state.fillers.try_join_next().is_some() {}
        let shelf = state.shelf(spec);
        let there = shelf.waiting.len() + shelf.coming;
        for _ in there..self.inner.options.idle {
            let Ok(share) = Arc::clone(&self.inner.memory).try_acquire_many_owned(self.units(spec))
            else {
                return;
            };
            state.shelf(spec).coming += 1;
            let (inner, spec) = (Arc::clone(&self.inner), spec.clone());
            state.fillers.spawn(async move {
                let started = inner.engine.start(&spec, &Labels::default()).await;
                let held = started.map(|vessel| Held { vessel, share });
                if let Some(unwanted) = inner.put(&spec, held) {
                    unwanted.vessel.end.finish().await;
                }
            });
        }
    }

    /// Ends every sandbox that waits, and takes no more.
    pub(crate) async fn drain(&self) {
        let (shelves, mut fillers) = {
            let mut state = self.inner.lock();
            state.closed = true;
            (std::mem::take(&mut state.shelves), std::mem::take(&mut state.fillers))
        };
        // Those that come now end at once. One that is given up in the middle of its start is gone
        // later, or at the next start of this program.
        let _ = timeout(COMING, async { while fillers.join_next().await.is_some() {} }).await;
        fillers.shutdown().await;
        for held in shelves.into_iter().flat_map(|shelf| shelf.waiting) {
            held.vessel.end.finish().await;
        }
    }

    /// Sandboxes that wait for this spec now.
    pub(crate) fn waiting(&self, spec: &Spec) -> usize {
        let state = self.inner.lock();
        state.shelves.iter().find(|shelf| shelf.spec == *spec).map_or(0, |s| s.waiting.len())
    }

    fn units(&self, spec: &Spec) -> u32 {
        let units = self.inner.engine.footprint_bytes(spec).div_ceil(MIB);
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    async fn share(&self, spec: &Spec) -> Result<OwnedSemaphorePermit, SandboxError> {
        let units = self.units(spec);
        let budget = self.inner.options.memory_bytes / MIB;
        if u64::from(units) > budget {
            return Err(SandboxError::Request(format!(
                "one sandbox takes {units} MiB, all together may take {budget} MiB"
            )));
        }
        // What waits on another shelf must not keep a person waiting.
        let memory = Arc::clone(&self.inner.memory);
        loop {
            if let Ok(share) = Arc::clone(&memory).try_acquire_many_owned(units) {
                return Ok(share);
            }
            let Some(held) = self.inner.pop_other(spec) else { break };
            held.vessel.end.finish().await;
        }
        memory
            .acquire_many_owned(units)
            .await
            .map_err(|_| SandboxError::Request("the sandboxes are shut down".to_owned()))
    }
}

impl State {
    /// The shelf of a spec, which becomes the newest. Where there are too many, the oldest goes;
    /// dropping it ends what waited there.
    fn shelf(&mut self, spec: &Spec) -> &mut Shelf {
        let at = self.shelves.iter().position(|shelf| shelf.spec == *spec);
        let shelf = at.map(|at| self.shelves.remove(at)).unwrap_or_else(|| Shelf {
            spec: spec.clone(),
            waiting: Vec::new(),
            coming: 0,
        });
        if self.shelves.len() >= MOST_SHELVES {
            self.shelves.remove(0);
        }
        self.shelves.push_mut(shelf)
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self, spec: &Spec) -> Option<Held> {
        self.lock().shelf(spec).waiting.pop()
    }

    fn pop_other(&self, spec: &Spec) -> Option<Held> {
        let mut state = self.lock();
        state
            .shelves
            .iter_mut()
            .filter(|shelf| shelf.spec != *spec)
            .find_map(|shelf| shelf.waiting.pop())
    }

    /// Puts a sandbox on its shelf, or gives it back where nobody wants it any more.
    fn put(&self, spec: &Spec, started: Result<Held, SandboxError>) -> Option<Held> {
        let mut state = self.lock();
        let closed = state.closed;
        let shelf = state.shelves.iter_mut().find(|shelf| shelf.spec == *spec);
        let Some(shelf) = shelf.filter(|_| !closed) else { return started.ok() };
        shelf.coming = shelf.coming.saturating_sub(1);
        match started {
            Ok(held) => {
                shelf.waiting.push(held);
                self.put.notify_waiters();
            }
            // Whoever asks next starts one in the foreground and is told what is wrong.
            Err(error) => tracing::warn!(%error, "a sandbox for the pool did not start"),
        }
        None
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
