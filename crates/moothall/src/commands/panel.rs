//! `moothall panel`: how many planted controls each model caught, over all stored runs.

use std::fmt::Write as _;

use moothall_core::consult::{Consult, ControlRecord, PanelVerdict, control_records};
use moothall_store::{RunOrder, RunQuery, RunState, TeamFilter};
use serde_json::json;

use super::runtime;
use crate::args::{GlobalArgs, PanelArgs};
use crate::config::LoadedConfig;
use crate::error::{CliError, CliExit};
use crate::run_store::{self, RunStore};
use crate::terminal::{self, BOLD, DIM, YELLOW};
use crate::{config, display, logging};

/// Runs that are read at a time.
const PAGE: u32 = 100;

pub(crate) fn run(global: &GlobalArgs, args: &PanelArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let records = runtime()?.block_on(stored_records(&loaded))?;
    if args.json {
        terminal::print(&format!("{:#}\n", json!({ "models": records })))?;
    } else if records.is_empty() {
        terminal::print("no run with a panel\n")?;
        terminal::note(&format!("{DIM}start one: moothall consult HLXI --model demo{DIM:#}\n"));
    } else {
        terminal::print(&table(&records))?;
    }
    Ok(CliExit::Fine)
}

/// The record of each model in all finished consultations; empty without a store.
pub(crate) async fn stored_records(loaded: &LoadedConfig) -> Result<Vec<ControlRecord>, CliError> {
    let Some(local) = RunStore::open_existing(loaded).await? else { return Ok(Vec::new()) };
    let mut verdicts: Vec<PanelVerdict> = Vec::new();
    let mut offset = 0;
    loop {
        let query = RunQuery {
            teams: TeamFilter::All,
            state: Some(RunState::Finished),
            workflow: Some(Consult::NAME.to_owned()),
            text: None,
            order: RunOrder::Newest,
            offset,
            limit: PAGE,
        };
        let page = local.store.run_page(query).await.map_err(run_store::store_error)?;
        let read = u32::try_from(page.rows.len()).unwrap_or(u32::MAX);
        let outcomes = page.rows.into_iter().filter_map(|row| row.outcome);
        verdicts.extend(outcomes.filter_map(|outcome| outcome.panel_verdict().cloned()));
        offset = offset.saturating_add(read);
        if read < PAGE {
            return Ok(control_records(&verdicts));
        }
    }
}

fn table(records: &[ControlRecord]) -> String {
    let wide = records.iter().map(|one| display::line(&one.model).chars().count());
    let wide = wide.max().unwrap_or(0).max(5);
    let mut text = format!(
        "{BOLD}{:<wide$}  {:>5}  {:>6}  {:>7}  {:>5}  95% INTERVAL{BOLD:#}\n",
        "MODEL", "RUNS", "CAUGHT", "PLANTED", "SHARE"
    );
    for one in records {
        let [share, low, high] = [one.share, one.low, one.high].map(|part| (part + 5) / 10);
        let style = if one.is_weak() { YELLOW } else { anstyle::Style::new() };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{style}{:<wide$}  {:>5}  {:>6}  {:>7}  {share:>3} %  {low} to {high} %{style:#}",
            display::line(&one.model),
            one.runs,
            one.caught,
            one.planted,
        );
    }
    if records.iter().any(ControlRecord::is_weak) {
        text.push_str("A model below 80 % is not a reliable judge.\n");
    }
    text
}
