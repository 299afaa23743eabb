//! `moothall consult`: strategic moves for a listed company, on trial.

mod board;
mod draw;
mod drive;
mod estimate;
mod input;
mod kept;
mod plain;
mod prepare;
mod reading;
mod remote;
mod report;
mod screen;
mod show;
mod summary;
mod unseen;
mod work;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_core::MicroUsd;
use moothall_core::consult::{Change, Consult, ConsultInput, EvidenceSource, Review};
use moothall_core::evidence::Evidence;
use moothall_engine::RunRecord;
use moothall_models::{Budget, Ledger};
use moothall_restate::Service;
use moothall_store::Store;

use self::drive::{Left, drive};
use self::estimate::{Bill, Cap};
use self::kept::Settings;
use self::prepare::Ready;
use self::report::{Files, finish};
use self::screen::{Screen, SharedScreen, Style, shown};
use super::resume::{Found, refuse_if_over, unlocked};
use super::{Interruptible, question, runtime, watched, words};
use crate::args::{ConsultArgs, Global, ResumeArgs};
use crate::config::{ConsultSection, FoundBy, Loaded, Origin};
use crate::context::Context;
use crate::error::{CliError, Exit};
use crate::local::{self, Local};
use crate::logging;
use crate::notice::{self, News};
use crate::terminal::{self, BOLD, DIM, YELLOW};

pub(super) use self::kept::Kept;
pub(super) use self::reading::Reading;
pub(super) use self::remote::{
    begin, cancel, let_go_on, refused, service_of, start, until_it_stops, unwatched,
};
pub(super) use self::show::show;
use self::summary::DOES_NOT_EXIST;
pub(super) use self::summary::marks;
pub(super) use self::unseen::{Opened, Planned};
pub(super) use self::work::Readied;

/// How long the sandboxes of a run that somebody left may take to be gone.
const CLEANING_UP: Duration = Duration::from_secs(3);

pub(super) fn run(global: &Global, args: &ConsultArgs) -> anyhow::Result<Exit> {
    let mut settings = Settings::from_args(args)?;
    let context = Context::load(global.config.as_deref(), settings.flags(args.model.as_ref())?)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let input = input::input(&context, args)?;
    let bill = Bill::of(&context.catalog, &input);
    let cap = bill.cap(context.budget());
    if args.estimate {
        let text = if args.json { format!("{:#}\n", bill.json(cap)) } else { bill.text(cap) };
        terminal::print(&text)?;
        return Ok(Exit::Fine);
    }
    // The budget that holds is kept, wherever it comes from: whoever resumes the run has it too.
    let budget = cap.budget();
    (settings.budget_micro_usd, settings.budget_tokens) = (budget.usd, budget.tokens);
    let kept = Kept { consult: input, settings };
    let screen = screen(&kept, args.json);
    let files = Files {
        receipt: args.files.receipt.clone(),
        events: args.files.events.clone(),
        memo: args.memo.clone(),
        artifacts: args.artifacts.clone(),
        json: args.json,
    };

    runtime()?.block_on(async {
        let (ready, evidence) = prepared(&screen, "looking at the evidence", async {
            let ready = Ready::find(&context, &kept).await?;
            let evidence = ready.preflight(&kept.consult).await?;
            Ok((ready, evidence))
        })
        .await?;
        shown(&screen).hide();
        introduce(&kept, evidence.as_ref(), &bill, cap, args.json);
        note_walls(&ready, args.json);
        if kept.settings.replay.is_none() {
            consent(&context, &bill, args).await?;
        }
        let local = Local::open(&context.loaded).await?;
        let title = title(&kept.consult, evidence.as_ref());
        let model = &kept.consult.models.default;
        let new = local::new_run(Consult::NAME, &title, model, serde_json::to_value(&kept)?)?;
        let run_id = new.run_id.clone();
        let left = match &kept.settings.restate {
            None => {
                ready.expect();
                let _lock = local.lock(&run_id).await.map_err(unlocked)?;
                local.store.create_run(new).await.map_err(local::broken)?;
                let ledger = Ledger::new(budget);
                drive(&ready, &local, &run_id, &kept, ledger, None, &screen).await
            }
            Some(restate) => {
                local.store.create_run(new).await.map_err(local::broken)?;
                match begin(restate, Service::Consultation, &*local.store, &run_id).await {
                    Ok(()) => remote::follow(&*local.store, &run_id, &[], &kept, &screen).await,
                    Err(error) => Err(error.into()),
                }
            }
        };
        end(&ready, &left).await;
        let news = news(&left);
        notice::conclude(&context.loaded, &run_id, news, left, async |left| {
            finish(&context, &*local.store, &run_id, &left, &files).await
        })
        .await
    })
}

pub(super) fn go_on(global: &Global, args: &ResumeArgs, found: &Found) -> anyhow::Result<Exit> {
    let Found { runtime, local, row } = found;
    let mut kept = Kept::read(&row.input)?;
    kept.settings.budget_micro_usd = args.budget.or(kept.settings.budget_micro_usd);
    kept.settings.budget_tokens = args.budget_tokens.or(kept.settings.budget_tokens);
    let model = kept.consult.models.default.clone();
    let context = Context::load(global.config.as_deref(), kept.settings.flags(Some(&model))?)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let screen = screen(&kept, args.json);
    let files = Files {
        receipt: args.receipt.clone(),
        events: args.events.clone(),
        memo: kept.settings.memo.clone(),
        artifacts: kept.settings.artifacts.clone(),
        json: args.json,
    };

    runtime.block_on(async {
        if let Some(restate) = &kept.settings.restate {
            let (store, id) = (&*local.store, &row.run_id);
            let record = RunRecord::read(store, id).await.map_err(local::broken)?;
            shown(&screen).catch_up(&record.events);
            let more = Budget { usd: args.budget, tokens: args.budget_tokens };
            let_go_on(restate, store, id, more).await?;
            let left = remote::follow(store, id, &record.events, &kept, &screen).await;
            return finish(&context, &*local.store, &row.run_id, &left?, &files).await;
        }
        let _lock = local.lock(&row.run_id).await.map_err(unlocked)?;
        // Again: its driver may have come to the end while we waited for the lock.
        let row = local.find(row.run_id.as_str()).await?;
        refuse_if_over(&row)?;
        let ready =
            prepared(&screen, "looking for a sandbox", Ready::find(&context, &kept)).await?;
        note_walls(&ready, args.json);
        ready.expect();
        let record = RunRecord::read(&*local.store, &row.run_id).await.map_err(local::broken)?;
        shown(&screen).catch_up(&record.events);
        let budget =
            Budget { usd: kept.settings.budget_micro_usd, tokens: kept.settings.budget_tokens };
        let ledger = Ledger::resume(budget, row.spent.unwrap_or_default());
        let says = says(local, &record, args.json).await?;
        let left = drive(&ready, local, &row.run_id, &kept, ledger, says, &screen).await;
        end(&ready, &left).await;
        let news = news(&left);
        notice::conclude(&context.loaded, &row.run_id, news, left, async |left| {
            finish(&context, &*local.store, &row.run_id, &left, &files).await
        })
        .await
    })
}

/// What a person said about the moves, where the run stands still for that and the person was told.
/// Whoever lets it go on without a word lets the moves stand as they are.
async fn says(local: &Local, record: &RunRecord, json: bool) -> anyhow::Result<Option<Review>> {
    if !record.waits_for_person() {
        return Ok(None);
    }
    let changes = changes(&*local.store, record).await?;
    if !json {
        let said = match changes.len() {
            0 => "the moves stand as they are".to_owned(),
            1 => "the moves stand with 1 change".to_owned(),
            many => format!("the moves stand with {many} changes"),
        };
        terminal::note(&format!("{DIM}{said}{DIM:#}\n"));
    }
    Ok(Some(Review { changes }))
}

async fn changes(store: &dyn Store, record: &RunRecord) -> Result<Vec<Change>, CliError> {
    store.changes(&record.row.run_id).await.map_err(local::broken)
}

/// What is worth telling somebody who is not here. Whoever interrupts a run is here.
fn news(left: &anyhow::Result<Left>) -> Option<News> {
    match left {
        Ok(Left::Ended(ended)) => News::of(ended),
        Ok(Left::Interrupted) => None,
        Err(_) => Some(News::Failed),
    }
}

fn screen(kept: &Kept, json: bool) -> SharedScreen {
    let models: Vec<String> =
        kept.consult.models.distinct().iter().map(ToString::to_string).collect();
    let mut screen = Screen::new(Style::choose(json), models.join(", "));
    screen.set_budget(kept.settings.budget_micro_usd);
    Arc::new(Mutex::new(screen))
}

/// Does what comes before the run. Nothing is lost if a person gives up here.
async fn prepared<T>(
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
async fn end(ready: &Ready, left: &anyhow::Result<Left>) {
    match left {
        Ok(Left::Ended(_)) => ready.shut_down().await,
        Ok(Left::Interrupted) | Err(_) => {
            let _ = tokio::time::timeout(CLEANING_UP, ready.shut_down()).await;
        }
    }
}

/// Says who it is about and what it takes.
fn introduce(kept: &Kept, evidence: Option<&Evidence>, bill: &Bill, cap: Cap, json: bool) {
    if json {
        return;
    }
    let input = &kept.consult;
    let mut facts = Vec::new();
    let name = match evidence {
        Some(found) => words::line(&found.company.name),
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
        facts.push(words::line(&evidence.provenance.to_string()));
        facts.extend(evidence.sheet.as_ref().map(|sheet| format!("as of {}", sheet.as_of)));
        facts.extend(summary::own_sources(evidence));
    }
    facts.push(bill.line());
    match cap.budget() {
        Budget { usd: Some(usd), .. } => facts.push(format!("at most {}", draw::cents(usd))),
        Budget { tokens: Some(tokens), .. } => {
            facts.push(format!("at most {} tokens", draw::short_number(tokens)));
        }
        Budget { .. } => {}
    }
    terminal::note(&format!("{BOLD}{name}{BOLD:#} {symbol}{DIM}· {}{DIM:#}\n", facts.join(" · ")));
    let unread = evidence.map(|found| found.missing.clone()).unwrap_or_default();
    let warnings = evidence.map(Evidence::warnings).unwrap_or_default();
    for warning in unread.into_iter().chain(warnings) {
        terminal::note(&format!("{YELLOW}note: {}{YELLOW:#}\n", words::line(&warning)));
    }
}

/// Says once, before anything is spent, that debates go without a sandbox, and how to get one.
fn note_walls(ready: &Ready, json: bool) {
    if let (Some(why), false) = (&ready.without_walls, json) {
        terminal::note(&format!("{YELLOW}note: {}{YELLOW:#}\n", words::cut(why, 300)));
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

/// What people see in a list.
fn title(input: &ConsultInput, evidence: Option<&Evidence>) -> String {
    let gather = &input.gather;
    let moves = input.all_moves();
    let rounds = input.committee.rounds;
    let name = match evidence {
        Some(found) => format!("{} {}", gather.ticker, words::line(&found.company.name)),
        None => format!("{} (made-up evidence)", gather.subject()),
    };
    format!("{}: {moves} moves, {rounds} rounds", name.trim_start())
}
