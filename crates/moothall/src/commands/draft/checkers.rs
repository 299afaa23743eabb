//! The sandboxes and the model for the checks of the gate. Both are set up only if a policy needs
//! them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use moothall_core::model::{ModelReply, ModelRequest};
use moothall_core::sandbox::{ExecuteRequest, GuestPath, SandboxExecution};
use moothall_models::{RecordingMode, RunLedger};
use moothall_sandbox::EngineName;
use moothall_workspace::{CheckRunner, ModelReviewer};
use tokio_util::sync::CancellationToken;

use crate::commands::{runtime, wait_for_cleanup};
use crate::config;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::{isolation, process_resources};

/// Runs checks in the sandboxes that the user's configuration allows.
#[derive(Debug)]
pub(crate) struct HostChecker {
    pub(crate) config: Option<PathBuf>,
}

impl CheckRunner for HostChecker {
    fn execute(
        &self,
        engine: Option<&str>,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        stop: &CancellationToken,
    ) -> Result<SandboxExecution, String> {
        run_on_thread(stop, async {
            let loaded = config::load(self.config.as_deref(), toml::Table::new())?;
            let mut policy = isolation::policy(&loaded, None, false)?;
            if let Some(named) = engine {
                // The policy may come from the workspace, which is untrusted. It may choose an
                // engine, but only the user's configuration can allow a shared kernel.
                let known = EngineName::ALL.into_iter().find(|one| one.as_str() == named);
                policy.engine = Some(known.ok_or_else(|| {
                    let names = EngineName::ALL.map(EngineName::as_str).join(", ");
                    CliError::usage(format!("unknown sandbox engine `{named}` in the policy"))
                        .with_hint(format!("use one of: {names}"))
                })?);
            }
            let labels = [("project", "moothall"), ("purpose", "check of a draft")];
            let executed = isolation::execute(&loaded, &policy, &labels, request, inputs, None);
            executed.await.map(|(execution, _)| execution)
        })
    }
}

/// Calls models through the gateway of the user's configuration, with one budget for all calls.
#[derive(Debug)]
pub(crate) struct GatewayReviewer {
    config: Option<PathBuf>,
    ledger: OnceLock<RunLedger>,
}

impl GatewayReviewer {
    pub(crate) fn new(config: Option<PathBuf>) -> Self {
        Self { config, ledger: OnceLock::new() }
    }
}

impl ModelReviewer for GatewayReviewer {
    fn ask(&self, request: &ModelRequest, stop: &CancellationToken) -> Result<ModelReply, String> {
        run_on_thread(stop, async {
            let mut context = CommandContext::load(self.config.as_deref(), toml::Table::new())?;
            // This runtime ends with the call.
            context.connections = context.connections.with_own_clients();
            context.refuse_untrusted_provider(&request.model)?;
            let gateway = context.gateway(&request.model, RecordingMode::Off)?;
            let ledger = self.ledger.get_or_init(|| RunLedger::new(context.budget()));
            let report = gateway.call(request, ledger, None).await;
            report.result.map_err(|failure| CliError::failed(failure.to_string()))
        })
    }
}

/// Runs async work on a separate thread until it is done or stopped, because the caller may be
/// inside a runtime. Uses the runtime of the kept sandboxes if there is one.
fn run_on_thread<T: Send>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, CliError>> + Send,
) -> Result<T, String> {
    let until_stopped = || {
        let work = stop.run_until_cancelled(work);
        let done = match process_resources::kept_sandboxes() {
            Some(kept) => kept.runtime.block_on(work),
            None => {
                let runtime = runtime()?;
                let done = runtime.block_on(work);
                if done.is_none() {
                    wait_for_cleanup(&runtime);
                }
                done
            }
        };
        done.unwrap_or_else(|| Err(CliError::failed("cancelled")))
    };
    let done = std::thread::scope(|scope| {
        scope.spawn(until_stopped).join().map_err(|_| "the thread panicked".to_owned())
    })?;
    done.map_err(|error| match &error.hint {
        Some(hint) => format!("{}; {hint}", error.full_message()),
        None => error.full_message(),
    })
}
