//! `moothall pause`: a run stands still, whichever process drives it, and can go on.

use std::time::Duration;

use moothall_store::{RunRow, RunState, StoreError, Wish};
use serde_json::json;

use super::runtime;
use crate::args::{Global, PauseArgs};
use crate::error::{CliError, Exit};
use crate::local::{self, Local, open_and_find};
use crate::terminal::{self, DIM};
use crate::{config, logging};

/// How long answers that are under way are waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Where a run stands after it was asked to pause.
enum Now {
    Still,
    /// Answers are under way; it stops when they have come.
    Stopping,
    Over(RunState),
}

pub(super) fn run(global: &Global, args: &PauseArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let now = pause(&local, &row).await?;
        let id = local::short(&row.run_id);
        if args.json {
            let row = local.store.run(&row.run_id).await.map_err(local::broken)?;
            let report = json!({
                "run_id": row.as_ref().map(|row| &row.run_id),
                "state": row.as_ref().map(|row| row.state),
                "stands_still": !matches!(now, Now::Stopping),
            });
            terminal::print(&format!("{report:#}\n"))?;
        }
        match now {
            Now::Still if args.json => Ok(Exit::Fine),
            Now::Still => {
                terminal::print(&format!("run {} stands still\n", row.run_id))?;
                terminal::note(&format!("{DIM}let it go on: moothall resume {id}{DIM:#}\n"));
                Ok(Exit::Fine)
            }
            Now::Over(state) => {
                Err(CliError::usage(format!("run {} is {state} already", row.run_id))
                    .with_hint(format!("see `moothall show {id}`"))
                    .into())
            }
            Now::Stopping => Err(CliError::failed(format!(
                "run {} was asked to pause and still waits for answers after {} seconds",
                row.run_id,
                PATIENCE.as_secs()
            ))
            .with_hint("the wish stays: it stops as soon as they have come")
            .into()),
        }
    })
}

async fn pause(local: &Local, row: &RunRow) -> anyhow::Result<Now> {
    let (store, run_id) = (&*local.store, &row.run_id);
    match row.state {
        state if state.is_terminal() => return Ok(Now::Over(state)),
        RunState::Paused => return Ok(Now::Still),
        // Whoever drove it is gone: it stands still, and a wish would stop the next one.
        _ if !local.is_driven(row).await? => return Ok(Now::Still),
        _ => {}
    }
    match store.ask(run_id, Wish::Pause).await {
        Ok(()) | Err(StoreError::RunEnded { .. }) => {}
        Err(error) => return Err(local::broken(error).into()),
    }
    let waited = tokio::time::timeout(PATIENCE, until_still(local, row)).await;
    waited.unwrap_or(Ok(Now::Stopping)).map_err(Into::into)
}

async fn until_still(local: &Local, row: &RunRow) -> Result<Now, CliError> {
    loop {
        let now = local.store.run(&row.run_id).await.map_err(local::broken)?;
        match now {
            None => return Ok(Now::Still),
            Some(now) if now.state == RunState::Paused => return Ok(Now::Still),
            Some(now) if now.state.is_terminal() => return Ok(Now::Over(now.state)),
            Some(now) if !local.is_driven(&now).await? => return Ok(Now::Still),
            Some(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}
