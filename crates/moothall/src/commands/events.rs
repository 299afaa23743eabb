//! `moothall events`: what happened in a run, and what happens while it goes on.

use std::time::Duration;

use moothall_core::RunId;
use moothall_engine::sequenced;
use moothall_store::{Store, StoredEvent};

use super::{Interruptible, interruptible, runtime};
use crate::args::{EventsArgs, Global};
use crate::display;
use crate::error::Exit;
use crate::local::{self, open_and_find};
use crate::terminal::{self, DIM, Reader};
use crate::{config, logging};

/// How many events are read at once.
const PAGE: u32 = 500;

/// How often someone who follows looks for more. The events may come from another process.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

pub(super) fn run(global: &Global, args: &EventsArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        // Ctrl-C is how a person stops following; it is no failure and needs no words.
        match interruptible(print_all(&*local.store, &row.run_id, args)).await {
            Interruptible::Done(printed) => printed.map(|()| Exit::Fine),
            Interruptible::Cancelled => Ok(Exit::Cancelled),
        }
    })
}

async fn print_all(store: &dyn Store, run_id: &RunId, args: &EventsArgs) -> anyhow::Result<()> {
    let mut after = args.from - 1;
    loop {
        // Asked first: what is written between the two questions is then read, not missed.
        let row = store.run(run_id).await.map_err(local::broken)?;
        let is_over = row.is_none_or(|row| row.state.is_terminal());
        loop {
            let events = store.events(run_id, after, PAGE).await.map_err(local::broken)?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            let lines: Result<String, serde_json::Error> =
                events.iter().map(|event| line(run_id, event, args.json)).collect();
            if terminal::print_on(&lines?)? == Reader::Gone {
                return Ok(());
            }
        }
        if is_over || !args.follow {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn line(run_id: &RunId, event: &StoredEvent, as_json: bool) -> Result<String, serde_json::Error> {
    if as_json {
        return Ok(serde_json::to_string(&sequenced(run_id, event))? + "\n");
    }
    let (number, time) = (event.seq, display::time(event.at_ms));
    Ok(format!("{DIM}{number:>5}  {time}{DIM:#}  {}\n", display::event(event)))
}
