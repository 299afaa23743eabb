//! `moothall edit`: lets a model edit files through drafts, which the gate checks.

mod report;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use moothall_core::drafts::RelPath;
use moothall_core::edit::EditInput;
use moothall_core::model::ModelList;
use moothall_core::{EditSpec, RunId, RunSettings, RunSpec};
use moothall_engine::RunRecord;
use moothall_models::RunLedger;

use self::report::EditReport;
use super::draft::store::open_with_view;
use super::pausable_run::DriveResult;
use super::resumable_run::{ResumableRun, lock_error, refuse_if_ended};
use super::run::{RunOutputMode, RunProgressView, drive};
use super::runtime;
use crate::args::{EditCommandArgs, GlobalArgs, ResumeArgs, WorkspaceFlags};
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::launch::{self, PreparedRun};
use crate::notify;
use crate::run_store::{self, RunStore};
use crate::terminal::DIM;
use crate::{files, logging, terminal};

/// Limit for tasks from standard input.
const MAX_TASK_BYTES: u64 = 8 * 1024 * 1024;
const TASK_HINT: &str = "pass it as an argument, `moothall edit \"…\"`, or pipe it in";

/// Shown before the first call, because every other task fails.
const DEMO_TASK_NOTICE: &str =
    "the demo model knows only one task: adding --version to a Python program";

/// Output files.
struct EditOutputFiles {
    receipt: Option<PathBuf>,
    events: Option<PathBuf>,
}

pub(crate) fn run(global: &GlobalArgs, args: &EditCommandArgs) -> anyhow::Result<CliExit> {
    let settings = RunSettings {
        budget_micro_usd: args.calls.budget,
        budget_tokens: args.calls.budget_tokens,
        base_url: args.model.base_url.clone(),
        record: files::absolute_path(args.calls.replies.record.as_deref())?,
        replay: files::absolute_path(args.calls.replies.replay.as_deref())?,
        ..RunSettings::default()
    };
    let task = args.task.as_deref();
    let task = files::argument_or_stdin(task, "task", TASK_HINT, MAX_TASK_BYTES)?;
    let context = launch::context(
        global.config.as_deref(),
        &settings,
        args.model.model.as_ref().map(ModelList::first),
    )?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let spec = edit_spec(&context, args, task, settings)?;
    if args.view.handoff.is_some() {
        let flags = WorkspaceFlags { workspace: spec.workspace.clone(), json: false };
        open_with_view(global, &flags, &args.view)?;
    }
    let files = EditOutputFiles {
        receipt: args.calls.files.receipt.clone(),
        events: args.calls.files.events.clone(),
    };
    let audience = if args.json { RunOutputMode::Json } else { RunOutputMode::Person };
    if audience == RunOutputMode::Person && spec.input.model.first().is_demo() {
        terminal::note(&format!("{DIM}{DEMO_TASK_NOTICE}{DIM:#}\n"));
    }

    runtime()?.block_on(async {
        let prepared = PreparedRun::open(&context, RunSpec::Edit(spec.clone())).await?;
        let local = RunStore::open(&context.loaded).await?;
        let new = prepared.new_run(None)?;
        let run_id = new.run_id.clone();
        let _lock = local.lock(&run_id).await.map_err(lock_error)?;
        local.store.create_run(new).await.map_err(run_store::store_error)?;
        let ledger = RunLedger::new(context.budget());
        let run = EditRun { context: &context, prepared: &prepared, spec: &spec, local: &local };
        run.conclude(&run_id, ledger, &files, audience).await
    })
}

pub(crate) fn resume(
    global: &GlobalArgs,
    args: &ResumeArgs,
    found: &ResumableRun,
    spec: &EditSpec,
) -> anyhow::Result<CliExit> {
    let ResumableRun { runtime, local, row } = found;
    let model = spec.input.model.first();
    let context = launch::context(global.config.as_deref(), &spec.settings, Some(model))?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let files = EditOutputFiles { receipt: args.receipt.clone(), events: args.events.clone() };
    let audience = if args.json { RunOutputMode::Json } else { RunOutputMode::Person };

    runtime.block_on(async {
        let prepared = PreparedRun::open(&context, RunSpec::Edit(spec.clone())).await?;
        let _lock = local.lock(&row.run_id).await.map_err(lock_error)?;
        // Read again: the run may have ended while this process waited for the lock.
        let row = local.find(row.run_id.as_str()).await?;
        refuse_if_ended(&row)?;
        let ledger = RunLedger::resume(context.budget(), row.spent.unwrap_or_default());
        let run = EditRun { context: &context, prepared: &prepared, spec, local };
        run.conclude(&row.run_id, ledger, &files, audience).await
    })
}

/// Builds the spec from the flags.
fn edit_spec(
    context: &CommandContext,
    args: &EditCommandArgs,
    task: String,
    mut settings: RunSettings,
) -> Result<EditSpec, CliError> {
    launch::set_budget(&mut settings, context.budget());
    let mut input = EditInput::new(task, context.model(args.model.model.as_ref())?);
    input.attempts = args.attempts;
    input.wait_s = args.wait;
    let paths: Result<_, _> = args.file.iter().map(|file| RelPath::parse(file)).collect();
    input.files = paths.map_err(|fault| CliError::usage(fault.to_string()))?;
    let cards: Vec<_> = input.model.iter().map(|model| context.catalog.card(model)).collect();
    input.max_tokens = input.max_tokens.min(launch::max_output(&cards));
    let workspace = files::absolute_path(Some(&args.path))?.unwrap_or_else(|| args.path.clone());
    let spec = EditSpec { input, workspace, worker: args.worker.clone(), settings };
    // Reject an invalid spec before anything is created.
    launch::workflow(&RunSpec::Edit(spec.clone()))?;
    Ok(spec)
}

struct EditRun<'a> {
    context: &'a CommandContext,
    prepared: &'a PreparedRun,
    spec: &'a EditSpec,
    local: &'a RunStore,
}

impl EditRun<'_> {
    /// Executes the run, writes the requested files and reports the result.
    async fn conclude(
        &self,
        run_id: &RunId,
        ledger: RunLedger,
        files: &EditOutputFiles,
        audience: RunOutputMode,
    ) -> anyhow::Result<CliExit> {
        let Self { context, prepared, spec, local } = self;
        let view = Arc::new(Mutex::new(RunProgressView::new(audience, spec.input.model.first())));
        let ended = drive(prepared, local, run_id, ledger, &view).await;
        let notification = DriveResult::notification(&ended);
        notify::report_and_notify(&context.loaded, run_id, notification, ended, async |ended| {
            let record =
                RunRecord::read(&*local.store, run_id).await.map_err(run_store::store_error)?;
            let saved =
                files.events.as_deref().map_or(Ok(()), |path| files::write_events(path, &record));
            let saved = saved.and_then(|()| match (&files.receipt, record.receipt()) {
                (Some(path), Some(receipt)) => files::write_receipt(path, &receipt),
                _ => Ok(()),
            });
            let report = EditReport { context, spec, record: &record, ended: &ended };
            // The result is reported even if files cannot be written, because it is paid for.
            match (report.print(audience), saved) {
                (printed, Ok(())) => printed,
                (Ok(_), Err(unsaved)) => Err(unsaved),
                (Err(error), Err(unsaved)) => {
                    terminal::show_error(&unsaved.into());
                    Err(error)
                }
            }
        })
        .await
    }
}
