//! `moothall consult`: proposes, debates and ranks strategic moves for a company.

mod draw;
mod drive;
mod fork;
mod progress;
mod progress_lines;
mod report;
mod screen;
mod show;
mod stored_consultation;
mod summary;
mod verdict_table;

use std::sync::{Arc, Mutex};

use moothall_core::consult::{EvidenceSource, MoveReview};
use moothall_core::evidence::Evidence;
use moothall_core::{ConsultSpec, MicroUsd, RunSpec};
use moothall_engine::RunRecord;
use moothall_models::{Budget, RunLedger};
use moothall_store::{NewRun, Store};

use self::drive::{drive, follow};
pub(crate) use self::fork::run as fork;
use self::report::{ConsultOutputFiles, finish};
use self::screen::{ConsultScreen, ProgressStyle, SharedScreen, lock_screen};
pub(crate) use self::show::show;
pub(crate) use self::stored_consultation::StoredConsultation;
use self::summary::FICTIONAL_LABEL;
pub(crate) use self::summary::marks;
use super::pausable_run::DriveResult;
use super::resumable_run::{ResumableRun, lock_error, refuse_if_ended};
use super::{InterruptibleResult, interruptible_with_tick, prompt, runtime};
use crate::args::{ConsultArgs, GlobalArgs, ResumeArgs};
use crate::config::{ConfigFileSource, ConfigOrigin, ConsultSection, LoadedConfig};
use crate::context::CommandContext;
use crate::debate_image::ProgressNotice;
use crate::demo_delay::DemoDelay;
use crate::error::{CliError, CliExit};
use crate::launch::estimate::{CostEstimate, SpendLimit};
use crate::launch::run_speed::RunSpeed;
use crate::launch::{self, ConsultPlan, ConsultRequest, PreparedRun, RunFiles, cluster};
use crate::notify;
use crate::run_store::{self, RunStore};
use crate::terminal::{self, BOLD, DIM, YELLOW};
use crate::{display, logging};

pub(crate) fn run(global: &GlobalArgs, args: &ConsultArgs) -> anyhow::Result<CliExit> {
    let request = ConsultRequest::from_args(args)?;
    let mut context = request.context(global.config.as_deref())?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    if args.estimate {
        let request = request.for_estimate(&context);
        let ConsultPlan { spec, mut estimate, cap, .. } = request.plan(&context)?;
        estimate.speed =
            runtime()?.block_on(RunSpeed::of_earlier_runs(&context.loaded, &spec.input));
        let others = estimate.alternatives(&context, &spec.input);
        terminal::print(&estimate.render(cap, &others, args.output.json))?;
        return Ok(CliExit::Fine);
    }
    let ConsultPlan { spec, estimate, cap, files: uploads } = request.plan(&context)?;
    let screen = screen(&spec, args.output.json);
    context.progress = progress_on(&screen);
    let files = ConsultOutputFiles::from(&args.output);

    let delay = DemoDelay::of(args.pace);
    runtime()?.block_on(async {
        let (prepared, evidence) = with_screen(&screen, "gathering evidence", async {
            let prepared = PreparedRun::open(&context, RunSpec::Consult(spec.clone())).await?;
            let evidence = prepared.gather().await?;
            Ok((prepared, evidence))
        })
        .await?;
        lock_screen(&screen).hide();
        show_isolation_notice(&prepared, &screen, args.output.json);
        introduce(&spec, evidence.as_ref(), &estimate, cap, args.output.json);
        if spec.settings.replay.is_none() {
            let smaller = "reduce `--moves` or `--rounds`";
            consent(&context, &estimate, args.yes, smaller).await?;
        }
        let local = RunStore::open(&context.loaded).await?;
        let new = prepared.new_run(evidence.as_ref())?;
        // Boxed because the future is large.
        let plan = (&spec, cap, delay);
        Box::pin(start(&context, &local, &prepared, (new, uploads), plan, &screen, &files)).await
    })
}

/// Creates a run, executes it and reports its result.
async fn start(
    context: &CommandContext,
    local: &RunStore,
    prepared: &PreparedRun,
    (new, uploads): (NewRun, RunFiles),
    (spec, cap, delay): (&ConsultSpec, SpendLimit, DemoDelay),
    screen: &SharedScreen,
    files: &ConsultOutputFiles,
) -> anyhow::Result<CliExit> {
    let (run_id, stored) = (new.run_id.clone(), new.spec.clone());
    let create = async || {
        local.store.create_run(new).await?;
        uploads.store(&*local.store, &run_id).await
    };
    let left = match &spec.settings.restate {
        None => {
            prepared.warm_up();
            let _lock = local.lock(&run_id).await.map_err(lock_error)?;
            create().await.map_err(run_store::store_error)?;
            let ledger = RunLedger::new(cap.budget());
            drive(prepared, local, &run_id, (ledger, delay), None, screen).await
        }
        Some(restate) => {
            create().await.map_err(run_store::store_error)?;
            match cluster::submit_new_run(restate, &stored, &*local.store, &run_id).await {
                Ok(()) => follow(&*local.store, &run_id, &[], screen).await,
                Err(error) => Err(error.into()),
            }
        }
    };
    DriveResult::shut_down(&left, prepared).await;
    let notification = DriveResult::notification(&left);
    notify::report_and_notify(&context.loaded, &run_id, notification, left, async |left| {
        let announced = prepared.announced_class();
        finish(context, &*local.store, &run_id, &left, (files, announced)).await
    })
    .await
}

pub(crate) fn resume(
    global: &GlobalArgs,
    args: &ResumeArgs,
    found: &ResumableRun,
    spec: &ConsultSpec,
) -> anyhow::Result<CliExit> {
    let ResumableRun { runtime, local, row } = found;
    let model = spec.input.models.default.first();
    let mut context = launch::context(global.config.as_deref(), &spec.settings, Some(model))?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let screen = screen(spec, args.json);
    context.progress = progress_on(&screen);
    let files = ConsultOutputFiles {
        receipt: args.receipt.clone(),
        events: args.events.clone(),
        memo: spec.settings.memo.clone(),
        artifacts: spec.settings.artifacts.clone(),
        json: args.json,
    };

    runtime.block_on(async {
        if let Some(restate) = &spec.settings.restate {
            let (store, id) = (&*local.store, &row.run_id);
            let record = RunRecord::read(store, id).await.map_err(run_store::store_error)?;
            lock_screen(&screen).catch_up(&record.events);
            cluster::resume(restate, store, id, args.raised_budget()).await?;
            let left = follow(store, id, &record.events, &screen).await;
            return finish(&context, &*local.store, &row.run_id, &left?, (&files, None)).await;
        }
        let _lock = local.lock(&row.run_id).await.map_err(lock_error)?;
        // Read again: the run may have ended while this process waited for the lock.
        let row = local.find(row.run_id.as_str()).await?;
        refuse_if_ended(&row)?;
        let stored = RunSpec::Consult(spec.clone());
        let opening = PreparedRun::open_stored(&context, stored, &*local.store, &row.run_id);
        let prepared = with_screen(&screen, "checking sandboxes", opening).await?;
        show_isolation_notice(&prepared, &screen, args.json);
        prepared.warm_up();
        let record =
            RunRecord::read(&*local.store, &row.run_id).await.map_err(run_store::store_error)?;
        lock_screen(&screen).catch_up(&record.events);
        let ledger =
            RunLedger::resume(launch::budget(&spec.settings), row.spent.unwrap_or_default());
        let review = review(&*local.store, &record).await?;
        if let (Some(review), false) = (&review, args.json) {
            note_review(review);
        }
        let ledger = (ledger, DemoDelay::NONE);
        let left = drive(&prepared, local, &row.run_id, ledger, review, &screen).await;
        DriveResult::shut_down(&left, &prepared).await;
        let notification = DriveResult::notification(&left);
        notify::report_and_notify(&context.loaded, &row.run_id, notification, left, async |left| {
            let outputs = (&files, prepared.announced_class());
            finish(&context, &*local.store, &row.run_id, &left, outputs).await
        })
        .await
    })
}

/// The review of a run that waits for one. Resuming without changes accepts the moves unchanged.
pub(crate) async fn review(
    store: &dyn Store,
    record: &RunRecord,
) -> Result<Option<MoveReview>, CliError> {
    match record.waits_for_person() {
        true => {
            let changes =
                store.changes(&record.row.run_id).await.map_err(run_store::store_error)?;
            Ok(Some(MoveReview { changes }))
        }
        false => Ok(None),
    }
}

fn note_review(review: &MoveReview) {
    let said = match review.changes.len() {
        0 => "moves accepted without changes".to_owned(),
        1 => "moves accepted with 1 change".to_owned(),
        many => format!("moves accepted with {many} changes"),
    };
    terminal::note(&format!("{DIM}{said}{DIM:#}\n"));
}

fn screen(spec: &ConsultSpec, json: bool) -> SharedScreen {
    let models: Vec<String> = spec.input.called_models().iter().map(ToString::to_string).collect();
    let mut screen = ConsultScreen::new(ProgressStyle::choose(json), models.join(", "));
    screen.set_budget(spec.settings.budget_micro_usd);
    Arc::new(Mutex::new(screen))
}

/// Does the work before a run starts. Cancelling here loses nothing.
async fn with_screen<T>(
    screen: &SharedScreen,
    what: &str,
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    lock_screen(screen).wait_for(what);
    // Boxed because the future is large.
    let done =
        interruptible_with_tick(Box::pin(work), screen::TICK, || lock_screen(screen).tick()).await;
    lock_screen(screen).hide();
    match done {
        InterruptibleResult::Done(done) => done,
        InterruptibleResult::Cancelled => Err(CliError::new(CliExit::Cancelled, "cancelled")),
    }
}

/// Prints the company, the evidence and the expected cost.
fn introduce(
    spec: &ConsultSpec,
    evidence: Option<&Evidence>,
    estimate: &CostEstimate,
    cap: SpendLimit,
    json: bool,
) {
    if json {
        return;
    }
    let input = &spec.input;
    let mut facts = Vec::new();
    let name = match evidence {
        Some(found) => display::line(&found.company.name),
        None => input.gather.subject().to_owned(),
    };
    let symbol = match input.gather.ticker.as_str() {
        "" => String::new(),
        ticker => format!("({ticker}) "),
    };
    if evidence.is_some_and(|found| found.company.fictional) {
        facts.push(FICTIONAL_LABEL.to_owned());
    }
    if input.gather.source == EvidenceSource::Synthetic {
        facts.push("AI-generated evidence (not real filings)".to_owned());
    }
    if let Some(evidence) = evidence {
        facts.push(display::line(&evidence.provenance.to_string()));
        facts.extend(evidence.sheet.as_ref().map(|sheet| format!("as of {}", sheet.as_of)));
        facts.extend(summary::user_sources(evidence));
    }
    facts.push(estimate.line());
    match cap.budget() {
        Budget { usd: Some(usd), .. } => facts.push(format!("at most {}", display::cents(usd))),
        Budget { tokens: Some(tokens), .. } => {
            facts.push(format!("at most {} tokens", display::short_number(tokens)));
        }
        Budget { .. } => {}
    }
    terminal::note(&format!("{BOLD}{name}{BOLD:#} {symbol}{DIM}· {}{DIM:#}\n", facts.join(" · ")));
    for line in estimate.cheaper_lines() {
        terminal::note(&format!("{DIM}{line}{DIM:#}\n"));
    }
    let unread = evidence.map(|found| found.missing.clone()).unwrap_or_default();
    let warnings = evidence.map(Evidence::warnings).unwrap_or_default();
    for warning in unread.into_iter().chain(warnings) {
        terminal::note(&format!("{YELLOW}note: {}{YELLOW:#}\n", display::line(&warning)));
    }
}

/// Reports long preparations, such as building an image, on the screen.
fn progress_on(screen: &SharedScreen) -> ProgressNotice {
    let screen = Arc::clone(screen);
    ProgressNotice(Arc::new(move |message| lock_screen(&screen).announce(message)))
}

/// Says in the first line of the output, before any spending, that debates run in a weaker class
/// than a microVM, and which command changes it.
fn show_isolation_notice(prepared: &PreparedRun, screen: &SharedScreen, json: bool) {
    if let (Some((class, notice)), false) = (prepared.isolation_notice(), json) {
        lock_screen(screen).announced_class(*class);
        terminal::note(&format!("{YELLOW}note: {}{YELLOW:#}\n", display::cut(notice, 400)));
    }
}

/// Asks for confirmation if the run may cost more than `consult.ask_above_usd`. Without a terminal,
/// such a run needs `--yes`.
async fn consent(
    context: &CommandContext,
    estimate: &CostEstimate,
    yes: bool,
    smaller: &str,
) -> Result<(), CliError> {
    let most = ask_above(&context.loaded);
    let is_much = match estimate.upper_cost() {
        _ if estimate.free => false,
        Some(upper) => upper > most,
        None => true,
    };
    if yes || !is_much {
        return Ok(());
    }
    if !prompt::is_interactive() {
        let message =
            format!("this run needs confirmation because of its cost: {}", estimate.line());
        return Err(CliError::usage(message).with_hint(format!(
            "pass `--yes`, {smaller}, or raise `consult.ask_above_usd` (now {most})"
        )));
    }
    match prompt::confirm("Start this run?").await {
        true => Ok(()),
        false => Err(CliError::new(CliExit::Cancelled, "run not started")),
    }
}

/// Limit for spending without confirmation. A `moothall.toml` in the working directory is
/// untrusted: it can lower this limit but not raise it above the default.
fn ask_above(loaded: &LoadedConfig) -> MicroUsd {
    let configured = loaded.resolved.config.consult.ask_above_usd;
    let from_folder =
        loaded.locations.used().is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
    match loaded.resolved.origin("consult.ask_above_usd") {
        ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. } if from_folder => {
            configured.min(ConsultSection::default().ask_above_usd)
        }
        _ => configured,
    }
}
