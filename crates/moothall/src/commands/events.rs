//! `moothall events`: prints the events of a run, and follows a run in progress.

use std::time::Duration;

use moothall_core::RunId;
use moothall_engine::sequenced;
use moothall_store::{Store, StoredEvent};

use super::{InterruptibleResult, interruptible, runtime};
use crate::args::{EventsArgs, GlobalArgs};
use crate::display;
use crate::error::CliExit;
use crate::run_store::{self, open_and_find};
use crate::terminal::{self, DIM, StdoutState};
use crate::{config, logging};

/// Events per read.
const PAGE: u32 = 500;

/// Polling interval of `--follow`; the events may come from another process.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn run(global: &GlobalArgs, args: &EventsArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        // Ctrl-C is the normal way to stop following, so it prints no error.
        match interruptible(print_all(&*local.store, &row.run_id, args)).await {
            InterruptibleResult::Done(printed) => printed.map(|()| CliExit::Fine),
            InterruptibleResult::Cancelled => Ok(CliExit::Cancelled),
        }
    })
}

async fn print_all(store: &dyn Store, run_id: &RunId, args: &EventsArgs) -> anyhow::Result<()> {
    let mut after = args.from - 1;
    loop {
        // The state is read before the events, so that events written in between are not missed.
        let row = store.run(run_id).await.map_err(run_store::store_error)?;
        let is_over = row.is_none_or(|row| row.state.is_terminal());
        loop {
            let events = store.events(run_id, after, PAGE).await.map_err(run_store::store_error)?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            let lines: Result<String, serde_json::Error> =
                events.iter().map(|event| line(run_id, event, args.json)).collect();
            if terminal::print_or_closed(&lines?)? == StdoutState::Closed {
                return Ok(());
            }
        }
        if is_over || !args.follow {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn line(run_id: &RunId, event: &StoredEvent, as_json: bool) -> Result<String, serde_json::Error> {
    if as_json {
        return Ok(serde_json::to_string(&sequenced(run_id, event))? + "\n");
    }
    let (number, time) = (event.seq, display::time(event.at_ms));
    Ok(format!("{DIM}{number:>5}  {time}{DIM:#}  {}\n", display::event(event)))
}
