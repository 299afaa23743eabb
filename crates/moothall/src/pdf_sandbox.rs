//! The sandbox in which PDFs are read. It is looked for when the first PDF is met, and not before.

use std::sync::Arc;

use moothall_core::sandbox::{SandboxFailure, SandboxFailureKind};
use moothall_engine::SandboxExecutor;
use moothall_sandbox::{ExecuteFuture, Executor, Job};
use moothall_sandbox::{Host, Policy, PoolOptions, Sandboxes};
use tokio::sync::OnceCell;

use crate::config::{EngineChoice, Loaded};
use crate::error::CliError;
use crate::isolation;

/// The image that reads PDFs.
const IMAGE: &str = "documents";

/// Executes in the strongest sandbox that works on this machine.
#[derive(Debug)]
pub(crate) struct PdfSandbox {
    means: Result<Means, SandboxFailure>,
    opened: OnceCell<Result<SandboxExecutor, SandboxFailure>>,
}

#[derive(Debug)]
struct Means {
    host: Host,
    policy: Policy,
    memory_bytes: u64,
}

impl PdfSandbox {
    /// As configuration and flags want it.
    pub(crate) fn new(
        loaded: &Loaded,
        engine: Option<EngineChoice>,
        allow_shared_kernel: bool,
    ) -> Arc<Self> {
        let means = isolation::policy(loaded, engine, allow_shared_kernel).and_then(|policy| {
            let host = isolation::host(loaded)?;
            Ok(Means { host, policy, memory_bytes: isolation::memory_bytes(loaded) })
        });
        let means = means.map_err(|error| failed(SandboxFailureKind::NoEngine, &error));
        Arc::new(Self { means, opened: OnceCell::new() })
    }

    async fn open(&self) -> Result<SandboxExecutor, SandboxFailure> {
        let Means { host, policy, memory_bytes } = self.means.as_ref().map_err(Clone::clone)?;
        match host.choose(policy, IMAGE).await {
            Ok(chosen) => {
                let options = PoolOptions { idle: 0, memory_bytes: *memory_bytes };
                Ok(SandboxExecutor::new(Sandboxes::new(chosen, options)))
            }
            Err(error) => {
                let kind = error.failure().kind;
                Err(failed(kind, &isolation::failure(error)))
            }
        }
    }

    /// Waits until nothing is left of any sandbox.
    pub(crate) async fn shut_down(&self) {
        if let Some(Ok(executor)) = self.opened.get() {
            executor.shut_down().await;
        }
    }
}

impl Executor for PdfSandbox {
    fn execute<'a>(&'a self, job: Job<'a>) -> ExecuteFuture<'a> {
        Box::pin(async move {
            match self.opened.get_or_init(|| self.open()).await {
                Ok(executor) => executor.execute(job).await,
                Err(failure) => Err(failure.clone()),
            }
        })
    }
}

fn failed(kind: SandboxFailureKind, error: &CliError) -> SandboxFailure {
    let mut detail = error.words();
    if let Some(hint) = &error.hint {
        detail.push_str(&format!("; {hint}"));
    }
    SandboxFailure { kind, detail }
}
