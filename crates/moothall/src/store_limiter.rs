//! Provider limits shared by all workers of a cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moothall_models::{EnterFuture, MinuteQuota, Pass, QuotaFuture, SharedLimiter};
use tokio::sync::Notify;

use crate::run_store::{ConcurrencySlot, RunStore};

/// Poll interval for slots released by other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Concurrency slots in the shared store. The slots of a process that dies are released
/// immediately; a suspended process keeps its slots.
#[derive(Debug)]
pub(crate) struct StoreLimiter {
    local: Arc<RunStore>,
    lanes: Mutex<BTreeMap<String, Arc<LimiterQueue>>>,
}

/// Waiters in this process. Only the first one polls the store.
#[derive(Debug, Default)]
struct LimiterQueue {
    turn: tokio::sync::Mutex<()>,
    freed: Notify,
}

#[derive(Debug)]
struct StoreLimiterPermit {
    slot: Option<ConcurrencySlot>,
    queue: Arc<LimiterQueue>,
}

impl Drop for StoreLimiterPermit {
    fn drop(&mut self) {
        drop(self.slot.take());
        self.queue.freed.notify_one();
    }
}

impl StoreLimiter {
    pub(crate) fn new(local: Arc<RunStore>) -> Self {
        Self { local, lanes: Mutex::default() }
    }

    fn queue(&self, lane: &str) -> Arc<LimiterQueue> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        // An unused queue has no state. Clients choose the models that name lanes.
        lanes.retain(|_, queue| Arc::strong_count(queue) > 1);
        Arc::clone(lanes.entry(lane.to_owned()).or_default())
    }

    async fn acquire(&self, lane: &str, width: u32) -> StoreLimiterPermit {
        let queue = self.queue(lane);
        let slot = {
            let _turn = queue.turn.lock().await;
            loop {
                // If the store fails, the number of calls in progress is unknown, so no call may
                // start.
                if let Ok(Some(slot)) = self.local.slot(lane, width).await {
                    break slot;
                }
                let _ = tokio::time::timeout(POLL_INTERVAL, queue.freed.notified()).await;
            }
        };
        StoreLimiterPermit { slot: Some(slot), queue }
    }
}

impl SharedLimiter for StoreLimiter {
    fn enter<'a>(&'a self, lane: &'a str, width: u32) -> EnterFuture<'a> {
        Box::pin(async move { Box::new(self.acquire(lane, width).await) as Pass })
    }

    fn wait_for_quota<'a>(
        &'a self,
        name: &'a str,
        amount: u64,
        quota: MinuteQuota,
    ) -> QuotaFuture<'a> {
        Box::pin(async move {
            // One call of this process books at a time: a run that pauses leaves at most one
            // booking unused, for which every process would wait.
            let queue = self.queue(name);
            let _turn = queue.turn.lock().await;
            for part in quota.steps(amount) {
                // If the store fails, the use of the quota is unknown, so no call may start.
                let wait = loop {
                    match self.local.book_quota(name, part.get(), quota).await {
                        Ok(wait) => break wait,
                        Err(error) => {
                            tracing::warn!(%error, "cannot read a shared limit, trying again");
                            tokio::time::sleep(POLL_INTERVAL).await;
                        }
                    }
                };
                tokio::time::sleep(wait).await;
            }
        })
    }
}
