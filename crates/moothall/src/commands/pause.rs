//! `moothall pause`: pauses a run in any process; `moothall resume` continues it.

use std::time::Duration;

use moothall_store::{ControlRequest, RunRow, RunState, StoreError};
use serde_json::json;

use super::runtime;
use crate::args::{GlobalArgs, PauseArgs};
use crate::error::{CliError, CliExit};
use crate::run_store::{self, RunStore, open_and_find};
use crate::terminal::{self, DIM};
use crate::{config, logging};

/// How long calls in progress may take to finish.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// State of a run after a pause request.
enum PauseStatus {
    Paused,
    /// Calls are in progress; the run pauses when they finish.
    Stopping,
    Ended(RunState),
}

pub(crate) fn run(global: &GlobalArgs, args: &PauseArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let now = pause(&local, &row).await?;
        let id = run_store::short_id(&row.run_id);
        if args.json {
            let row = local.store.run(&row.run_id).await.map_err(run_store::store_error)?;
            let report = json!({
                "run_id": row.as_ref().map(|row| &row.run_id),
                "state": row.as_ref().map(|row| row.state),
                "stands_still": !matches!(now, PauseStatus::Stopping),
            });
            terminal::print(&format!("{report:#}\n"))?;
        }
        match now {
            PauseStatus::Paused if args.json => Ok(CliExit::Fine),
            PauseStatus::Paused => {
                terminal::print(&format!("run {} is paused\n", row.run_id))?;
                terminal::note(&format!("{DIM}continue it: moothall resume {id}{DIM:#}\n"));
                Ok(CliExit::Fine)
            }
            PauseStatus::Ended(state) => {
                Err(CliError::usage(format!("run {} is already {state}", row.run_id))
                    .with_hint(format!("see `moothall show {id}`"))
                    .into())
            }
            PauseStatus::Stopping => Err(CliError::failed(format!(
                "run {} has calls in progress and did not pause within {} seconds",
                row.run_id,
                PAUSE_TIMEOUT.as_secs()
            ))
            .with_hint("the pause request stays in effect; the run pauses when the calls finish")
            .into()),
        }
    })
}

async fn pause(local: &RunStore, row: &RunRow) -> anyhow::Result<PauseStatus> {
    let (store, run_id) = (&*local.store, &row.run_id);
    match row.state {
        state if state.is_terminal() => return Ok(PauseStatus::Ended(state)),
        RunState::Paused => return Ok(PauseStatus::Paused),
        // No process executes the run, so it is already stopped. A pause request would stop the
        // next process that resumes it.
        _ if !local.is_driven(row).await? => return Ok(PauseStatus::Paused),
        _ => {}
    }
    match store.request_control(run_id, ControlRequest::Pause).await {
        Ok(()) | Err(StoreError::RunEnded { .. }) => {}
        Err(error) => return Err(run_store::store_error(error).into()),
    }
    let waited = tokio::time::timeout(PAUSE_TIMEOUT, wait_until_paused(local, row)).await;
    waited.unwrap_or(Ok(PauseStatus::Stopping)).map_err(Into::into)
}

async fn wait_until_paused(local: &RunStore, row: &RunRow) -> Result<PauseStatus, CliError> {
    loop {
        let now = local.store.run(&row.run_id).await.map_err(run_store::store_error)?;
        match now {
            None => return Ok(PauseStatus::Paused),
            Some(now) if now.state == RunState::Paused => return Ok(PauseStatus::Paused),
            Some(now) if now.state.is_terminal() => return Ok(PauseStatus::Ended(now.state)),
            Some(now) if !local.is_driven(&now).await? => return Ok(PauseStatus::Paused),
            Some(_) => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}
