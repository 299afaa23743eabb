//! The sandbox that reads PDFs, opened when the first PDF is found.

use std::sync::Arc;

use moothall_core::sandbox::{SandboxFailure, SandboxFailureKind};
use moothall_engine::SandboxExecutor;
use moothall_sandbox::{ExecuteFuture, ExecutionJob, MemoryBudget, ProgramExecutor};
use moothall_sandbox::{PoolOptions, SandboxHost, SandboxPolicy, SandboxRunner};
use tokio::sync::OnceCell;

use crate::config::{EngineChoice, LoadedConfig};
use crate::error::CliError;
use crate::isolation;

const IMAGE: &str = "documents";

/// An executor in the strongest sandbox that works on this machine.
#[derive(Debug)]
pub(crate) struct PdfSandbox {
    options: Result<PdfSandboxOptions, SandboxFailure>,
    opened: OnceCell<Result<SandboxExecutor, SandboxFailure>>,
}

#[derive(Debug)]
struct PdfSandboxOptions {
    host: SandboxHost,
    policy: SandboxPolicy,
    memory: MemoryBudget,
}

impl PdfSandbox {
    pub(crate) fn new(
        loaded: &LoadedConfig,
        engine: Option<EngineChoice>,
        allow_shared_kernel: bool,
    ) -> Arc<Self> {
        let options = isolation::policy(loaded, engine, allow_shared_kernel).and_then(|policy| {
            let host = isolation::host(loaded)?;
            Ok(PdfSandboxOptions { host, policy, memory: isolation::memory(loaded) })
        });
        let options = options.map_err(|error| failed(SandboxFailureKind::NoEngine, &error));
        Arc::new(Self { options, opened: OnceCell::new() })
    }

    async fn open(&self) -> Result<SandboxExecutor, SandboxFailure> {
        let PdfSandboxOptions { host, policy, memory } =
            self.options.as_ref().map_err(Clone::clone)?;
        match host.choose(policy, IMAGE).await {
            Ok(chosen) => {
                let options = PoolOptions { idle: 0, memory: memory.clone() };
                Ok(SandboxExecutor::new(SandboxRunner::new(chosen, options)))
            }
            Err(error) => {
                let kind = error.failure().kind;
                Err(failed(kind, &isolation::failure(error)))
            }
        }
    }

    /// Waits until all sandboxes are removed.
    pub(crate) async fn shut_down(&self) {
        if let Some(Ok(executor)) = self.opened.get() {
            executor.shut_down().await;
        }
    }
}

impl ProgramExecutor for PdfSandbox {
    fn execute<'a>(&'a self, job: ExecutionJob<'a>) -> ExecuteFuture<'a> {
        Box::pin(async move {
            match self.opened.get_or_init(|| self.open()).await {
                Ok(executor) => executor.execute(job).await,
                Err(failure) => Err(failure.clone()),
            }
        })
    }
}

fn failed(kind: SandboxFailureKind, error: &CliError) -> SandboxFailure {
    let mut detail = error.full_message();
    if let Some(hint) = &error.hint {
        detail.push_str(&format!("; {hint}"));
    }
    SandboxFailure { kind, detail }
}
