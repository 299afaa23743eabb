//! `moothall cancel`: cancels a run in any process.

use std::time::Duration;

use moothall_core::RunId;
use moothall_engine::{EngineError, cancel};
use moothall_store::{ControlRequest, RunRow, RunState, Store, StoreError};
use serde_json::json;

use super::runtime;
use crate::args::{CancelArgs, GlobalArgs};
use crate::error::{CliError, CliExit};
use crate::launch::cluster;
use crate::run_store::{self, RunStore, open_and_find};
use crate::{config, logging, terminal};

/// How long to wait for the process that executes the run, which polls twice a second.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) fn run(global: &GlobalArgs, args: &CancelArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let state = cancel_run(&local, &row).await?;
        if args.json {
            let report = json!({ "run_id": row.run_id, "state": state });
            terminal::print(&format!("{report:#}\n"))?;
        }
        match state {
            RunState::Cancelled if args.json => Ok(CliExit::Fine),
            RunState::Cancelled => {
                terminal::print(&format!("run {} is cancelled\n", row.run_id))?;
                Ok(CliExit::Fine)
            }
            RunState::Finished | RunState::Failed => {
                Err(CliError::usage(format!("run {} is already {state}", row.run_id))
                    .with_hint(format!("see `moothall show {}`", run_store::short_id(&row.run_id)))
                    .into())
            }
            RunState::Running | RunState::Paused => Err(CliError::failed(format!(
                "run {} did not stop within {} seconds",
                row.run_id,
                STOP_TIMEOUT.as_secs()
            ))
            .with_hint("the cancel request stays in effect; if the process that executes the run is suspended, continue or stop it")
            .into()),
        }
    })
}

/// Cancels the run unless it has ended, and returns its state afterwards.
async fn cancel_run(local: &RunStore, row: &RunRow) -> anyhow::Result<RunState> {
    let (store, run_id) = (&*local.store, &row.run_id);
    if row.state.is_terminal() {
        return Ok(row.state);
    }
    if let Some(restate) = run_store::restate_url(&row.spec) {
        cluster::cancel(restate, store, run_id).await?;
        return Ok(wait_until_ended(store, run_id).await?);
    }
    let ended = match local.lock(run_id).await {
        // No process executes the run, so nothing would act on a request.
        Ok(_lock) => cancel(store, run_id, None).await.map(|_| ()),
        Err(EngineError::Busy(_)) => {
            store.request_control(run_id, ControlRequest::Cancel).await.map_err(Into::into)
        }
        Err(error) => Err(error),
    };
    match ended {
        // The run ended in the meantime.
        Ok(()) | Err(EngineError::Store(StoreError::RunEnded { .. })) => {}
        Err(error) => {
            return Err(CliError::failed("cannot cancel the run").with_source(error).into());
        }
    }
    Ok(wait_until_ended(store, run_id).await?)
}

async fn wait_until_ended(store: &dyn Store, run_id: &RunId) -> Result<RunState, CliError> {
    let waited = tokio::time::timeout(STOP_TIMEOUT, poll_until_ended(store, run_id)).await;
    waited.unwrap_or(Ok(RunState::Running))
}

async fn poll_until_ended(store: &dyn Store, run_id: &RunId) -> Result<RunState, CliError> {
    loop {
        let row = store.run(run_id).await.map_err(run_store::store_error)?;
        match row.map(|row| row.state) {
            Some(state) if !state.is_terminal() => tokio::time::sleep(POLL_INTERVAL).await,
            Some(state) => return Ok(state),
            None => return Ok(RunState::Cancelled),
        }
    }
}
