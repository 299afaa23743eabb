//! Requests that wait for the same run travel together.
//!
//! Whoever writes to a run waits at its row until the transaction before has reached the disk. Requests
//! of one process wait here instead, and the next transaction takes all of them: a run with a hundred
//! debates needs a fraction of the transactions, and a request without company does not wait for any.
//!
//! By hand: crates that batch requests gather them for a while and fail them together. Here nobody
//! waits for company, and a request that contradicts the journal fails alone.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moothall_core::RunId;
use sqlx::postgres::PgPool;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::commit::{Reply, Request, write};
use super::patiently;
use crate::StoreError;

/// Requests in one transaction, at most: whoever waits behind them does not wait for long.
const MOST_REQUESTS: usize = 64;

/// Bytes of text in one transaction, unless its first request alone has more.
const MOST_BYTES: usize = 4 << 20;

/// Requests that wait, by run. A run is here as long as a driver takes its requests to the database.
type Lanes = BTreeMap<RunId, VecDeque<Waiting>>;

#[derive(Debug)]
struct Waiting {
    request: Request,
    answer: oneshot::Sender<Answer>,
}

type Answer = Result<Reply, StoreError>;

#[derive(Debug, Default)]
pub(super) struct Convoy {
    lanes: Arc<Mutex<Lanes>>,
}

impl Convoy {
    /// Takes a request to the database. One whose future is dropped may arrive all the same.
    pub(super) async fn send(&self, pool: &PgPool, id: &RunId, request: Request) -> Answer {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { request, answer };
        if self.wait_behind_others(id, waiting) {
            let driver = Driver { lanes: Arc::clone(&self.lanes), id: id.clone(), goes_on: true };
            // On its own: whoever came first may be dropped while others count on it.
            tokio::spawn(driver.drive(pool.clone()));
        }
        answered.await.unwrap_or(Err(StoreError::Database(sqlx::Error::WorkerCrashed)))
    }

    /// Whether there was nobody, and so no driver.
    fn wait_behind_others(&self, id: &RunId, waiting: Waiting) -> bool {
        match lock(&self.lanes).entry(id.clone()) {
            Entry::Occupied(mut lane) => {
                lane.get_mut().push_back(waiting);
                false
            }
            Entry::Vacant(lane) => {
                lane.insert(VecDeque::from([waiting]));
                true
            }
        }
    }
}

fn lock(lanes: &Mutex<Lanes>) -> MutexGuard<'_, Lanes> {
    lanes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the requests of a run to the database until none is left.
struct Driver {
    lanes: Arc<Mutex<Lanes>>,
    id: RunId,
    goes_on: bool,
}

impl Driver {
    async fn drive(mut self, pool: PgPool) {
        loop {
            let next = self.next();
            if next.is_empty() {
                return;
            }
            travel(&pool, &self.id, next).await;
        }
    }

    /// Those who travel next; the lane is gone where there is nobody.
    fn next(&mut self) -> Vec<Waiting> {
        let mut lanes = lock(&self.lanes);
        let next = lanes.get_mut(&self.id).map(take_next).unwrap_or_default();
        if next.is_empty() {
            lanes.remove(&self.id);
            self.goes_on = false;
        }
        next
    }
}

impl Drop for Driver {
    /// After a panic nobody waits for a driver that will not come.
    fn drop(&mut self) {
        if self.goes_on {
            lock(&self.lanes).remove(&self.id);
        }
    }
}

/// The first request that waits, and those behind it that may travel with it.
fn take_next(lane: &mut VecDeque<Waiting>) -> Vec<Waiting> {
    let Some(first) = lane.pop_front() else { return Vec::new() };
    let mut bytes = first.request.bytes();
    let may_share = first.request.may_share();
    let mut next = vec![first];
    while may_share && next.len() < MOST_REQUESTS {
        let joins = lane.pop_front_if(|waiting| {
            bytes = bytes.saturating_add(waiting.request.bytes());
            waiting.request.may_share() && bytes <= MOST_BYTES
        });
        match joins {
            Some(waiting) => next.push(waiting),
            None => break,
        }
    }
    next
}

async fn travel(pool: &PgPool, id: &RunId, together: Vec<Waiting>) {
    let requests: Vec<&Request> = together.iter().map(|waiting| &waiting.request).collect();
    match patiently(|| write(pool, id, &requests)).await {
        Ok(replies) => {
            for (Waiting { answer, .. }, reply) in together.into_iter().zip(replies) {
                // Nobody may be left to hear it.
                let _ = answer.send(Ok(reply));
            }
        }
        Err(error) => match <[Waiting; 1]>::try_from(together) {
            Ok([Waiting { answer, .. }]) => drop(answer.send(Err(error))),
            // One of them is in the way of the others, or the database is in the way of all.
            Err(together) => travel_alone(pool, id, together).await,
        },
    }
}

async fn travel_alone(pool: &PgPool, id: &RunId, requests: Vec<Waiting>) {
    let mut under_way = JoinSet::new();
    for Waiting { request, answer } in requests {
        let (pool, id) = (pool.clone(), id.clone());
        under_way.spawn(async move {
            let written = write(&pool, &id, &[&request]).await;
            let written = written.map(|replies| replies.into_iter().next().unwrap_or_default());
            let _ = answer.send(written);
        });
    }
    while under_way.join_next().await.is_some() {}
}
