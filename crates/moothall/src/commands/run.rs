//! `moothall run`: a program for a task, on trial.

mod drive;
mod kept;
mod report;
mod unseen;
mod view;
mod wanted;
mod work;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use moothall_core::RunId;
use moothall_core::model::ModelName;
use moothall_core::reflexion::{AnswerForm, Reflexion, ReflexionInput};
use moothall_engine::{Ended, RunRecord};
use moothall_models::{Budget, Ledger};
use moothall_restate::Service;
use moothall_sandbox::image::ImageStore;
use moothall_store::{Store, StoredEvent};
use serde_json::json;

use self::drive::{Ready, drive, workflow};
pub(super) use self::drive::{SharedView, shown, watched};
pub(super) use self::kept::Kept;
use self::kept::Settings;
use self::report::Report;
pub(super) use self::unseen::Opened;
pub(super) use self::view::{Audience, View};
use self::wanted::Wanted;
pub(super) use self::work::Readied;
use super::resume::{Found, refuse_if_over, unlocked};
use super::{Interruptible, attempts, consult, files, runtime, words};
use crate::args::{Global, ResumeArgs, RunArgs};
use crate::artifacts::{self, WrittenFiles};
use crate::context::Context;
use crate::error::{CliError, Exit};
use crate::local::{self, Local};
use crate::notice::{self, News};
use crate::{isolation, logging, terminal};

/// The longest title of a run; the whole task is in its input.
const TITLE_CHARS: usize = 100;

/// Files that are written at the end.
struct Files {
    receipt: Option<PathBuf>,
    events: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &RunArgs) -> anyhow::Result<Exit> {
    let audience = match (args.stdio, args.json) {
        (true, _) => Audience::Stdio,
        (false, true) => Audience::Json,
        (false, false) => Audience::Person,
    };
    let ran = start(global, args, audience);
    match (audience, ran) {
        // Whoever talks JSON with us reads no standard error.
        (Audience::Stdio, Err(error)) => {
            let error = CliError::from(error);
            let told = json!({
                "error": {
                    "message": error.words(),
                    "hint": error.hint,
                    "exit_code": error.exit.code(),
                }
            });
            terminal::print(&format!("{told}\n"))?;
            Err(error.into())
        }
        (_, ran) => ran,
    }
}

fn start(global: &Global, args: &RunArgs, audience: Audience) -> anyhow::Result<Exit> {
    let mut settings = Settings::from_args(args)?;
    let wanted = if args.stdio { Wanted::from_stdin(args)? } else { Wanted::from_args(args)? };
    let flags = settings.flags(wanted.model.as_ref())?;
    let context = Context::load(global.config.as_deref(), flags)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    settings.set_budget(context.budget());
    let model = context.model(wanted.model.as_ref())?;
    let input = reflexion_input(&context, args, &model, &wanted)?;
    // What cannot be a run is found out before anything is made.
    workflow(input.clone())?;
    let kept = Kept { reflexion: input, settings };
    let files = Files { receipt: args.files.receipt.clone(), events: args.files.events.clone() };
    let view = Arc::new(Mutex::new(View::new(audience)));

    runtime()?.block_on(async {
        // The sandboxes of a run on a cluster are its workers'.
        let ready = match kept.settings.restate {
            None => Some(Box::pin(prepare(&context, &kept, &model, &view)).await?),
            Some(_) => None,
        };
        let local = Local::open(&context.loaded).await?;
        let title = words::cut(&wanted.task, TITLE_CHARS);
        let new = local::new_run(Reflexion::NAME, &title, &model, serde_json::to_value(&kept)?)?;
        let run_id = new.run_id.clone();
        let _lock = local.lock(&run_id).await.map_err(unlocked)?;
        local.store.create_run(new).await.map_err(local::broken)?;
        for bytes in wanted.inputs.values() {
            local.store.keep_artifact(&run_id, bytes).await.map_err(local::broken)?;
        }
        let ended = match (ready, &kept.settings.restate) {
            (Some(ready), _) => {
                let ledger = Ledger::new(context.budget());
                let input = kept.reflexion.clone();
                let ended = drive(&ready, &local, &run_id, input, ledger, &view).await;
                ready.shut_down().await;
                ended
            }
            (None, restate) => {
                let restate = restate.as_deref().unwrap_or_default();
                consult::begin(restate, Service::CodeRun, &*local.store, &run_id).await?;
                follow(&*local.store, &run_id, &[], &view).await
            }
        };
        let news = ended.as_ref().map_or(Some(News::Failed), News::of);
        notice::conclude(&context.loaded, &run_id, news, ended, async |ended| {
            finish(&context, &local, &kept, &run_id, ended, &files, audience).await
        })
        .await
    })
}

pub(super) fn go_on(global: &Global, args: &ResumeArgs, found: &Found) -> anyhow::Result<Exit> {
    let Found { runtime, local, row } = found;
    let audience = if args.json { Audience::Json } else { Audience::Person };
    let mut kept = Kept::read(&row.input)?;
    kept.settings.budget_micro_usd = args.budget.or(kept.settings.budget_micro_usd);
    kept.settings.budget_tokens = args.budget_tokens.or(kept.settings.budget_tokens);
    let model = kept.reflexion.model.clone();
    let context = Context::load(global.config.as_deref(), kept.settings.flags(Some(&model))?)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let files = Files { receipt: args.receipt.clone(), events: args.events.clone() };
    let view = Arc::new(Mutex::new(View::new(audience)));

    runtime.block_on(async {
        if let Some(restate) = &kept.settings.restate {
            let store = &*local.store;
            let record = RunRecord::read(store, &row.run_id).await.map_err(local::broken)?;
            let more = Budget { usd: args.budget, tokens: args.budget_tokens };
            consult::let_go_on(restate, store, &row.run_id, more).await?;
            let ended = follow(store, &row.run_id, &record.events, &view).await?;
            return finish(&context, local, &kept, &row.run_id, ended, &files, audience).await;
        }
        let _lock = local.lock(&row.run_id).await.map_err(unlocked)?;
        // Again: its driver may have come to the end while we waited for the lock.
        let row = local.find(row.run_id.as_str()).await?;
        refuse_if_over(&row)?;
        let ready = Box::pin(prepare(&context, &kept, &model, &view)).await?;
        let ledger = Ledger::resume(context.budget(), row.spent.unwrap_or_default());
        let ended = drive(&ready, local, &row.run_id, kept.reflexion.clone(), ledger, &view).await;
        ready.shut_down().await;
        let news = ended.as_ref().map_or(Some(News::Failed), News::of);
        notice::conclude(&context.loaded, &row.run_id, news, ended, async |ended| {
            finish(&context, local, &kept, &row.run_id, ended, &files, audience).await
        })
        .await
    })
}

/// Follows a run that workers drive to where it stops. What `before` holds was shown before.
async fn follow(
    store: &dyn Store,
    run_id: &RunId,
    before: &[StoredEvent],
    view: &SharedView,
) -> anyhow::Result<Ended> {
    let heard = |stored: &StoredEvent| shown(view).event(run_id, stored);
    match watched(view, consult::until_it_stops(store, run_id, before, heard)).await {
        Interruptible::Done(ended) => Ok(ended?),
        Interruptible::Cancelled => Err(consult::unwatched(run_id).into()),
    }
}

/// The workflow that a run was started with.
pub(super) fn kept_workflow(input: &serde_json::Value) -> Result<Reflexion, CliError> {
    workflow(Kept::read(input)?.reflexion)
}

/// Finds what the run needs. Nothing is lost if a person gives up here.
async fn prepare(
    context: &Context,
    kept: &Kept,
    model: &ModelName,
    view: &SharedView,
) -> Result<Ready, CliError> {
    shown(view).wait_for("looking for a sandbox");
    let input = &kept.reflexion;
    let found = Ready::find(context, &kept.settings, model, &input.image, input.limits);
    match watched(view, found).await {
        Interruptible::Done(ready) => ready,
        Interruptible::Cancelled => Err(CliError::new(Exit::Cancelled, "cancelled")),
    }
}

fn reflexion_input(
    context: &Context,
    args: &RunArgs,
    model: &ModelName,
    wanted: &Wanted,
) -> Result<ReflexionInput, CliError> {
    let card = context.catalog.card(model);
    let image = &args.sandbox.image;
    let mut input = ReflexionInput::new(&wanted.task, model.clone(), image);
    input.max_tokens = input.max_tokens.min(card.max_output.unwrap_or(u32::MAX));
    // Models that are not made for JSON write working programs in a block and junk inside JSON.
    if !card.structured && !model.is_demo() {
        input.answer_form = AnswerForm::Fenced;
    }
    input.packages = packages(context, image)?;
    input.limits = isolation::limits(&args.sandbox);
    input.attempts = wanted.attempts;
    input.contract = wanted.contract.clone();
    input.inputs = artifacts::references(&wanted.inputs);
    Ok(input)
}

/// What programs can import in an image. Asked for before anything else, because without the image
/// nothing can run.
fn packages(context: &Context, image: &str) -> Result<Vec<String>, CliError> {
    let images = ImageStore::at(isolation::images(&context.loaded));
    Ok(images.find(image).map_err(isolation::failure)?.python_modules)
}

/// Writes the files that are wanted and tells what came of the run.
async fn finish(
    context: &Context,
    local: &Local,
    kept: &Kept,
    run_id: &RunId,
    ended: Ended,
    wanted: &Files,
    audience: Audience,
) -> anyhow::Result<Exit> {
    let record = RunRecord::read(&*local.store, run_id).await.map_err(local::broken)?;
    let left = match (&ended, &kept.settings.output) {
        (Ended::Done(_), Some(folder)) => {
            files::write_artifacts(&*local.store, run_id, &attempts::files(&record), folder).await
        }
        _ => Ok(WrittenFiles::default()),
    };
    let saved = wanted.events.as_deref().map_or(Ok(()), |path| files::write_events(path, &record));
    let saved = saved.and_then(|()| match (&wanted.receipt, record.receipt()) {
        (Some(path), Some(receipt)) => files::write_receipt(path, &receipt),
        _ => Ok(()),
    });
    let (written, unsaved) = match left {
        Ok(written) => (written, saved.err()),
        Err(error) => (WrittenFiles::default(), Some(error)),
    };
    let (model, record, ended, written) = (&kept.reflexion.model, &record, &ended, &written);
    // What cannot be written is still told: it is paid for.
    let told = Report { context, model, record, ended, written }.print(audience);
    match (told, unsaved) {
        (told, None) => told,
        (Ok(_), Some(unsaved)) => Err(unsaved),
        (Err(error), Some(unsaved)) => {
            terminal::show_error(&unsaved.into());
            Err(error)
        }
    }
}
