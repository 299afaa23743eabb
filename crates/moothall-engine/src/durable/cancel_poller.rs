//! One cancellation poll for all steps of a process. Otherwise a thousand debates waiting for slow
//! models would query the store two thousand times a second.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::RunId;
use moothall_store::{ControlRequest, Store};
use tokio::sync::watch;

/// How often the store is polled for cancel requests.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Polls one store for all runs that have steps in progress in this process.
#[derive(Debug, Default)]
pub struct CancelPoller(Mutex<PolledRuns>);

#[derive(Debug, Default)]
struct PolledRuns {
    /// Whether each run has been cancelled.
    runs: BTreeMap<RunId, watch::Sender<bool>>,
    is_polling: bool,
}

impl CancelPoller {
    /// Waits until cancellation of the run is requested.
    pub async fn cancelled(self: &Arc<Self>, store: &Arc<dyn Store>, run_id: &RunId) {
        let mut cancellation = self.watch(store, run_id);
        if cancellation.wait_for(|cancelled| *cancelled).await.is_err() {
            // The poller is gone because this process is shutting down.
            std::future::pending().await
        }
    }

    fn watch(self: &Arc<Self>, store: &Arc<dyn Store>, run_id: &RunId) -> watch::Receiver<bool> {
        let mut watched = self.lock();
        let cancellation = watched.runs.entry(run_id.clone()).or_default().subscribe();
        if !std::mem::replace(&mut watched.is_polling, true) {
            tokio::spawn(PollTask(Arc::clone(self)).poll(Arc::clone(store)));
        }
        cancellation
    }

    /// The runs that still have a waiter.
    fn watched_runs(&self) -> Vec<RunId> {
        let mut watched = self.lock();
        watched.runs.retain(|_, cancellation| cancellation.receiver_count() > 0);
        watched.is_polling = !watched.runs.is_empty();
        watched.runs.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, PolledRuns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that polls for all runs.
struct PollTask(Arc<CancelPoller>);

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
        let Self(poller) = &self;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let ids = poller.watched_runs();
            if ids.is_empty() {
                return;
            }
            match store.runs_with_control_request(&ids, ControlRequest::Cancel).await {
                Ok(cancelled) => {
                    let watched = poller.lock();
                    for cancellation in cancelled.iter().filter_map(|id| watched.runs.get(id)) {
                        cancellation.send_replace(true);
                    }
                }
                // Retried at the next poll.
                Err(error) => {
                    tracing::debug!(target: "moothall::run", %error, "cannot read cancel requests");
                }
            }
        }
    }
}
