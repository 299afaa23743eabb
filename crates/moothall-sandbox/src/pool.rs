//! A pool of idle sandboxes, each of which is used once.
//!
//! A pool has only unused sandboxes; used ones are never returned. It is refilled in the
//! background, within a memory budget that also covers sandboxes in use. When the budget is
//! exhausted, callers wait; their time limits have not started yet.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use moothall_core::sandbox::SandboxLabels;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::memory_budget::{IdleSandboxes, MIB, MemoryBudget};
use crate::{SandboxEngine, SandboxError, SandboxSpec, StartedSandbox};

/// How long `drain` waits for sandboxes that are being started.
const COMING: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// Number of idle sandboxes for each spec. With zero, every sandbox is started on demand.
    pub idle: usize,
    /// Host memory for the sandboxes, shared with other pools.
    pub memory: MemoryBudget,
}

/// A sandbox with its share of the memory budget.
#[derive(Debug)]
pub(crate) struct PooledSandbox {
    pub(crate) vessel: StartedSandbox,
    pub(crate) share: OwnedSemaphorePermit,
}

/// The sandbox pool of one engine.
#[derive(Debug, Clone)]
pub(crate) struct SandboxPool {
    inner: Arc<SandboxPoolInner>,
}

#[derive(Debug)]
struct SandboxPoolInner {
    engine: Arc<dyn SandboxEngine>,
    options: PoolOptions,
    state: Mutex<SandboxPoolState>,
}

#[derive(Debug, Default)]
struct SandboxPoolState {
    /// One per spec, least recently requested first.
    shelves: Vec<PoolSlot>,
    fillers: JoinSet<()>,
    closed: bool,
}

#[derive(Debug)]
struct PoolSlot {
    spec: SandboxSpec,
    waiting: Vec<PooledSandbox>,
    /// Sandboxes being started for this slot.
    coming: usize,
}

/// Maximum number of specs with idle sandboxes. The least recently requested one is evicted.
const MOST_SHELVES: usize = 4;

impl SandboxPool {
    pub(crate) fn new(engine: Arc<dyn SandboxEngine>, options: PoolOptions) -> Self {
        let inner = Arc::new(SandboxPoolInner { engine, options, state: Mutex::default() });
        let pool: Weak<SandboxPoolInner> = Arc::downgrade(&inner);
        inner.options.memory.add_pool(pool);
        Self { inner }
    }

    /// Returns an unused sandbox: an idle one or a new one. While waiting for memory, takes a
    /// sandbox that becomes idle for this spec, and ends one that becomes idle for another spec,
    /// because it may hold the memory.
    pub(crate) async fn take(
        &self,
        spec: &SandboxSpec,
        labels: &SandboxLabels,
    ) -> Result<PooledSandbox, SandboxError> {
        let mut share = pin!(self.share(spec));
        let taken = loop {
            // Register before checking the slot, so no notification is missed.
            let mut put = pin!(self.inner.options.memory.idle().notified());
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
                    break started.map(|vessel| PooledSandbox { vessel, share });
                }
                () = put => {
                    if self.waiting(spec) > 0 {
                        continue;
                    }
                    if let Some(other) = self.inner.pop_other(spec) {
                        other.vessel.end.finish().await;
                    } else if let Some((idle, _share)) = self.inner.options.memory.pop_idle() {
                        idle.end.finish().await;
                    }
                }
            }
        };
        self.fill(spec);
        taken
    }

    /// Creates a slot for this spec and fills it.
    pub(crate) fn expect(&self, spec: &SandboxSpec) {
        self.inner.lock().shelf(spec);
        self.fill(spec);
    }

    /// Starts the missing sandboxes for this spec, as far as memory is available without waiting.
    pub(crate) fn fill(&self, spec: &SandboxSpec) {
        let mut state = self.inner.lock();
        if state.closed {
            return;
        }
        // Discard the results of finished tasks.
        while state.fillers.try_join_next().is_some() {}
        let shelf = state.shelf(spec);
        let there = shelf.waiting.len() + shelf.coming;
        for _ in there..self.inner.options.idle {
            let memory = Arc::clone(self.inner.options.memory.free());
            let Ok(share) = memory.try_acquire_many_owned(self.units(spec)) else {
                return;
            };
            state.shelf(spec).coming += 1;
            let (inner, spec) = (Arc::clone(&self.inner), spec.clone());
            state.fillers.spawn(async move {
                let started = inner.engine.start(&spec, &SandboxLabels::default()).await;
                let held = started.map(|vessel| PooledSandbox { vessel, share });
                if let Some(unwanted) = inner.put(&spec, held) {
                    unwanted.vessel.end.finish().await;
                }
            });
        }
    }

    /// Ends all idle sandboxes and closes the pool.
    pub(crate) async fn drain(&self) {
        let (shelves, mut fillers) = {
            let mut state = self.inner.lock();
            state.closed = true;
            (std::mem::take(&mut state.shelves), std::mem::take(&mut state.fillers))
        };
        // Sandboxes that finish starting now are ended immediately. An interrupted start is cleaned
        // up later, or by the reaper the next time the program starts.
        let _ = timeout(COMING, async { while fillers.join_next().await.is_some() {} }).await;
        fillers.shutdown().await;
        for held in shelves.into_iter().flat_map(|shelf| shelf.waiting) {
            held.vessel.end.finish().await;
        }
    }

    /// Number of idle sandboxes for this spec.
    pub(crate) fn waiting(&self, spec: &SandboxSpec) -> usize {
        let state = self.inner.lock();
        state.shelves.iter().find(|shelf| shelf.spec == *spec).map_or(0, |s| s.waiting.len())
    }

    fn units(&self, spec: &SandboxSpec) -> u32 {
        let units = self.inner.engine.footprint_bytes(spec).div_ceil(MIB);
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    async fn share(&self, spec: &SandboxSpec) -> Result<OwnedSemaphorePermit, SandboxError> {
        let units = self.units(spec);
        let budget = self.inner.options.memory.mib();
        if u64::from(units) > budget {
            return Err(SandboxError::Request(format!(
                "one sandbox needs {units} MiB, but the limit for all sandboxes is {budget} MiB; \
                 lower `--memory`, or raise `isolation.memory_mib`"
            )));
        }
        // Idle sandboxes for other specs and of other pools must not block a request.
        let memory = Arc::clone(self.inner.options.memory.free());
        loop {
            if let Ok(share) = Arc::clone(&memory).try_acquire_many_owned(units) {
                return Ok(share);
            }
            if let Some(held) = self.inner.pop_other(spec) {
                held.vessel.end.finish().await;
            } else if let Some((idle, _share)) = self.inner.options.memory.pop_idle() {
                idle.end.finish().await;
            } else {
                break;
            }
        }
        memory
            .acquire_many_owned(units)
            .await
            .map_err(|_| SandboxError::Request("the sandboxes are shut down".to_owned()))
    }
}

impl SandboxPoolState {
    /// Returns the slot for a spec and marks it as most recently used. If there are too many, drops
    /// the oldest one, which ends its sandboxes.
    fn shelf(&mut self, spec: &SandboxSpec) -> &mut PoolSlot {
        let at = self.shelves.iter().position(|shelf| shelf.spec == *spec);
        let shelf = at.map(|at| self.shelves.remove(at)).unwrap_or_else(|| PoolSlot {
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

impl IdleSandboxes for SandboxPoolInner {
    fn pop_idle(&self) -> Option<(StartedSandbox, OwnedSemaphorePermit)> {
        let held = self.lock().shelves.iter_mut().find_map(|shelf| shelf.waiting.pop())?;
        Some((held.vessel, held.share))
    }
}

impl SandboxPoolInner {
    fn lock(&self) -> std::sync::MutexGuard<'_, SandboxPoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self, spec: &SandboxSpec) -> Option<PooledSandbox> {
        self.lock().shelf(spec).waiting.pop()
    }

    fn pop_other(&self, spec: &SandboxSpec) -> Option<PooledSandbox> {
        let mut state = self.lock();
        state
            .shelves
            .iter_mut()
            .filter(|shelf| shelf.spec != *spec)
            .find_map(|shelf| shelf.waiting.pop())
    }

    /// Adds a sandbox to its slot, or returns it if it is no longer needed.
    fn put(
        &self,
        spec: &SandboxSpec,
        started: Result<PooledSandbox, SandboxError>,
    ) -> Option<PooledSandbox> {
        let mut state = self.lock();
        let closed = state.closed;
        let shelf = state.shelves.iter_mut().find(|shelf| shelf.spec == *spec);
        let Some(shelf) = shelf.filter(|_| !closed) else { return started.ok() };
        shelf.coming = shelf.coming.saturating_sub(1);
        match started {
            Ok(held) => {
                shelf.waiting.push(held);
                self.options.memory.idle().notify_waiters();
            }
            // The next request starts one in the foreground and gets the error.
            Err(error) => tracing::warn!(%error, "cannot start a sandbox for the pool"),
        }
        None
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
