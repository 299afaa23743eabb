//! `moothall runs`: lists stored runs.

mod remove;

use moothall_core::consult::ForkParent;
use moothall_store::{RunFilter, RunRow, TeamFilter};
use serde_json::{Value, json};

use super::runtime;
use crate::args::{GlobalArgs, RunsArgs, RunsCommand};
use crate::display;
use crate::display::table::{Table, TableColumn};
use crate::error::CliExit;
use crate::run_store::{self, RunStore};
use crate::terminal::{self, DIM};
use crate::{config, logging};

/// Longer titles are cut.
const TITLE_CHARS: usize = 50;

pub(crate) fn run(global: &GlobalArgs, args: &RunsArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    match &args.command {
        Some(RunsCommand::Rm(args)) => return remove::remove(&loaded, args),
        Some(RunsCommand::Prune(args)) => return remove::prune(&loaded, args),
        None => {}
    }
    let rows = runtime()?.block_on(async {
        let Some(local) = RunStore::open_existing(&loaded).await? else {
            return Ok(Vec::new());
        };
        let filter = RunFilter { teams: TeamFilter::All, state: args.state, limit: args.limit };
        let rows = local.store.runs(filter).await.map_err(run_store::store_error)?;
        let open = rows.iter().filter(|row| !row.state.is_terminal());
        let open: Vec<RunRow> = open.cloned().collect();
        let driven = local.driven(&open).await.map_err(run_store::store_error)?;
        let look = |row: RunRow| {
            let is_driven = driven.contains(&row.run_id);
            (row, is_driven)
        };
        anyhow::Ok(rows.into_iter().map(look).collect::<Vec<_>>())
    })?;
    if args.json {
        let runs: Vec<Value> =
            rows.iter().map(|(row, is_driven)| run_json(row, *is_driven)).collect();
        terminal::print(&format!("{:#}\n", json!({ "runs": runs })))?;
    } else if rows.is_empty() {
        let which = args.state.map_or(String::new(), |state| format!(" with state {state}"));
        terminal::print(&format!("no runs{which}\n"))?;
        terminal::note(&format!(
            "{DIM}start one: moothall run --model demo \"print the first 20 primes\"{DIM:#}\n"
        ));
    } else {
        terminal::print(&table(&rows, terminal::stdout_columns()))?;
    }
    Ok(CliExit::Fine)
}

/// The title, with the parent of a fork.
fn title(row: &RunRow) -> String {
    let title = display::cut(&row.title, TITLE_CHARS);
    match parent(row) {
        Some(parent) => format!("{title} (fork of {})", run_store::short_id(&parent.run)),
        None => title,
    }
}

fn table(rows: &[(RunRow, bool)], terminal_width: Option<usize>) -> String {
    let cells = |cell: &dyn Fn(&RunRow) -> String| -> Vec<String> {
        rows.iter().map(|(row, _)| cell(row)).collect()
    };
    let state = |(row, is_driven): &(RunRow, bool)| display::state(row, *is_driven).to_owned();
    let verdict = |row: &RunRow| row.outcome.as_ref().map_or("", display::verdict).to_owned();
    let spent = |row: &RunRow| row.spent.map_or_else(String::new, |spent| spent.usd.to_string());
    let columns = vec![
        TableColumn::text("RUN", 0, cells(&|row| run_store::short_id(&row.run_id).to_owned())),
        TableColumn::text("STATE", 0, rows.iter().map(state).collect()).at_least(11),
        TableColumn::text("VERDICT", 2, cells(&verdict)).at_least(14),
        TableColumn::text("STARTED", 4, cells(&|row| display::time(row.created_at_ms))),
        TableColumn::number("SPENT", 3, cells(&spent)).at_least(9),
        TableColumn::text("TITLE", 0, cells(&title)),
    ];
    Table::new(columns, terminal_width).render()
}

/// The run that a fork continues.
pub(crate) fn parent(row: &RunRow) -> Option<&ForkParent> {
    row.spec.consult()?.input.parent.as_ref()
}

/// JSON form of a run in lists and at the start of its details.
pub(crate) fn run_json(row: &RunRow, is_driven: bool) -> Value {
    let mut report = json!({
        "run_id": row.run_id,
        "workflow": row.spec.workflow(),
        "title": row.title,
        "model": row.model,
        "build": row.build,
        "state": row.state,
        "is_driven": is_driven,
        "created_at_ms": row.created_at_ms,
        "updated_at_ms": row.updated_at_ms,
        "events": row.events,
        "result": row.outcome.as_ref().map(display::verdict),
        "verdict": row.outcome.as_ref().map(|outcome| outcome.verdict),
        "spent": row.spent.as_ref().map(display::spent_json),
    });
    if let (Some(parent), Value::Object(report)) = (parent(row), &mut report) {
        report.insert("parent".to_owned(), json!({"run_id": parent.run, "from": parent.from}));
    }
    report
}
