//! The sandboxes and the model that the gate of this machine may ask. Both are found only when a
//! policy asks for them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use moothall_core::model::{ModelReply, ModelRequest};
use moothall_core::sandbox::{ExecuteRequest, Execution, GuestPath, Labels};
use moothall_models::{Ledger, RecordingMode};
use moothall_sandbox::{EngineName, Executed};
use moothall_workspace::{Checker, Reviewer};
use tokio_util::sync::CancellationToken;

use crate::commands::{let_clean_up, runtime};
use crate::config;
use crate::context::Context;
use crate::error::CliError;
use crate::isolation;

/// Runs checks in the sandboxes that the user's configuration allows.
#[derive(Debug)]
pub(super) struct HostChecker {
    pub(super) config: Option<PathBuf>,
}

impl Checker for HostChecker {
    fn execute(
        &self,
        engine: Option<&str>,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        stop: &CancellationToken,
    ) -> Result<Execution, String> {
        alone(stop, async {
            let loaded = config::load(self.config.as_deref(), toml::Table::new())?;
            let mut policy = isolation::policy(&loaded, None, false)?;
            if let Some(named) = engine {
                // A policy may lie in the workspace. It may choose an engine; that a shared kernel
                // will do, only the user says.
                let known = EngineName::ALL.into_iter().find(|one| one.as_str() == named);
                policy.engine = Some(known.ok_or_else(|| {
                    CliError::usage(format!("there is no sandbox engine `{named}`"))
                })?);
            }
            let sandboxes = isolation::sandboxes(&loaded, &policy, &request.image, 0).await?;
            let pairs = [("project", "moothall"), ("purpose", "check of a draft")];
            let labels = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let executed =
                sandboxes.execute(&Labels(BTreeMap::from(labels)), request, inputs, None).await;
            let Executed { execution, clean_up, .. } = executed.map_err(isolation::failure)?;
            // A clean-up that fails is the reaper's; it is no failure of the check.
            let _ = clean_up.await;
            sandboxes.shut_down().await;
            Ok(execution)
        })
    }
}

/// Asks through the gateway of the user's configuration, out of one budget.
#[derive(Debug)]
pub(super) struct GatewayReviewer {
    config: Option<PathBuf>,
    ledger: OnceLock<Ledger>,
}

impl GatewayReviewer {
    pub(super) fn new(config: Option<PathBuf>) -> Self {
        Self { config, ledger: OnceLock::new() }
    }
}

impl Reviewer for GatewayReviewer {
    fn ask(&self, request: &ModelRequest, stop: &CancellationToken) -> Result<ModelReply, String> {
        alone(stop, async {
            let context = Context::load(self.config.as_deref(), toml::Table::new())?;
            context.refuse_stray_provider(&request.model)?;
            let gateway = context.gateway(&request.model, RecordingMode::Off)?;
            let ledger = self.ledger.get_or_init(|| Ledger::new(context.budget()));
            let report = gateway.call(request, ledger, None).await;
            report.result.map_err(|failure| CliError::failed(failure.to_string()))
        })
    }
}

/// Does async work on a thread of its own, until it is done or stopped: whoever opened the store
/// may be inside a runtime.
fn alone<T: Send>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, CliError>> + Send,
) -> Result<T, String> {
    let until_stopped = || {
        let runtime = runtime()?;
        let done = runtime.block_on(stop.run_until_cancelled(work));
        done.unwrap_or_else(|| {
            let_clean_up(&runtime);
            Err(CliError::failed("it was stopped"))
        })
    };
    let done = std::thread::scope(|scope| {
        scope.spawn(until_stopped).join().map_err(|_| "it panicked".to_owned())
    })?;
    done.map_err(|error| match &error.hint {
        Some(hint) => format!("{}; {hint}", error.words()),
        None => error.words(),
    })
}
