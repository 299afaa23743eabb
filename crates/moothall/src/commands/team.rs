//! `moothall team`: creates and lists teams, which own the runs of a server.

use std::fmt::Write as _;

use moothall_core::access::TeamName;
use moothall_store::{StoreError, TeamRow, now_ms};
use serde_json::{Value, json};

use super::runtime;
use crate::args::{GlobalArgs, TeamCommand};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::run_store::{self, RunStore};
use crate::terminal::{self, BOLD, DIM};
use crate::{config, logging};

pub(crate) fn run(global: &GlobalArgs, command: &TeamCommand) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let local = RunStore::open(&loaded).await?;
        match command {
            TeamCommand::Create { name, json } => {
                local.accounts().create_team(name, now_ms()).await.map_err(refusal)?;
                if *json {
                    terminal::print(&format!("{:#}\n", json!({ "team": name })))?;
                } else {
                    terminal::print(&format!("team {name}\n"))?;
                    terminal::note(&format!(
                        "{DIM}create a token for it: moothall token create --team {name} --scope run\
                         {DIM:#}\n"
                    ));
                }
            }
            TeamCommand::List { json } => {
                let teams = local.accounts().teams().await.map_err(run_store::store_error)?;
                if *json {
                    let teams: Vec<Value> = teams.iter().map(team_json).collect();
                    terminal::print(&format!("{:#}\n", json!({ "teams": teams })))?;
                } else {
                    terminal::print(&table(&teams))?;
                }
            }
        }
        local.close().await;
        Ok(CliExit::Fine)
    })
}

pub(crate) fn no_such_team(name: &TeamName) -> CliError {
    CliError::usage(format!("no team named `{name}`")).with_hint(format!(
        "create it with `moothall team create {name}`, or see `moothall team list`"
    ))
}

fn refusal(error: StoreError) -> CliError {
    match error {
        StoreError::TeamExists(name) => CliError::usage(format!("team `{name}` already exists"))
            .with_hint("see `moothall team list`"),
        error => run_store::store_error(error),
    }
}

fn team_json(team: &TeamRow) -> Value {
    json!({ "team": team.name, "created_at_ms": team.created_at_ms })
}

fn table(teams: &[TeamRow]) -> String {
    let width = teams.iter().map(|team| team.name.as_str().len()).max().unwrap_or(0).max(4);
    let mut text = format!("{BOLD}{:<width$}  SINCE{BOLD:#}\n", "TEAM");
    for team in teams {
        let since = match team.created_at_ms {
            0 => "always".to_owned(),
            at_ms => display::time(at_ms),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<width$}  {since}", team.name);
    }
    text
}
