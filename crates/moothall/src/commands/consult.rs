//! `moothall consult`: strategic moves for a listed company, on trial.

mod board;
mod draw;
mod drive;
mod plain;
mod reading;
mod report;
mod screen;
mod show;
mod summary;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_core::consult::{EvidenceSource, Review};
use moothall_core::evidence::Evidence;
use moothall_core::{ConsultSpec, MicroUsd, RunSpec};
use moothall_engine::RunRecord;
use moothall_models::{Budget, Ledger};
use moothall_store::Store;

use self::drive::{Left, drive, follow};
pub(super) use self::reading::Reading;
use self::report::{Files, finish};
use self::screen::{Screen, SharedScreen, Style, shown};
pub(super) use self::show::show;
use self::summary::DOES_NOT_EXIST;
pub(super) use self::summary::marks;
use super::found_run::{Found, refuse_if_over, unlocked};
use super::{Interruptible, question, runtime, watched};
use crate::args::{ConsultArgs, Global, ResumeArgs};
use crate::config::{ConsultSection, FoundBy, Loaded, Origin};
use crate::context::Context;
use crate::error::{CliError, Exit};
use crate::launch::estimate::{Bill, Cap};
use crate::launch::{self, ConsultPlan, ConsultRequest, PreparedRun, cluster};
use crate::local::{self, Local};
use crate::notice::{self, News};
use crate::terminal::{self, BOLD, DIM, YELLOW};
use crate::{display, logging};

/// How long the sandboxes of a run that somebody left may take to be gone.
const CLEANING_UP: Duration = Duration::from_secs(3);

pub(super) fn run(global: &Global, args: &ConsultArgs) -> anyhow::Result<Exit> {
    let request = ConsultRequest::from_args(args)?;
    let context = request.context(global.config.as_deref())?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let ConsultPlan { spec, bill, cap } = request.plan(&context)?;
    if args.estimate {
        let text = if args.json { format!("{:#}\n", bill.json(cap)) } else { bill.text(cap) };
        terminal::print(&text)?;
        return Ok(Exit::Fine);
    }
    let screen = screen(&spec, args.json);
    let files = Files {
        receipt: args.files.receipt.clone(),
        events: args.files.events.clone(),
        memo: args.memo.clone(),
        artifacts: args.artifacts.clone(),
        json: args.json,
    };

    runtime()?.block_on(async {
        let (prepared, evidence) = while_shown(&screen, "looking at the evidence", async {
            let prepared = PreparedRun::open(&context, RunSpec::Consult(spec.clone())).await?;
            let evidence = prepared.gather().await?;
            Ok((prepared, evidence))
        })
        .await?;
        shown(&screen).hide();
        introduce(&spec, evidence.as_ref(), &bill, cap, args.json);
        note_walls(&prepared, args.json);
        if spec.settings.replay.is_none() {
            consent(&context, &bill, args).await?;
        }
        let local = Local::open(&context.loaded).await?;
        let new = prepared.new_run(evidence.as_ref())?;
        let run_id = new.run_id.clone();
        let left = match &spec.settings.restate {
            None => {
                prepared.warm_up();
                let _lock = local.lock(&run_id).await.map_err(unlocked)?;
                local.store.create_run(new).await.map_err(local::broken)?;
                let ledger = Ledger::new(cap.budget());
                drive(&prepared, &local, &run_id, &spec, ledger, None, &screen).await
            }
            Some(restate) => {
                let stored = new.spec.clone();
                local.store.create_run(new).await.map_err(local::broken)?;
                match cluster::begin(restate, &stored, &*local.store, &run_id).await {
                    Ok(()) => follow(&*local.store, &run_id, &[], &spec, &screen).await,
                    Err(error) => Err(error.into()),
                }
            }
        };
        end(&prepared, &left).await;
        let news = news(&left);
        notice::conclude(&context.loaded, &run_id, news, left, async |left| {
            finish(&context, &*local.store, &run_id, &left, &files).await
        })
        .await
    })
}

pub(super) fn go_on(
    global: &Global,
    args: &ResumeArgs,
    found: &Found,
    spec: &ConsultSpec,
) -> anyhow::Result<Exit> {
    let Found { runtime, local, row } = found;
    let model = &spec.input.models.default;
    let context = launch::context(global.config.as_deref(), &spec.settings, Some(model))?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let screen = screen(spec, args.json);
    let files = Files {
        receipt: args.receipt.clone(),
        events: args.events.clone(),
        memo: spec.settings.memo.clone(),
        artifacts: spec.settings.artifacts.clone(),
        json: args.json,
    };

    runtime.block_on(async {
        if let Some(restate) = &spec.settings.restate {
            let (store, id) = (&*local.store, &row.run_id);
            let record = RunRecord::read(store, id).await.map_err(local::broken)?;
            shown(&screen).catch_up(&record.events);
            cluster::let_go_on(restate, store, id, args.raised_budget()).await?;
            let left = follow(store, id, &record.events, spec, &screen).await;
            return finish(&context, &*local.store, &row.run_id, &left?, &files).await;
        }
        let _lock = local.lock(&row.run_id).await.map_err(unlocked)?;
        // Again: its driver may have come to the end while we waited for the lock.
        let row = local.find(row.run_id.as_str()).await?;
        refuse_if_over(&row)?;
        let opening = PreparedRun::open(&context, RunSpec::Consult(spec.clone()));
        let prepared = while_shown(&screen, "looking for a sandbox", opening).await?;
        note_walls(&prepared, args.json);
        prepared.warm_up();
        let record = RunRecord::read(&*local.store, &row.run_id).await.map_err(local::broken)?;
        shown(&screen).catch_up(&record.events);
        let ledger = Ledger::resume(launch::budget(&spec.settings), row.spent.unwrap_or_default());
        let review = review(&*local.store, &record).await?;
        if let (Some(review), false) = (&review, args.json) {
            note_review(review);
        }
        let left = drive(&prepared, local, &row.run_id, spec, ledger, review, &screen).await;
        end(&prepared, &left).await;
        let news = news(&left);
        notice::conclude(&context.loaded, &row.run_id, news, left, async |left| {
            finish(&context, &*local.store, &row.run_id, &left, &files).await
        })
        .await
    })
}

/// The review of a run that waits for one. A person who resumes it without changes accepts the moves as they are.
pub(super) async fn review(
    store: &dyn Store,
    record: &RunRecord,
) -> Result<Option<Review>, CliError> {
    match record.waits_for_person() {
        true => {
            let changes = store.changes(&record.row.run_id).await.map_err(local::broken)?;
            Ok(Some(Review { changes }))
        }
        false => Ok(None),
    }
}

fn note_review(review: &Review) {
    let said = match review.changes.len() {
        0 => "the moves stand as they are".to_owned(),
        1 => "the moves stand with 1 change".to_owned(),
        many => format!("the moves stand with {many} changes"),
    };
    terminal::note(&format!("{DIM}{said}{DIM:#}\n"));
}

/// What is worth telling somebody who is not here. Whoever interrupts a run is here.
fn news(left: &anyhow::Result<Left>) -> Option<News> {
    match left {
        Ok(Left::Ended(ended)) => News::of(ended),
        Ok(Left::Interrupted) => None,
        Err(_) => Some(News::Failed),
    }
}

fn screen(spec: &ConsultSpec, json: bool) -> SharedScreen {
    let models: Vec<String> =
        spec.input.models.distinct().iter().map(ToString::to_string).collect();
    let mut screen = Screen::new(Style::choose(json), models.join(", "));
    screen.set_budget(spec.settings.budget_micro_usd);
    Arc::new(Mutex::new(screen))
}

/// Does what comes before the run. Nothing is lost if a person gives up here.
async fn while_shown<T>(
    screen: &SharedScreen,
    what: &str,
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    shown(screen).wait_for(what);
    // Boxed: a gathering under way is large.
    let done = watched(Box::pin(work), screen::TICK, || shown(screen).tick()).await;
    shown(screen).hide();
    match done {
        Interruptible::Done(done) => done,
        Interruptible::Cancelled => Err(CliError::new(Exit::Cancelled, "cancelled")),
    }
}

/// Sandboxes go away in their own time, but nobody who leaves waits for long.
async fn end(prepared: &PreparedRun, left: &anyhow::Result<Left>) {
    match left {
        Ok(Left::Ended(_)) => prepared.shut_down().await,
        Ok(Left::Interrupted) | Err(_) => {
            let _ = tokio::time::timeout(CLEANING_UP, prepared.shut_down()).await;
        }
    }
}

/// Says who it is about and what it takes.
fn introduce(spec: &ConsultSpec, evidence: Option<&Evidence>, bill: &Bill, cap: Cap, json: bool) {
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
        facts.push(DOES_NOT_EXIST.to_owned());
    }
    if input.gather.source == EvidenceSource::Synthetic {
        facts.push("evidence that a model makes up".to_owned());
    }
    if let Some(evidence) = evidence {
        facts.push(display::line(&evidence.provenance.to_string()));
        facts.extend(evidence.sheet.as_ref().map(|sheet| format!("as of {}", sheet.as_of)));
        facts.extend(summary::own_sources(evidence));
    }
    facts.push(bill.line());
    match cap.budget() {
        Budget { usd: Some(usd), .. } => facts.push(format!("at most {}", display::cents(usd))),
        Budget { tokens: Some(tokens), .. } => {
            facts.push(format!("at most {} tokens", display::short_number(tokens)));
        }
        Budget { .. } => {}
    }
    terminal::note(&format!("{BOLD}{name}{BOLD:#} {symbol}{DIM}· {}{DIM:#}\n", facts.join(" · ")));
    let unread = evidence.map(|found| found.missing.clone()).unwrap_or_default();
    let warnings = evidence.map(Evidence::warnings).unwrap_or_default();
    for warning in unread.into_iter().chain(warnings) {
        terminal::note(&format!("{YELLOW}note: {}{YELLOW:#}\n", display::line(&warning)));
    }
}

/// Says once, before anything is spent, that debates go without a sandbox, and how to get one.
fn note_walls(prepared: &PreparedRun, json: bool) {
    if let (Some(why), false) = (prepared.without_walls(), json) {
        terminal::note(&format!("{YELLOW}note: {}{YELLOW:#}\n", display::cut(why, 300)));
    }
}

/// Money is spent with the person's consent: asked for where it may be much, and never taken for
/// granted where nobody can be asked.
async fn consent(context: &Context, bill: &Bill, args: &ConsultArgs) -> Result<(), CliError> {
    let most = ask_above(&context.loaded);
    let is_much = match bill.cost {
        _ if bill.free => false,
        Some(range) => range.high > most,
        None => true,
    };
    if args.yes || !is_much {
        return Ok(());
    }
    if !question::somebody_is_there() {
        let words = format!("nobody can be asked whether this may be spent: {}", bill.line());
        return Err(CliError::usage(words).with_hint(format!(
            "say `--yes`, take fewer `--moves` or `--rounds`, or raise `consult.ask_above_usd` \
             (it is {most})"
        )));
    }
    match question::agreed("Shall it begin?").await {
        true => Ok(()),
        false => Err(CliError::new(Exit::Cancelled, "nothing was started")),
    }
}

/// What may be spent without a question. A moothall.toml that merely lies in the working folder may
/// come from a stranger, who may not be generous with the user's money.
fn ask_above(loaded: &Loaded) -> MicroUsd {
    let configured = loaded.resolved.config.consult.ask_above_usd;
    let from_folder = loaded.places.used().is_some_and(|used| used.by == FoundBy::WorkingFolder);
    match loaded.resolved.origin("consult.ask_above_usd") {
        Origin::File { .. } | Origin::DotEnv { .. } if from_folder => {
            configured.min(ConsultSection::default().ask_above_usd)
        }
        _ => configured,
    }
}
