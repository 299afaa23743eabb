//! `moothall runs rm` and `moothall runs prune`: runs that go, and their space comes back.

use std::fmt::Write as _;
use std::time::Duration;

use moothall_engine::EngineError;
use moothall_store::{RunFilter, RunRow, Teams, Wish, now_ms};
use serde_json::{Value, json};

use super::run_json;
use crate::args::{DeleteFlags, PruneArgs, RemoveArgs};
use crate::commands::{found_run, question, runtime};
use crate::config::Loaded;
use crate::display;
use crate::error::{CliError, Exit};
use crate::local::{self, DriverLock, Local};
use crate::terminal::{self, DIM};

/// The longest title in a list.
const TITLE_CHARS: usize = 50;

/// A run that is about to go.
struct Doomed {
    row: RunRow,
    bytes: u64,
    /// Of a run that could go on: so that nobody goes on with it meanwhile.
    _lock: Option<DriverLock>,
}

/// Deletes the runs that were named: all of them, or none.
pub(super) fn remove(loaded: &Loaded, args: &RemoveArgs) -> anyhow::Result<Exit> {
    runtime()?.block_on(async {
        let Some(local) = Local::open_existing(loaded).await? else {
            let first = args.runs.first().map(String::as_str).unwrap_or_default();
            return Err(local::no_such_run(first).into());
        };
        let mut doomed: Vec<Doomed> = Vec::new();
        for named in &args.runs {
            let row = local.find(named).await?;
            if doomed.iter().any(|one| one.row.run_id == row.run_id) {
                continue;
            }
            if !row.state.is_terminal() && !args.how.force {
                return Err(could_go_on(&local, &row).await?.into());
            }
            match doom(&local, row).await {
                Ok(found) => doomed.push(found),
                Err(EngineError::Store(error)) => return Err(local::broken(error).into()),
                Err(error) => return Err(found_run::unlocked(error).into()),
            }
        }
        delete(&local, &doomed, &args.how, Wanted::Deletion).await
    })
}

/// Deletes what is old, and leaves what a process drives.
pub(super) fn prune(loaded: &Loaded, args: &PruneArgs) -> anyhow::Result<Exit> {
    let wanted = if args.dry_run { Wanted::Report } else { Wanted::Deletion };
    runtime()?.block_on(async {
        let Some(local) = Local::open_existing(loaded).await? else {
            return nothing(&args.how);
        };
        let filter = RunFilter { teams: Teams::All, state: None, limit: u32::MAX };
        let rows = local.store.runs(filter).await.map_err(local::broken)?;
        let mut doomed = Vec::new();
        for row in outdated(rows, now_ms(), args.older_than, args.keep) {
            if !row.state.is_terminal() && !args.how.force {
                continue;
            }
            match doom(&local, row).await {
                Ok(found) => doomed.push(found),
                // Someone drives it.
                Err(EngineError::Busy(_)) => {}
                Err(EngineError::Store(error)) => return Err(local::broken(error).into()),
                Err(error) => return Err(found_run::unlocked(error).into()),
            }
        }
        delete(&local, &doomed, &args.how, wanted).await
    })
}

/// Of runs that are listed newest first, those that nobody wants to keep.
fn outdated(rows: Vec<RunRow>, now_ms: u64, older_than: Duration, keep: usize) -> Vec<RunRow> {
    let age = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
    let is_old = |row: &RunRow| row.updated_at_ms <= now_ms.saturating_sub(age) && age <= now_ms;
    rows.into_iter().skip(keep).filter(is_old).collect()
}

/// Takes what must be had before a run may go.
async fn doom(local: &Local, row: RunRow) -> Result<Doomed, EngineError> {
    // Workers hear a wish within a second. A run that still stands there has none, and one that comes
    // back finds it gone and lets go.
    if local::restate_of(&row.spec).is_some()
        && !local.driven(std::slice::from_ref(&row)).await?.is_empty()
        && !local.store.wishes(&row.run_id).await?.contains(&Wish::Cancel)
    {
        return Err(EngineError::Busy(row.run_id));
    }
    // A process that has just come to the end still writes what its person waits for.
    let lock = local.lock(&row.run_id).await?;
    // Nothing follows the end, so nobody takes a run that is over; and there may be thousands.
    let lock = Some(lock).filter(|_| !row.state.is_terminal());
    let bytes = local.store.run_bytes(&row.run_id).await?;
    Ok(Doomed { row, bytes, _lock: lock })
}

/// Whether a person wants it done or only told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Deletion,
    Report,
}

async fn delete(
    local: &Local,
    doomed: &[Doomed],
    how: &DeleteFlags,
    wanted: Wanted,
) -> anyhow::Result<Exit> {
    if doomed.is_empty() {
        return nothing(how);
    }
    let bytes = doomed.iter().map(|one| one.bytes).sum();
    let many = display::runs(doomed.len() as u64);
    if !how.json {
        terminal::note(&list(doomed));
    }
    if wanted == Wanted::Report {
        let would = format!("{many} with {} would be deleted\n", display::bytes(bytes));
        terminal::print(&if how.json { report(doomed, bytes, None) } else { would })?;
        return Ok(Exit::Fine);
    }
    if !how.yes {
        if !question::somebody_is_there() {
            return Err(CliError::usage(format!("nobody can be asked whether {many} may go"))
                .with_hint("say `--yes`")
                .into());
        }
        let asked = format!("Delete {many} with {} for good?", display::bytes(bytes));
        if !question::agreed(&asked).await {
            return Err(CliError::new(Exit::Cancelled, "nothing was deleted").into());
        }
    }
    let ids: Vec<_> = doomed.iter().map(|one| one.row.run_id.clone()).collect();
    let undone = |error| CliError::failed("the runs cannot be deleted").with_source(error);
    local.store.delete_runs(&ids).await.map_err(undone)?;
    ids.iter().for_each(|id| local.forget(id));
    let freed = local.store.give_back().await.map_err(|error| {
        CliError::failed("the runs are gone, but their space was not given back").with_source(error)
    })?;
    terminal::print(&match how.json {
        true => report(doomed, bytes, Some(freed)),
        false => format!(
            "deleted {many} with {}; the disk has {} back\n",
            display::bytes(bytes),
            display::bytes(freed)
        ),
    })?;
    Ok(Exit::Fine)
}

fn nothing(how: &DeleteFlags) -> anyhow::Result<Exit> {
    terminal::print(&match how.json {
        true => report(&[], 0, None),
        false => "there is nothing to delete\n".to_owned(),
    })?;
    Ok(Exit::Fine)
}

async fn could_go_on(local: &Local, row: &RunRow) -> Result<CliError, CliError> {
    let state = display::state(row, local.is_driven(row).await?);
    let id = local::short(&row.run_id);
    Ok(CliError::usage(format!("run {} is {state}: it could go on", row.run_id))
        .with_hint(format!("end it first: `moothall cancel {id}`; or say `--force`")))
}

fn list(doomed: &[Doomed]) -> String {
    let mut text = String::new();
    for Doomed { row, bytes, .. } in doomed {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<13}  {:<11}  {:>10}  {DIM}{}{DIM:#}",
            local::short(&row.run_id),
            display::state(row, false),
            display::bytes(*bytes),
            display::cut(&row.title, TITLE_CHARS),
        );
    }
    text
}

/// `freed`: how many bytes the disk has back, where anything was deleted.
fn report(doomed: &[Doomed], bytes: u64, freed: Option<u64>) -> String {
    let runs: Vec<Value> = doomed
        .iter()
        .map(|one| {
            let mut run = run_json(&one.row, false);
            if let Value::Object(run) = &mut run {
                run.insert("bytes".to_owned(), json!(one.bytes));
            }
            run
        })
        .collect();
    let report = json!({
        "deleted": freed.is_some(),
        "bytes": bytes,
        "freed_bytes": freed.unwrap_or_default(),
        "runs": runs,
    });
    format!("{report:#}\n")
}

#[cfg(test)]
#[path = "remove_tests.rs"]
mod tests;
