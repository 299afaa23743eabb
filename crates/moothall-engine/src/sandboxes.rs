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
    ending: Mutex<Vec<JoinHandle<()>>>,
}

impl SandboxExecutor {
    /// Uses the given sandboxes.
    pub fn new(sandboxes: SandboxRunner) -> Self {
        Self { sandboxes, ending: Mutex::default() }
    }

    /// Starts filling the pool for a spec that will be requested soon.
    pub fn expect(&self, spec: &SandboxSpec) {
        self.sandboxes.expect(spec);
    }

    /// Waits until all sandboxes have shut down, used and idle ones.
    pub async fn shut_down(&self) {
        let ending = std::mem::take(&mut *self.ending());
        for end in ending {
            // The reaper removes what a failed cleanup leaves behind.
            let _ = end.await;
        }
        self.sandboxes.shut_down().await;
    }

    fn ending(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgramExecutor for SandboxExecutor {
    fn execute<'a>(&'a self, job: ExecutionJob<'a>) -> ExecuteFuture<'a> {
        Box::pin(async move {
            let ExecutionJob { labels, request, inputs } = job;
            let executed = self.sandboxes.execute(labels, request, &inputs, None).await;
            let LeaseOutcome { execution, files, clean_up } =
                executed.map_err(|error| error.failure())?;
            let mut ending = self.ending();
            ending.retain(|end| !end.is_finished());
            ending.push(clean_up);
            Ok(ExecutionOutput { execution, files })
        })
    }
}
