//! What a program run needs on this machine: a model and sandboxes.

use std::sync::Arc;

use moothall_core::{IsolationChoice, ProgramSpec, RunId};
use moothall_engine::SandboxExecutor;
use moothall_models::Gateway;
use moothall_sandbox::Spec;
use moothall_store::Store;

use super::recording;
use crate::config::EngineChoice;
use crate::context::Context;
use crate::error::CliError;
use crate::{isolation, local};

/// What a program run needs.
pub(super) struct ProgramResources {
    pub(super) gateway: Arc<Gateway>,
    pub(super) executor: Arc<SandboxExecutor>,
}

impl ProgramResources {
    /// Opens a sandbox and a model. Nothing is spent if one is missing.
    pub(super) async fn open(context: &Context, spec: &ProgramSpec) -> Result<Self, CliError> {
        let ProgramSpec { input, settings } = spec;
        let engine = match settings.isolation {
            Some(IsolationChoice::None) => {
                return Err(CliError::usage("a program cannot run without a sandbox"));
            }
            choice => choice.and_then(EngineChoice::of),
        };
        let gateway = Arc::new(context.gateway(&input.model, recording(settings)?)?);
        let loaded = &context.loaded;
        let policy = isolation::policy(loaded, engine, settings.allow_shared_kernel)?;
        let idle = loaded.resolved.config.isolation.pool;
        let sandboxes = isolation::sandboxes(loaded, &policy, &input.image, idle).await?;
        // It starts while the model writes.
        sandboxes.expect(&Spec { image: input.image.clone(), limits: input.limits });
        Ok(Self { gateway, executor: Arc::new(SandboxExecutor::new(sandboxes)) })
    }
}

/// Refuses a run whose input files were never stored, because the process that started it was killed. No model is paid for it.
pub(super) async fn require_inputs(
    store: &dyn Store,
    run_id: &RunId,
    spec: &ProgramSpec,
) -> Result<(), CliError> {
    for (path, file) in &spec.input.inputs {
        if store.artifact(run_id, &file.sha256).await.map_err(local::broken)?.is_none() {
            return Err(CliError::failed(format!(
                "the input `{path}` was never kept: the run was killed before it began"
            ))
            .with_hint("start it again with `moothall run`"));
        }
    }
    Ok(())
}
