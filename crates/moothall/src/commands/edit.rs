//! `moothall edit`: a model with hands. What it proposes goes through the gate, like everybody's.

mod kept;
mod report;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use moothall_core::RunId;
use moothall_core::drafts::{RelPath, TaskId};
use moothall_core::edit::{EditInput, EditWorkflow};
use moothall_core::model::ModelName;
use moothall_engine::{
    DraftPerformer, Driver, Ended, ModelPerformer, Performer as _, RunRecord, cancel,
};
use moothall_models::{Gateway, Ledger};

use self::kept::Kept;
use self::report::Report;
use super::draft::store::{open, open_with_view};
use super::resume::{Found, refuse_if_over, unlocked};
use super::run::{Audience, SharedView, View, shown, watched};
use super::{Interruptible, files, runtime, words};
use crate::args::{EditArgs, Global, HandoffFlags, ResumeArgs, WorkspaceFlags};
use crate::context::Context;
use crate::error::{CliError, Exit};
use crate::local::{self, Local};
use crate::notice::{self, News};
use crate::{logging, terminal};

/// The longest task that is read from a pipe.
const MAX_TASK_BYTES: u64 = 8 * 1024 * 1024;
/// The longest title of a run; the whole task is in its input.
const TITLE_CHARS: usize = 100;
const TASK_HINT: &str = "write it after the command, `moothall edit \"…\"`, or pipe it in";

/// Files that are written at the end.
struct Files {
    receipt: Option<PathBuf>,
    events: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &EditArgs) -> anyhow::Result<Exit> {
    let task = args.task.as_deref();
    let task = files::words_or_stdin(task, "task", TASK_HINT, MAX_TASK_BYTES)?;
    let mut kept = Kept::from_args(args, EditInput::new(task, placeholder()?))?;
    let context = Context::load(global.config.as_deref(), kept.flags(args.model.as_ref())?)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let budget = context.budget();
    (kept.budget_micro_usd, kept.budget_tokens) = (budget.usd, budget.tokens);
    kept.edit.model = context.model(args.model.as_ref())?;
    kept.edit.files = args
        .file
        .iter()
        .map(|file| RelPath::parse(file))
        .collect::<Result<_, _>>()
        .map_err(|fault| CliError::usage(fault.to_string()))?;
    let card = context.catalog.card(&kept.edit.model);
    kept.edit.max_tokens = kept.edit.max_tokens.min(card.max_output.unwrap_or(u32::MAX));
    // What cannot be a run is found out before anything is made.
    workflow(&kept)?;
    let desk = Desk::new(global, &context, kept, &args.view)?;
    let files = Files { receipt: args.files.receipt.clone(), events: args.files.events.clone() };
    let audience = if args.json { Audience::Json } else { Audience::Person };

    runtime()?.block_on(async {
        let local = Local::open(&context.loaded).await?;
        let title = words::cut(&desk.kept.edit.task, TITLE_CHARS);
        let input = serde_json::to_value(&desk.kept)?;
        let new = local::new_run(EditWorkflow::NAME, &title, &desk.kept.edit.model, input)?;
        let run_id = new.run_id.clone();
        let _lock = local.lock(&run_id).await.map_err(unlocked)?;
        local.store.create_run(new).await.map_err(local::broken)?;
        let ledger = Ledger::new(context.budget());
        conclude(&context, &desk, &local, &run_id, ledger, &files, audience).await
    })
}

pub(super) fn go_on(global: &Global, args: &ResumeArgs, found: &Found) -> anyhow::Result<Exit> {
    let Found { runtime, local, row } = found;
    let mut kept: Kept = local::read_input(&row.input)?;
    kept.budget_micro_usd = args.budget.or(kept.budget_micro_usd);
    kept.budget_tokens = args.budget_tokens.or(kept.budget_tokens);
    let flags = kept.flags(Some(&kept.edit.model))?;
    let context = Context::load(global.config.as_deref(), flags)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    // A view is remembered by the store.
    let desk = Desk::new(global, &context, kept, &HandoffFlags { handoff: None })?;
    let files = Files { receipt: args.receipt.clone(), events: args.events.clone() };
    let audience = if args.json { Audience::Json } else { Audience::Person };

    runtime.block_on(async {
        let _lock = local.lock(&row.run_id).await.map_err(unlocked)?;
        // Again: its driver may have come to the end while we waited for the lock.
        let row = local.find(row.run_id.as_str()).await?;
        refuse_if_over(&row)?;
        let ledger = Ledger::resume(context.budget(), row.spent.unwrap_or_default());
        conclude(&context, &desk, local, &row.run_id, ledger, &files, audience).await
    })
}

/// The workflow that a run was started with.
pub(super) fn kept_workflow(input: &serde_json::Value) -> Result<EditWorkflow, CliError> {
    workflow(&local::read_input(input)?)
}

fn workflow(kept: &Kept) -> Result<EditWorkflow, CliError> {
    EditWorkflow::new(kept.edit.clone()).map_err(|error| CliError::usage(error.to_string()))
}

/// Stands for the model until the configuration has said which one it is.
fn placeholder() -> Result<ModelName, CliError> {
    ModelName::DEMO.parse().map_err(|_| CliError::failed("the demonstration has no name"))
}

/// What a run needs of this machine, found out before anybody is asked anything.
struct Desk<'a> {
    global: &'a Global,
    gateway: Arc<Gateway>,
    kept: Kept,
}

impl<'a> Desk<'a> {
    fn new(
        global: &'a Global,
        context: &Context,
        kept: Kept,
        view: &HandoffFlags,
    ) -> Result<Self, CliError> {
        let gateway = Arc::new(context.gateway(&kept.edit.model, kept.recording()?)?);
        // A folder that cannot be opened is found out before a model is paid.
        let opened = open_with_view(global, &kept.workspace_flags(), view)?;
        opened.warn_about_policy();
        opened.worker(&kept.worker)?;
        Ok(Self { global, gateway, kept })
    }

    /// Drives a run to where it stops. The caller holds its lock. Ctrl-C cancels it.
    async fn drive(
        &self,
        local: &Local,
        run_id: &RunId,
        ledger: Ledger,
        view: &SharedView,
    ) -> anyhow::Result<Ended> {
        let store = &local.store;
        let opened = open(self.global, &self.kept.workspace_flags())?;
        let worker = opened.worker(&self.kept.worker)?;
        let task = TaskId::parse(&format!("{}-{run_id}", EditWorkflow::NAME))
            .ok_or_else(|| CliError::failed("the run's name cannot be a task"))?;
        let models = Arc::new(ModelPerformer::new(Arc::clone(&self.gateway), Arc::new(ledger)));
        let performer = DraftPerformer::new(models.clone(), opened.store, worker, task);
        let (seen, run) = (Arc::clone(view), run_id.clone());
        let driver = Driver::new(Arc::clone(store), Arc::new(performer), run_id.clone())
            .on_event(move |stored| shown(&seen).event(&run, stored));
        let mut workflow = workflow(&self.kept)?;
        match watched(view, driver.drive(&mut workflow)).await {
            Interruptible::Done(ended) => Ok(ended?),
            // The driver is gone, and with it everything under way.
            Interruptible::Cancelled => {
                for stored in cancel(&**store, run_id, models.spent()).await? {
                    shown(view).event(run_id, &stored);
                }
                Ok(Ended::Cancelled)
            }
        }
    }
}

/// Drives, writes the files that are wanted, and tells what came of it.
async fn conclude(
    context: &Context,
    desk: &Desk<'_>,
    local: &Local,
    run_id: &RunId,
    ledger: Ledger,
    files: &Files,
    audience: Audience,
) -> anyhow::Result<Exit> {
    let view = Arc::new(Mutex::new(View::new(audience)));
    let ended = desk.drive(local, run_id, ledger, &view).await;
    let news = ended.as_ref().map_or(Some(News::Failed), News::of);
    notice::conclude(&context.loaded, run_id, news, ended, async |ended| {
        let record = RunRecord::read(&*local.store, run_id).await.map_err(local::broken)?;
        let saved =
            files.events.as_deref().map_or(Ok(()), |path| files::write_events(path, &record));
        let saved = saved.and_then(|()| match (&files.receipt, record.receipt()) {
            (Some(path), Some(receipt)) => files::write_receipt(path, &receipt),
            _ => Ok(()),
        });
        let report = Report { context, kept: &desk.kept, record: &record, ended: &ended };
        // What cannot be written is still told: it is paid for.
        match (report.print(audience), saved) {
            (told, Ok(())) => told,
            (Ok(_), Err(unsaved)) => Err(unsaved),
            (Err(error), Err(unsaved)) => {
                terminal::show_error(&unsaved.into());
                Err(error)
            }
        }
    })
    .await
}

impl Kept {
    fn workspace_flags(&self) -> WorkspaceFlags {
        WorkspaceFlags { workspace: self.workspace.clone(), json: false }
    }
}
