//! Opens the model and the sandboxes of a program run.

use std::sync::Arc;

use moothall_core::{IsolationChoice, ProgramSpec, RunId};
use moothall_engine::SandboxExecutor;
use moothall_models::Gateway;
use moothall_sandbox::SandboxSpec;
use moothall_store::Store;

use super::recording;
use crate::config::EngineChoice;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::{isolation, run_store};

pub(crate) struct ProgramResources {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) executor: Arc<SandboxExecutor>,
    spec: SandboxSpec,
}

impl ProgramResources {
    /// Opens a sandbox and a model. Fails before anything is spent.
    pub(crate) async fn open(
        context: &CommandContext,
        spec: &ProgramSpec,
    ) -> Result<Self, CliError> {
        let ProgramSpec { input, settings } = spec;
        let engine = match settings.isolation {
            Some(IsolationChoice::None) => {
                return Err(CliError::usage("a program cannot run without a sandbox").with_hint(
                    "choose another `--isolation`; `moothall doctor` shows what works",
                ));
            }
            choice => choice.and_then(EngineChoice::of),
        };
        let gateway = Arc::new(context.gateway_of(&input.model, recording(settings)?)?);
        let loaded = &context.loaded;
        let policy = isolation::policy(loaded, engine, settings.allow_shared_kernel)?;
        let idle = loaded.resolved.config.isolation.pool;
        let sandboxes = isolation::sandboxes(loaded, &policy, &input.image, idle).await?;
        let spec = SandboxSpec { image: input.image.clone(), limits: input.limits };
        Ok(Self { gateway, executor: Arc::new(SandboxExecutor::new(sandboxes)), spec })
    }

    /// Starts sandboxes in advance, while the model generates the program.
    pub(crate) fn warm_up(&self) {
        self.executor.prewarm(&self.spec);
    }
}

/// Rejects a run whose input files were never stored because the process that started it was
/// killed, before a model is paid.
pub(crate) async fn require_inputs(
    store: &dyn Store,
    run_id: &RunId,
    spec: &ProgramSpec,
) -> Result<(), CliError> {
    for (path, file) in &spec.input.inputs {
        if store.artifact(run_id, &file.sha256).await.map_err(run_store::store_error)?.is_none() {
            return Err(CliError::failed(format!(
                "input `{path}` was never stored: the process was killed before the run started"
            ))
            .with_hint("start it again with `moothall run`"));
        }
    }
    Ok(())
}
