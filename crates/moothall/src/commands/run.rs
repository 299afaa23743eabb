//! `moothall run`: generates a program for a task and tests it in a sandbox.

mod drive;
mod report;
mod view;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use moothall_core::{ProgramSpec, RunId, RunSpec};
use moothall_engine::{RunExit, RunRecord};
use moothall_models::RunLedger;
use moothall_store::{Store, StoredEvent};
use serde_json::json;

pub(crate) use self::drive::{SharedView, drive, lock_view, log, with_progress};
use self::report::ProgramReport;
pub(crate) use self::view::{RunOutputMode, RunProgressView};
use super::pausable_run::DriveResult;
use super::resumable_run::{ResumableRun, lock_error, refuse_if_ended};
use super::{InterruptibleResult, attempts, runtime};
use crate::args::{GlobalArgs, ResumeArgs, RunArgs};
use crate::artifacts::WrittenFiles;
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::launch::{self, PreparedRun, ProgramRequest, cluster};
use crate::notify;
use crate::run_store::{self, RunStore};
use crate::{files, logging, terminal};

/// Output files.
struct ProgramOutputFiles {
    receipt: Option<PathBuf>,
    events: Option<PathBuf>,
}

pub(crate) fn run(global: &GlobalArgs, args: &RunArgs) -> anyhow::Result<CliExit> {
    let audience = match (args.stdio, args.json) {
        (true, _) => RunOutputMode::Stdio,
        (false, true) => RunOutputMode::Json,
        (false, false) => RunOutputMode::Person,
    };
    let result = start(global, args, audience);
    match (audience, result) {
        // A program that uses `--stdio` does not read standard error.
        (RunOutputMode::Stdio, Err(error)) => {
            let error = CliError::from(error);
            let error_line = json!({
                "error": {
                    "message": error.full_message(),
                    "hint": error.hint,
                    "exit_code": error.exit.code(),
                }
            });
            terminal::print(&format!("{error_line}\n"))?;
            Err(error.into())
        }
        (_, result) => result,
    }
}

fn start(global: &GlobalArgs, args: &RunArgs, audience: RunOutputMode) -> anyhow::Result<CliExit> {
    let request = ProgramRequest::from_args(args)?;
    let context = request.context(global.config.as_deref())?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let spec = request.spec(&context)?;
    let files = ProgramOutputFiles {
        receipt: args.calls.files.receipt.clone(),
        events: args.calls.files.events.clone(),
    };
    let view = Arc::new(Mutex::new(RunProgressView::new(audience, spec.input.model.first())));

    runtime()?.block_on(async {
        // The workers of a cluster use their own sandboxes.
        let prepared = match spec.settings.restate {
            None => Some(prepare(&context, &spec, &view).await?),
            Some(_) => None,
        };
        let local = RunStore::open(&context.loaded).await?;
        let new = launch::new_run(&RunSpec::Program(spec.clone()), None)?;
        let (run_id, stored) = (new.run_id.clone(), new.spec.clone());
        let _lock = local.lock(&run_id).await.map_err(lock_error)?;
        local.store.create_run(new).await.map_err(run_store::store_error)?;
        for bytes in request.inputs.values() {
            local.store.keep_artifact(&run_id, bytes).await.map_err(run_store::store_error)?;
        }
        let ended = match (prepared, &spec.settings.restate) {
            (Some(prepared), _) => {
                let ledger = RunLedger::new(context.budget());
                let ended = drive(&prepared, &local, &run_id, ledger, &view).await;
                DriveResult::shut_down(&ended, &prepared).await;
                ended
            }
            (None, restate) => {
                let restate = restate.as_deref().unwrap_or_default();
                cluster::submit_new_run(restate, &stored, &*local.store, &run_id).await?;
                follow(&*local.store, &run_id, &[], &view).await
            }
        };
        let notification = DriveResult::notification(&ended);
        notify::report_and_notify(&context.loaded, &run_id, notification, ended, async |ended| {
            finish(&context, &local, &spec, &run_id, ended, &files, audience).await
        })
        .await
    })
}

pub(crate) fn resume(
    global: &GlobalArgs,
    args: &ResumeArgs,
    found: &ResumableRun,
    spec: &ProgramSpec,
) -> anyhow::Result<CliExit> {
    let ResumableRun { runtime, local, row } = found;
    let audience = if args.json { RunOutputMode::Json } else { RunOutputMode::Person };
    let model = spec.input.model.first();
    let context = launch::context(global.config.as_deref(), &spec.settings, Some(model))?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let files = ProgramOutputFiles { receipt: args.receipt.clone(), events: args.events.clone() };
    let view = Arc::new(Mutex::new(RunProgressView::new(audience, spec.input.model.first())));

    runtime.block_on(async {
        if let Some(restate) = &spec.settings.restate {
            let store = &*local.store;
            let record =
                RunRecord::read(store, &row.run_id).await.map_err(run_store::store_error)?;
            cluster::resume(restate, store, &row.run_id, args.raised_budget()).await?;
            let ended = follow(store, &row.run_id, &record.events, &view).await?;
            return finish(&context, local, spec, &row.run_id, ended, &files, audience).await;
        }
        let _lock = local.lock(&row.run_id).await.map_err(lock_error)?;
        // Read again: the run may have ended while this process waited for the lock.
        let row = local.find(row.run_id.as_str()).await?;
        refuse_if_ended(&row)?;
        let prepared = prepare(&context, spec, &view).await?;
        let ledger = RunLedger::resume(context.budget(), row.spent.unwrap_or_default());
        let ended = drive(&prepared, local, &row.run_id, ledger, &view).await;
        DriveResult::shut_down(&ended, &prepared).await;
        let notification = DriveResult::notification(&ended);
        notify::report_and_notify(
            &context.loaded,
            &row.run_id,
            notification,
            ended,
            async |ended| finish(&context, local, spec, &row.run_id, ended, &files, audience).await,
        )
        .await
    })
}

/// Follows a run that workers execute until it stops. The events in `before` were already shown.
async fn follow(
    store: &dyn Store,
    run_id: &RunId,
    before: &[StoredEvent],
    view: &SharedView,
) -> anyhow::Result<DriveResult> {
    let on_event = |stored: &StoredEvent| lock_view(view).event(run_id, stored);
    match with_progress(view, cluster::follow_until_stopped(store, run_id, before, on_event)).await
    {
        InterruptibleResult::Done(ended) => Ok(DriveResult::Ended(ended?)),
        InterruptibleResult::Cancelled => Err(cluster::detached_error(run_id).into()),
    }
}

/// Opens what the run needs. Cancelling here loses nothing.
async fn prepare(
    context: &CommandContext,
    spec: &ProgramSpec,
    view: &SharedView,
) -> Result<PreparedRun, CliError> {
    lock_view(view).wait_for("checking sandboxes");
    let opening = PreparedRun::open(context, RunSpec::Program(spec.clone()));
    let InterruptibleResult::Done(prepared) = with_progress(view, opening).await else {
        return Err(CliError::new(CliExit::Cancelled, "cancelled"));
    };
    prepared.inspect(PreparedRun::warm_up)
}

/// Writes the requested files and reports the result of the run.
async fn finish(
    context: &CommandContext,
    local: &RunStore,
    spec: &ProgramSpec,
    run_id: &RunId,
    ended: DriveResult,
    output_files: &ProgramOutputFiles,
    audience: RunOutputMode,
) -> anyhow::Result<CliExit> {
    let record = RunRecord::read(&*local.store, run_id).await.map_err(run_store::store_error)?;
    let artifacts_written = match (&ended, &spec.settings.output) {
        (DriveResult::Ended(RunExit::Done(_)), Some(folder)) => {
            files::write_artifacts(&*local.store, run_id, &attempts::files(&record), folder).await
        }
        _ => Ok(WrittenFiles::default()),
    };
    let saved =
        output_files.events.as_deref().map_or(Ok(()), |path| files::write_events(path, &record));
    let saved = saved.and_then(|()| match (&output_files.receipt, record.receipt()) {
        (Some(path), Some(receipt)) => files::write_receipt(path, &receipt),
        _ => Ok(()),
    });
    let (written, unsaved) = match artifacts_written {
        Ok(written) => (written, saved.err()),
        Err(error) => (WrittenFiles::default(), Some(error)),
    };
    let (model, record, ended, written) = (spec.input.model.first(), &record, &ended, &written);
    // The result is reported even if files cannot be written, because it is paid for.
    let printed = ProgramReport { context, model, record, ended, written }.print(audience);
    match (printed, unsaved) {
        (printed, None) => printed,
        (Ok(_), Some(unsaved)) => Err(unsaved),
        (Err(error), Some(unsaved)) => {
            terminal::show_error(&unsaved.into());
            Err(error)
        }
    }
}
