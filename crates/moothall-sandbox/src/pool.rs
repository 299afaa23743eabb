//! A pool of idle sandboxes, each of which is used once.
//!
//! A pool has only unused sandboxes; used ones are never returned. It is refilled in the
//! background, within a memory budget that also covers sandboxes in use. When the budget is
//! exhausted, callers wait; their time limits have not started yet.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use moothall_core::sandbox::SandboxLabels;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::memory_budget::{IdleSandboxes, MIB, MemoryBudget};
use crate::{SandboxEngine, SandboxError, SandboxSpec, StartedSandbox};

/// How long `drain` waits for sandboxes that are being started. On a busy host a start takes
/// seconds, and what an interrupted one leaves is only removed when the program starts again.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Age up to which a sandbox is handed out without a refresh. Tests refresh every sandbox.
const FRESH: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(10) };

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
    pub(crate) sandbox: StartedSandbox,
    pub(crate) share: OwnedSemaphorePermit,
    started_at: SystemTime,
}

impl PooledSandbox {
    fn new(sandbox: StartedSandbox, share: OwnedSemaphorePermit) -> Self {
        Self { sandbox, share, started_at: SystemTime::now() }
    }

    /// Whether its clock may be wrong. It drifts, and stops while the host is suspended, so this
    /// compares times of day.
    fn is_outdated(&self) -> bool {
        !self.started_at.elapsed().is_ok_and(|age| age <= FRESH)
    }
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
    slots: Vec<PoolSlot>,
    fillers: JoinSet<()>,
    closed: bool,
}

#[derive(Debug)]
struct PoolSlot {
    spec: SandboxSpec,
    idle: Vec<PooledSandbox>,
    /// Sandboxes being started for this slot.
    starting: usize,
}

/// Maximum number of specs with idle sandboxes. The least recently requested one is evicted.
const MAX_SLOTS: usize = 4;

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
            let mut became_idle = pin!(self.inner.options.memory.idle().notified());
            became_idle.as_mut().enable();
            if let Some(mut pooled) = self.inner.pop(spec) {
                if pooled.is_outdated()
                    && let Err(error) = pooled.sandbox.session.refresh().await
                {
                    tracing::warn!(%error, "an idle sandbox does not answer; trying another");
                    pooled.sandbox.end.finish().await;
                    continue;
                }
                pooled.sandbox.end.assign(labels);
                break Ok(pooled);
            }
            tokio::select! {
                biased;
                share = &mut share => {
                    let share = share?;
                    let started = self.inner.engine.start(spec, labels).await;
                    break started.map(|sandbox| PooledSandbox::new(sandbox, share));
                }
                () = became_idle => {
                    if self.idle_count(spec) > 0 {
                        continue;
                    }
                    if let Some(other) = self.inner.pop_other(spec) {
                        other.sandbox.end.finish().await;
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
    pub(crate) fn prewarm(&self, spec: &SandboxSpec) {
        self.inner.lock().slot(spec);
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
        let slot = state.slot(spec);
        let existing = slot.idle.len() + slot.starting;
        for _ in existing..self.inner.options.idle {
            let memory = Arc::clone(self.inner.options.memory.free());
            let Ok(share) = memory.try_acquire_many_owned(self.units(spec)) else {
                return;
            };
            state.slot(spec).starting += 1;
            let (inner, spec) = (Arc::clone(&self.inner), spec.clone());
            state.fillers.spawn(async move {
                let started = inner.engine.start(&spec, &SandboxLabels::default()).await;
                let pooled = started.map(|sandbox| PooledSandbox::new(sandbox, share));
                if let Some(unwanted) = inner.put(&spec, pooled) {
                    unwanted.sandbox.end.finish().await;
                }
            });
        }
    }

    /// Ends all idle sandboxes and closes the pool.
    pub(crate) async fn drain(&self) {
        let (slots, mut fillers) = {
            let mut state = self.inner.lock();
            state.closed = true;
            (std::mem::take(&mut state.slots), std::mem::take(&mut state.fillers))
        };
        // First, because a caller may give up before the slowest start has ended.
        for pooled in slots.into_iter().flat_map(|slot| slot.idle) {
            pooled.sandbox.end.finish().await;
        }
        // Sandboxes that finish starting now are ended immediately. An interrupted start is cleaned
        // up later, or by the reaper the next time the program starts.
        let _ =
            timeout(DRAIN_TIMEOUT, async { while fillers.join_next().await.is_some() {} }).await;
        fillers.shutdown().await;
    }

    /// Number of idle sandboxes for this spec.
    pub(crate) fn idle_count(&self, spec: &SandboxSpec) -> usize {
        let state = self.inner.lock();
        state.slots.iter().find(|slot| slot.spec == *spec).map_or(0, |s| s.idle.len())
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
            if let Some(pooled) = self.inner.pop_other(spec) {
                pooled.sandbox.end.finish().await;
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
    fn slot(&mut self, spec: &SandboxSpec) -> &mut PoolSlot {
        let at = self.slots.iter().position(|slot| slot.spec == *spec);
        let slot = at.map(|at| self.slots.remove(at)).unwrap_or_else(|| PoolSlot {
            spec: spec.clone(),
            idle: Vec::new(),
            starting: 0,
        });
        if self.slots.len() >= MAX_SLOTS {
            self.slots.remove(0);
        }
        self.slots.push_mut(slot)
    }
}

impl IdleSandboxes for SandboxPoolInner {
    fn pop_idle(&self) -> Option<(StartedSandbox, OwnedSemaphorePermit)> {
        let pooled = self.lock().slots.iter_mut().find_map(|slot| slot.idle.pop())?;
        Some((pooled.sandbox, pooled.share))
    }
}

impl SandboxPoolInner {
    fn lock(&self) -> std::sync::MutexGuard<'_, SandboxPoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self, spec: &SandboxSpec) -> Option<PooledSandbox> {
        self.lock().slot(spec).idle.pop()
    }

    fn pop_other(&self, spec: &SandboxSpec) -> Option<PooledSandbox> {
        let mut state = self.lock();
        state.slots.iter_mut().filter(|slot| slot.spec != *spec).find_map(|slot| slot.idle.pop())
    }

    /// Adds a sandbox to its slot, or returns it if it is no longer needed.
    fn put(
        &self,
        spec: &SandboxSpec,
        started: Result<PooledSandbox, SandboxError>,
    ) -> Option<PooledSandbox> {
        let mut state = self.lock();
        let closed = state.closed;
        let slot = state.slots.iter_mut().find(|slot| slot.spec == *spec);
        let Some(slot) = slot.filter(|_| !closed) else { return started.ok() };
        slot.starting = slot.starting.saturating_sub(1);
        match started {
            Ok(pooled) => {
                slot.idle.push(pooled);
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
