//! One poll for cancel and pause requests for all steps of a process. Otherwise a thousand debates
//! waiting for slow models would query the store two thousand times a second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::RunId;
use moothall_store::{ControlRequest, Store, StoreError};
use tokio::sync::watch;

/// How often the store is polled for requests.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Polls one store for all runs that have steps in progress in this process.
#[derive(Debug, Default)]
pub struct ControlPoller(Mutex<PolledRuns>);

type Requests = BTreeSet<ControlRequest>;

#[derive(Debug, Default)]
struct PolledRuns {
    /// The pending requests of each run.
    runs: BTreeMap<RunId, watch::Sender<Requests>>,
    is_polling: bool,
}

impl ControlPoller {
    /// Waits until this is requested for the run.
    pub async fn requested(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        run_id: &RunId,
        request: ControlRequest,
    ) {
        let mut requests = self.watch(store, run_id);
        if requests.wait_for(|requests| requests.contains(&request)).await.is_err() {
            // The poller is gone because this process is shutting down.
            std::future::pending().await
        }
    }

    fn watch(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        run_id: &RunId,
    ) -> watch::Receiver<Requests> {
        let mut watched = self.lock();
        let sender = watched.runs.entry(run_id.clone()).or_default();
        if sender.receiver_count() == 0 {
            // What was found for earlier steps may be out of date, such as a pause that has ended.
            sender.send_replace(Requests::new());
        }
        let requests = sender.subscribe();
        if !std::mem::replace(&mut watched.is_polling, true) {
            tokio::spawn(PollTask(Arc::clone(self)).poll(Arc::clone(store)));
        }
        requests
    }

    /// The runs that still have a waiter.
    fn watched_runs(&self) -> Vec<RunId> {
        let mut watched = self.lock();
        watched.runs.retain(|_, requests| requests.receiver_count() > 0);
        watched.is_polling = !watched.runs.is_empty();
        watched.runs.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, PolledRuns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that polls for all runs.
struct PollTask(Arc<ControlPoller>);

impl Drop for PollTask {
    /// Lets the next step start a new poller after a panic.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_polling = false;
        }
    }
}

impl PollTask {
    async fn poll(self, store: Arc<dyn Store>) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let ids = self.0.watched_runs();
            if ids.is_empty() {
                return;
            }
            // Retried at the next poll.
            if let Err(error) = self.look(&*store, &ids).await {
                tracing::debug!(target: "moothall::run", %error, "cannot read cancel and pause requests");
            }
        }
    }

    async fn look(&self, store: &dyn Store, ids: &[RunId]) -> Result<(), StoreError> {
        for request in [ControlRequest::Cancel, ControlRequest::Pause] {
            let requested = store.runs_with_control_request(ids, request).await?;
            let watched = self.0.lock();
            for sender in requested.iter().filter_map(|id| watched.runs.get(id)) {
                sender.send_if_modified(|requests| requests.insert(request));
            }
        }
        Ok(())
    }
}
