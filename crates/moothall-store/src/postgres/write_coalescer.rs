//! Coalesces concurrent writes to the same run into one transaction.
//!
//! Writers of a run wait for its row lock until the previous transaction is on disk. Requests of
//! one process wait here instead, and the next transaction takes all of them. A run with a hundred
//! debates needs a fraction of the transactions, and a single request has no added delay.
//!
//! Implemented by hand because batching crates collect requests for a fixed time and fail them
//! together. Here no request waits to be batched, and a request that conflicts with the journal
//! fails alone.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moothall_core::RunId;
use sqlx::postgres::PgPool;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::commit::{WriteReply, WriteRequest, write};
use super::with_retries;
use crate::StoreError;

/// Maximum requests per transaction, to bound the wait of those queued behind.
const MAX_REQUESTS: usize = 64;

/// Maximum text bytes per transaction, unless the first request alone exceeds it.
const MAX_BYTES: usize = 4 << 20;

/// Queued requests by run. A run has an entry while a task is writing its requests.
type Lanes = BTreeMap<RunId, VecDeque<QueuedWrite>>;

#[derive(Debug)]
struct QueuedWrite {
    request: WriteRequest,
    answer: oneshot::Sender<Answer>,
}

type Answer = Result<WriteReply, StoreError>;

#[derive(Debug, Default)]
pub(crate) struct WriteCoalescer {
    queues: Arc<Mutex<Lanes>>,
}

impl WriteCoalescer {
    /// Writes a request. If the future is dropped, the request may still be written.
    pub(crate) async fn send(&self, pool: &PgPool, id: &RunId, request: WriteRequest) -> Answer {
        let (answer, answered) = oneshot::channel();
        let queued = QueuedWrite { request, answer };
        if self.enqueue(id, queued) {
            let driver =
                QueueWriter { queues: Arc::clone(&self.queues), id: id.clone(), active: true };
            // Spawned, because the first caller may be dropped while others depend on the task.
            tokio::spawn(driver.drive(pool.clone()));
        }
        answered.await.unwrap_or(Err(StoreError::Database(sqlx::Error::WorkerCrashed)))
    }

    /// Queues a request. Returns true if the queue was empty, so no task is writing.
    fn enqueue(&self, id: &RunId, queued: QueuedWrite) -> bool {
        match lock(&self.queues).entry(id.clone()) {
            Entry::Occupied(mut queue) => {
                queue.get_mut().push_back(queued);
                false
            }
            Entry::Vacant(queue) => {
                queue.insert(VecDeque::from([queued]));
                true
            }
        }
    }
}

fn lock(queues: &Mutex<Lanes>) -> MutexGuard<'_, Lanes> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the requests of a run until none is left.
struct QueueWriter {
    queues: Arc<Mutex<Lanes>>,
    id: RunId,
    active: bool,
}

impl QueueWriter {
    async fn drive(mut self, pool: PgPool) {
        loop {
            let next = self.next();
            if next.is_empty() {
                return;
            }
            write_group(&pool, &self.id, next).await;
        }
    }

    /// Takes the next group of requests; removes the run's queue if it is empty.
    fn next(&mut self) -> Vec<QueuedWrite> {
        let mut queues = lock(&self.queues);
        let next = queues.get_mut(&self.id).map(take_next).unwrap_or_default();
        if next.is_empty() {
            queues.remove(&self.id);
            self.active = false;
        }
        next
    }
}

impl Drop for QueueWriter {
    /// After a panic, removes the queue so that its requests fail instead of waiting forever.
    fn drop(&mut self) {
        if self.active {
            lock(&self.queues).remove(&self.id);
        }
    }
}

/// Takes the first queued request and those behind it that can share its transaction.
fn take_next(queue: &mut VecDeque<QueuedWrite>) -> Vec<QueuedWrite> {
    let Some(first) = queue.pop_front() else { return Vec::new() };
    let mut bytes = first.request.bytes();
    let may_share = first.request.may_share();
    let mut next = vec![first];
    while may_share && next.len() < MAX_REQUESTS {
        let joins = queue.pop_front_if(|queued| {
            bytes = bytes.saturating_add(queued.request.bytes());
            queued.request.may_share() && bytes <= MAX_BYTES
        });
        match joins {
            Some(queued) => next.push(queued),
            None => break,
        }
    }
    next
}

async fn write_group(pool: &PgPool, id: &RunId, group: Vec<QueuedWrite>) {
    let requests: Vec<&WriteRequest> = group.iter().map(|queued| &queued.request).collect();
    match with_retries(|| write(pool, id, &requests)).await {
        Ok(replies) => {
            for (QueuedWrite { answer, .. }, reply) in group.into_iter().zip(replies) {
                // The caller may be gone.
                let _ = answer.send(Ok(reply));
            }
        }
        Err(error) => match <[QueuedWrite; 1]>::try_from(group) {
            Ok([QueuedWrite { answer, .. }]) => drop(answer.send(Err(error))),
            // Either one request fails the group, or the database fails; try each one separately.
            Err(group) => write_separately(pool, id, group).await,
        },
    }
}

async fn write_separately(pool: &PgPool, id: &RunId, requests: Vec<QueuedWrite>) {
    let mut tasks = JoinSet::new();
    for QueuedWrite { request, answer } in requests {
        let (pool, id) = (pool.clone(), id.clone());
        tasks.spawn(async move {
            let written = write(&pool, &id, &[&request]).await;
            let written = written.map(|replies| replies.into_iter().next().unwrap_or_default());
            let _ = answer.send(written);
        });
    }
    while tasks.join_next().await.is_some() {}
}
