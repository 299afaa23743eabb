//! What a provider allows, shared by all workers of a cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moothall_models::{EnterFuture, Pass, Turnstile};
use tokio::sync::Notify;

use crate::local::{Local, Slot};

/// How often one who waits looks for a slot that another process gave back.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Slots of the store that the workers share. A process that dies gives its slots back at once, and
/// one that merely stands still keeps them.
#[derive(Debug)]
pub(crate) struct SharedTurnstile {
    local: Arc<Local>,
    lanes: Mutex<BTreeMap<String, Arc<Queue>>>,
}

/// Those of this process who wait. Only the first of them asks the store.
#[derive(Debug, Default)]
struct Queue {
    turn: tokio::sync::Mutex<()>,
    freed: Notify,
}

#[derive(Debug)]
struct Held {
    slot: Option<Slot>,
    queue: Arc<Queue>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.slot.take());
        self.queue.freed.notify_one();
    }
}

impl SharedTurnstile {
    pub(crate) fn new(local: Arc<Local>) -> Self {
        Self { local, lanes: Mutex::default() }
    }

    fn queue(&self, lane: &str) -> Arc<Queue> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lanes.entry(lane.to_owned()).or_default())
    }

    async fn pass(&self, lane: &str, width: u32) -> Held {
        let queue = self.queue(lane);
        let slot = {
            let _turn = queue.turn.lock().await;
            loop {
                // While nobody can say how many calls are under way, none may begin.
                if let Ok(Some(slot)) = self.local.slot(lane, width).await {
                    break slot;
                }
                let _ = tokio::time::timeout(LOOK_AGAIN, queue.freed.notified()).await;
            }
        };
        Held { slot: Some(slot), queue }
    }
}

impl Turnstile for SharedTurnstile {
    fn enter<'a>(&'a self, lane: &'a str, width: u32) -> EnterFuture<'a> {
        Box::pin(async move { Box::new(self.pass(lane, width).await) as Pass })
    }
}
