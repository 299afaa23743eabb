//! The memory limit of all sandboxes of a process. Several pools may share one.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::StartedSandbox;

/// Unit of the budget. Bytes would exceed the maximum of a semaphore.
pub(crate) const MIB: u64 = 1 << 20;

/// Host memory for sandboxes, idle and in use. Cheap to clone; clones share the memory.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    inner: Arc<MemoryBudgetInner>,
}

#[derive(Debug)]
struct MemoryBudgetInner {
    mib: u64,
    free: Arc<Semaphore>,
    /// Notified whenever a sandbox of any pool becomes idle.
    idle: Notify,
    /// Pools whose idle sandboxes make way for requests to other pools.
    pools: Mutex<Vec<Weak<dyn IdleSandboxes>>>,
}

/// A pool that can give up an idle sandbox.
pub(crate) trait IdleSandboxes: Debug + Send + Sync {
    fn pop_idle(&self) -> Option<(StartedSandbox, OwnedSemaphorePermit)>;
}

impl MemoryBudget {
    pub fn new(bytes: u64) -> Self {
        let mib = bytes / MIB;
        let units = usize::try_from(mib).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(units));
        let (idle, pools) = (Notify::new(), Mutex::default());
        Self { inner: Arc::new(MemoryBudgetInner { mib, free, idle, pools }) }
    }

    /// The limit in MiB.
    pub(crate) fn mib(&self) -> u64 {
        self.inner.mib
    }

    pub(crate) fn free(&self) -> &Arc<Semaphore> {
        &self.inner.free
    }

    /// Notified whenever a sandbox of any pool becomes idle.
    pub(crate) fn idle(&self) -> &Notify {
        &self.inner.idle
    }

    pub(crate) fn add_pool(&self, pool: Weak<dyn IdleSandboxes>) {
        let mut pools = self.inner.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(pool);
    }

    /// An idle sandbox of any pool.
    pub(crate) fn pop_idle(&self) -> Option<(StartedSandbox, OwnedSemaphorePermit)> {
        let pools = self.inner.pools.lock().unwrap_or_else(PoisonError::into_inner).clone();
        pools.iter().filter_map(Weak::upgrade).find_map(|pool| pool.pop_idle())
    }
}
