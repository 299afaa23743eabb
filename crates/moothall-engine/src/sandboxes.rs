//! The sandboxes of this host as the executor of a run.

use std::sync::{Mutex, PoisonError};

use moothall_sandbox::{ExecuteFuture, Executed, Executor, Job, Ran, Sandboxes};
use tokio::task::JoinHandle;

/// Executes in sandboxes of this host, and knows which of them are still being cleaned up.
#[derive(Debug)]
pub struct SandboxExecutor {
    sandboxes: Sandboxes,
    /// Nobody waits for an end but whoever ends the process.
    ending: Mutex<Vec<JoinHandle<()>>>,
}

impl SandboxExecutor {
    /// Executes in these.
    pub fn new(sandboxes: Sandboxes) -> Self {
        Self { sandboxes, ending: Mutex::default() }
    }

    /// Waits until everything is gone: what ran, and what waited for a program.
    pub async fn shut_down(&self) {
        let ending = std::mem::take(&mut *self.ending());
        for end in ending {
            // A clean-up that fails is the reaper's.
            let _ = end.await;
        }
        self.sandboxes.shut_down().await;
    }

    fn ending(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor for SandboxExecutor {
    fn execute<'a>(&'a self, job: Job<'a>) -> ExecuteFuture<'a> {
        Box::pin(async move {
            let Job { labels, request, inputs } = job;
            let executed = self.sandboxes.execute(labels, request, &inputs, None).await;
            let Executed { execution, files, clean_up } =
                executed.map_err(|error| error.failure())?;
            let mut ending = self.ending();
            ending.retain(|end| !end.is_finished());
            ending.push(clean_up);
            Ok(Ran { execution, files })
        })
    }
}
