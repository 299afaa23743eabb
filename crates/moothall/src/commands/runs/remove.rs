//! `moothall runs rm` and `moothall runs prune`: deletes runs and reclaims their disk space.

use std::fmt::Write as _;
use std::time::Duration;

use moothall_engine::EngineError;
use moothall_store::{ControlRequest, RunFilter, RunRow, TeamFilter, now_ms};
use serde_json::{Value, json};

use super::run_json;
use crate::args::{DeleteFlags, PruneArgs, RemoveArgs};
use crate::commands::{prompt, resumable_run, runtime};
use crate::config::LoadedConfig;
use crate::display;
use crate::error::{CliError, CliExit};
use crate::run_store::{self, DriverLock, RunStore};
use crate::terminal::{self, DIM};

/// Longer titles are cut.
const TITLE_CHARS: usize = 50;

/// A run that is about to be deleted.
struct RunDeletion {
    row: RunRow,
    bytes: u64,
    /// Prevents another process from resuming an unfinished run.
    _lock: Option<DriverLock>,
}

/// Deletes either all named runs or none.
pub(crate) fn remove(loaded: &LoadedConfig, args: &RemoveArgs) -> anyhow::Result<CliExit> {
    runtime()?.block_on(async {
        let Some(local) = RunStore::open_existing(loaded).await? else {
            let first = args.runs.first().map(String::as_str).unwrap_or_default();
            return Err(run_store::no_such_run(first).into());
        };
        let mut deletions: Vec<RunDeletion> = Vec::new();
        for named in &args.runs {
            let row = local.find(named).await?;
            if deletions.iter().any(|one| one.row.run_id == row.run_id) {
                continue;
            }
            if !row.state.is_terminal() && !args.how.force {
                return Err(resumable_error(&local, &row).await?.into());
            }
            match lock_for_deletion(&local, row).await {
                Ok(found) => deletions.push(found),
                Err(EngineError::Store(error)) => return Err(run_store::store_error(error).into()),
                Err(error) => return Err(resumable_run::lock_error(error).into()),
            }
        }
        delete(&local, &deletions, &args.how, DeletionMode::Deletion).await
    })
}

/// Deletes old runs that no process is executing.
pub(crate) fn prune(loaded: &LoadedConfig, args: &PruneArgs) -> anyhow::Result<CliExit> {
    let mode = if args.dry_run { DeletionMode::Report } else { DeletionMode::Deletion };
    runtime()?.block_on(async {
        let Some(local) = RunStore::open_existing(loaded).await? else {
            return report_nothing(&args.how);
        };
        let filter = RunFilter { teams: TeamFilter::All, state: None, limit: u32::MAX };
        let rows = local.store.runs(filter).await.map_err(run_store::store_error)?;
        let mut deletions = Vec::new();
        for row in outdated(rows, now_ms(), args.older_than, args.keep) {
            if !row.state.is_terminal() && !args.how.force {
                continue;
            }
            match lock_for_deletion(&local, row).await {
                Ok(found) => deletions.push(found),
                // Another process is executing it.
                Err(EngineError::Busy(_)) => {}
                Err(EngineError::Store(error)) => return Err(run_store::store_error(error).into()),
                Err(error) => return Err(resumable_run::lock_error(error).into()),
            }
        }
        delete(&local, &deletions, &args.how, mode).await
    })
}

/// Old runs beyond the newest `keep`. `rows` is sorted newest first.
fn outdated(rows: Vec<RunRow>, now_ms: u64, older_than: Duration, keep: usize) -> Vec<RunRow> {
    let age = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
    let is_old = |row: &RunRow| row.updated_at_ms <= now_ms.saturating_sub(age) && age <= now_ms;
    rows.into_iter().skip(keep).filter(is_old).collect()
}

/// Locks a run for deletion.
async fn lock_for_deletion(local: &RunStore, row: RunRow) -> Result<RunDeletion, EngineError> {
    // Workers act on a cancel request within a second. A run that still looks active after one has
    // no worker, and a worker that returns finds the run deleted and stops.
    if run_store::restate_url(&row.spec).is_some()
        && !local.driven(std::slice::from_ref(&row)).await?.is_empty()
        && !local.store.control_requests(&row.run_id).await?.contains(&ControlRequest::Cancel)
    {
        return Err(EngineError::Busy(row.run_id));
    }
    // Waits for a process whose run has just ended and that still writes its results.
    let lock = local.lock(&row.run_id).await?;
    // A finished run needs no lock, because it cannot be resumed; there may be thousands of them.
    let lock = Some(lock).filter(|_| !row.state.is_terminal());
    let bytes = local.store.run_bytes(&row.run_id).await?;
    Ok(RunDeletion { row, bytes, _lock: lock })
}

/// Whether to delete runs or only report them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeletionMode {
    Deletion,
    Report,
}

async fn delete(
    local: &RunStore,
    deletions: &[RunDeletion],
    how: &DeleteFlags,
    mode: DeletionMode,
) -> anyhow::Result<CliExit> {
    if deletions.is_empty() {
        return report_nothing(how);
    }
    let bytes = deletions.iter().map(|one| one.bytes).sum();
    let many = display::runs(deletions.len() as u64);
    if !how.json {
        terminal::note(&list(deletions));
    }
    if mode == DeletionMode::Report {
        let would = format!("{many} with {} would be deleted\n", display::bytes(bytes));
        terminal::print(&if how.json { report(deletions, bytes, None) } else { would })?;
        return Ok(CliExit::Fine);
    }
    if !how.yes {
        if !prompt::is_interactive() {
            return Err(CliError::usage(format!("deleting {many} needs confirmation"))
                .with_hint("pass `--yes` to confirm")
                .into());
        }
        let question = format!("Permanently delete {many} with {}?", display::bytes(bytes));
        if !prompt::confirm(&question).await {
            return Err(CliError::new(CliExit::Cancelled, "nothing was deleted").into());
        }
    }
    let ids: Vec<_> = deletions.iter().map(|one| one.row.run_id.clone()).collect();
    let delete_failed = |error| CliError::failed("cannot delete the runs").with_source(error);
    local.store.delete_runs(&ids).await.map_err(delete_failed)?;
    ids.iter().for_each(|id| local.forget(id));
    let freed = local.store.reclaim_space().await.map_err(|error| {
        CliError::failed("the runs were deleted, but their disk space was not reclaimed")
            .with_source(error)
            .with_hint(
                "new runs reuse the space; deleting other runs later tries again to reclaim it",
            )
    })?;
    terminal::print(&match how.json {
        true => report(deletions, bytes, Some(freed)),
        false => format!(
            "deleted {many} with {}; reclaimed {} of disk space\n",
            display::bytes(bytes),
            display::bytes(freed)
        ),
    })?;
    Ok(CliExit::Fine)
}

fn report_nothing(how: &DeleteFlags) -> anyhow::Result<CliExit> {
    terminal::print(&match how.json {
        true => report(&[], 0, None),
        false => "nothing to delete\n".to_owned(),
    })?;
    Ok(CliExit::Fine)
}

async fn resumable_error(local: &RunStore, row: &RunRow) -> Result<CliError, CliError> {
    let state = display::state(row, local.is_driven(row).await?);
    let id = run_store::short_id(&row.run_id);
    Ok(CliError::usage(format!("run {} is {state} and can still be resumed", row.run_id))
        .with_hint(format!("cancel it first with `moothall cancel {id}`, or pass `--force`")))
}

fn list(deletions: &[RunDeletion]) -> String {
    let mut text = String::new();
    for RunDeletion { row, bytes, .. } in deletions {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<13}  {:<11}  {:>10}  {DIM}{}{DIM:#}",
            run_store::short_id(&row.run_id),
            display::state(row, false),
            display::bytes(*bytes),
            display::cut(&row.title, TITLE_CHARS),
        );
    }
    text
}

/// `freed`: reclaimed bytes, if runs were deleted.
fn report(deletions: &[RunDeletion], bytes: u64, freed: Option<u64>) -> String {
    let runs: Vec<Value> = deletions
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
