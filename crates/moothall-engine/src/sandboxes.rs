//! Executes programs in the sandboxes of this host.

use std::sync::{Mutex, PoisonError};

use moothall_sandbox::{
    ExecuteFuture, ExecutionJob, ExecutionOutput, LeaseOutcome, ProgramExecutor, SandboxRunner,
    SandboxSpec,
};
use tokio::task::JoinHandle;

/// Executes programs in sandboxes of this host and tracks pending cleanups.
#[derive(Debug)]
pub struct SandboxExecutor {
    sandboxes: SandboxRunner,
    /// Cleanups in progress. Only `shut_down` awaits them.
    cleanups: Mutex<Vec<JoinHandle<()>>>,
}

impl SandboxExecutor {
    /// Uses the given sandboxes.
    pub fn new(sandboxes: SandboxRunner) -> Self {
        Self { sandboxes, cleanups: Mutex::default() }
    }

    /// Starts filling the pool for a spec that will be requested soon.
    pub fn prewarm(&self, spec: &SandboxSpec) {
        self.sandboxes.prewarm(spec);
    }

    /// Waits until all sandboxes have shut down, used and idle ones.
    pub async fn shut_down(&self) {
        let cleanups = std::mem::take(&mut *self.cleanups());
        for end in cleanups {
            // The reaper removes what a failed cleanup leaves behind.
            let _ = end.await;
        }
        self.sandboxes.shut_down().await;
    }

    fn cleanups(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.cleanups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgramExecutor for SandboxExecutor {
    fn execute<'a>(&'a self, job: ExecutionJob<'a>) -> ExecuteFuture<'a> {
        Box::pin(async move {
            let ExecutionJob { labels, request, inputs } = job;
            let executed = self.sandboxes.execute(labels, request, &inputs, None).await;
            let LeaseOutcome { execution, files, clean_up } =
                executed.map_err(|error| error.failure())?;
            let mut cleanups = self.cleanups();
            cleanups.retain(|end| !end.is_finished());
            cleanups.push(clean_up);
            Ok(ExecutionOutput { execution, files })
        })
    }
}
