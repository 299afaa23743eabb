//! One look for all steps of a process. A thousand debates that each wait for a slow model would
//! otherwise ask the store two thousand times a second whether somebody wants them to stop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::RunId;
use moothall_store::{Store, Wish};
use tokio::sync::watch;

/// How often it is looked whether somebody wants a run to end.
const LOOK_AROUND: Duration = Duration::from_millis(500);

/// Looks in one store for all runs of this process that have steps under way.
#[derive(Debug, Default)]
pub struct Lookout(Mutex<Watched>);

#[derive(Debug, Default)]
struct Watched {
    /// Whether somebody wants them to end.
    runs: BTreeMap<RunId, watch::Sender<bool>>,
    somebody_looks: bool,
}

impl Lookout {
    /// Waits until somebody wants the run to end.
    pub async fn cancelled(self: &Arc<Self>, store: &Arc<dyn Store>, run_id: &RunId) {
        let mut told = self.watch(store, run_id);
        if told.wait_for(|cancelled| *cancelled).await.is_err() {
            // Nobody looks any more: this process ends.
            std::future::pending().await
        }
    }

    fn watch(self: &Arc<Self>, store: &Arc<dyn Store>, run_id: &RunId) -> watch::Receiver<bool> {
        let mut watched = self.lock();
        let told = watched.runs.entry(run_id.clone()).or_default().subscribe();
        if !std::mem::replace(&mut watched.somebody_looks, true) {
            tokio::spawn(Looking(Arc::clone(self)).look(Arc::clone(store)));
        }
        told
    }

    /// The runs that somebody still waits for.
    fn waited_for(&self) -> Vec<RunId> {
        let mut watched = self.lock();
        watched.runs.retain(|_, told| told.receiver_count() > 0);
        watched.somebody_looks = !watched.runs.is_empty();
        watched.runs.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever looks for all.
struct Looking(Arc<Lookout>);

impl Drop for Looking {
    /// After a panic the next step finds somebody else.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().somebody_looks = false;
        }
    }
}

impl Looking {
    async fn look(self, store: Arc<dyn Store>) {
        let Self(lookout) = &self;
        loop {
            tokio::time::sleep(LOOK_AROUND).await;
            let ids = lookout.waited_for();
            if ids.is_empty() {
                return;
            }
            match store.wished(&ids, Wish::Cancel).await {
                Ok(cancelled) => {
                    let watched = lookout.lock();
                    for told in cancelled.iter().filter_map(|id| watched.runs.get(id)) {
                        told.send_replace(true);
                    }
                }
                // The next look will do.
                Err(error) => {
                    tracing::debug!(target: "moothall::run", %error, "wishes cannot be read");
                }
            }
        }
    }
}
