//! `moothall eval --as-of`: consultations that see only filings up to a day, whose forecasts are
//! scored with the filings after it.

use std::fmt::Write as _;
use std::sync::Arc;

use moothall_core::consult::{
    ConsultOptions, EvidenceSource, GatherRequest, RunOutcomes, VerdictMode, VerdictPlan,
    VerdictRequest,
};
use moothall_core::evidence::{CalendarDay, Evidence};
use moothall_core::{IsolationChoice, RunSettings};
use serde_json::{Value, json};

use super::{PARALLEL_MOVES, board_with_panel, complete, consent};
use crate::args::{EvalArgs, GlobalArgs};
use crate::commands::outcome::{ForecastTotal, outcome_text, today, verdict_of};
use crate::commands::{InterruptibleResult, block_on};
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::evidence_sources::EvidenceSources;
use crate::files;
use crate::judge_files::JudgeFileSource;
use crate::launch::{self, ConsultPlan, ConsultRequest, RunFiles};
use crate::run_store::{self, RunStore};
use crate::{display, logging, terminal};

pub(crate) fn run(
    global: &GlobalArgs,
    args: &EvalArgs,
    as_of: CalendarDay,
) -> anyhow::Result<CliExit> {
    let settings = RunSettings {
        isolation: Some(IsolationChoice::None),
        parallel_moves: Some(PARALLEL_MOVES),
        budget_micro_usd: args.budget,
        offline: files::absolute_path(args.offline.as_deref())?,
        ..RunSettings::default()
    };
    let model = args.model.as_ref().map(moothall_core::model::ModelList::first);
    let context = launch::context(global.config.as_deref(), &settings, model)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let tested = test_all(&context, args, as_of, &settings);
    let InterruptibleResult::Done(tested) = block_on(Box::pin(tested))? else {
        return Err(CliError::new(CliExit::Cancelled, "back-test cancelled").into());
    };
    let BackTest { companies, total, failures } = tested?;
    let Some(report) = total.report() else {
        let none = CliError::failed("no forecast has an outcome")
            .with_hint("choose an earlier day: the next annual report must be filed after it");
        return Err(failures.into_iter().next().map_or(none, |(_, failure)| failure).into());
    };
    terminal::print(&match args.json {
        true => {
            let companies: Vec<Value> = companies.iter().map(TestedCompany::as_json).collect();
            let failed = failures
                .iter()
                .map(|(ticker, failure)| json!({ "company": ticker, "problem": failure.message }));
            let failed: Vec<Value> = failed.collect();
            let all = json!({
                "as_of": as_of,
                "companies": companies,
                "failed": failed,
                "report": report,
            });
            format!("{all:#}\n")
        }
        false => {
            let mut text = String::new();
            for company in &companies {
                let _ = writeln!(text, "{}", company.line());
            }
            for (ticker, failure) in &failures {
                let _ = writeln!(text, "{ticker:<6} failed: {}", display::line(&failure.message));
            }
            text + "\n" + &outcome_text::score(&report, companies.len())
        }
    })?;
    // The results of the others were paid for, so they are printed first.
    Ok(failures.first().map_or(CliExit::Fine, |(_, failure)| failure.exit))
}

/// Results of all companies.
struct BackTest {
    companies: Vec<TestedCompany>,
    total: ForecastTotal,
    failures: Vec<(String, CliError)>,
}

/// A company with the questions about it.
struct TestedCompany {
    ticker: String,
    run_id: String,
    questions: usize,
    answered: usize,
    has_failed_panel: bool,
}

impl TestedCompany {
    fn line(&self) -> String {
        let Self { ticker, questions, answered, .. } = self;
        match questions {
            0 if self.has_failed_panel => {
                format!("{ticker:<6} no forecasts, because the panel failed its test")
            }
            0 => format!("{ticker:<6} no forecasts"),
            _ => format!("{ticker:<6} {answered} of {questions} questions answered"),
        }
    }

    fn as_json(&self) -> Value {
        let Self { ticker, run_id, questions, answered, .. } = self;
        json!({ "company": ticker, "run_id": run_id, "questions": questions, "answered": answered })
    }
}

async fn test_all(
    context: &CommandContext,
    args: &EvalArgs,
    as_of: CalendarDay,
    settings: &RunSettings,
) -> Result<BackTest, CliError> {
    let kept = match args.keep {
        true => Some(Arc::new(RunStore::open(&context.loaded).await?)),
        false => None,
    };
    // Mistakes are found before anything is paid.
    let mut plans = Vec::new();
    for ticker in &args.tickers {
        let ticker = ticker.trim().to_ascii_uppercase();
        let plan = request(args, as_of, settings, &ticker)?.plan(context)?;
        plans.push((ticker, plan));
    }
    if let Some((_, plan)) = plans.first() {
        let verdict = plan.spec.input.committee.verdict.as_ref();
        if !verdict.is_some_and(VerdictPlan::asks_forecasts) {
            return Err(CliError::usage("a panel makes forecasts only about six or more moves")
                .with_hint("omit `--moves`, or set it to 6 or more"));
        }
        consent(&plan.estimate, plans.len(), args.yes).await?;
    }
    let count = plans.len();
    let mut all =
        BackTest { companies: Vec::new(), total: ForecastTotal::default(), failures: Vec::new() };
    for (at, (ticker, plan)) in plans.into_iter().enumerate() {
        match test_one(context, settings, &ticker, plan, kept.as_ref(), &mut all.total).await {
            Ok(company) => all.companies.push(company),
            Err(failure) if failure.exit == CliExit::Cancelled => return Err(failure),
            Err(failure) => all.failures.push((ticker, failure)),
        }
        if !args.json {
            super::progress(at + 1, count);
        }
    }
    Ok(all)
}

async fn test_one(
    context: &CommandContext,
    settings: &RunSettings,
    ticker: &str,
    plan: ConsultPlan,
    kept: Option<&Arc<RunStore>>,
    total: &mut ForecastTotal,
) -> Result<TestedCompany, CliError> {
    let gather = plan.spec.input.gather.clone();
    let done = complete(context, plan, ticker, kept).await?;
    let verdict = verdict_of(&done.run_id, Some(&done.outcome))?;
    let forecasts = verdict.forecasts.as_deref();
    let mut outcomes = RunOutcomes::default();
    if let Some(forecasts) = forecasts {
        outcomes.answer(forecasts, &later_filings(context, settings, gather).await?);
    }
    if let Some(kept) = kept {
        let set = kept.store.set_later_outcomes(&done.run_id, &outcomes).await;
        set.map_err(run_store::store_error)?;
    }
    total.add(&context.catalog, &done.run_id, today(), &verdict, &outcomes);
    Ok(TestedCompany {
        ticker: ticker.to_owned(),
        run_id: done.run_id.to_string(),
        questions: forecasts
            .map_or(0, |record| record.questions.len() + record.announcements.len()),
        answered: outcomes.outcomes.len() + outcomes.announcements.len(),
        has_failed_panel: verdict.is_failed(),
    })
}

/// All filings that there are today.
async fn later_filings(
    context: &CommandContext,
    settings: &RunSettings,
    gather: GatherRequest,
) -> Result<Evidence, CliError> {
    let later = GatherRequest { as_of: None, ..gather };
    let offline = settings.offline.as_deref();
    let limiter = context.limiter.clone();
    let sources = EvidenceSources::open(&context.loaded, offline, &later.ticker, limiter)?;
    sources.gather(&later).await
}

fn request(
    args: &EvalArgs,
    as_of: CalendarDay,
    settings: &RunSettings,
    ticker: &str,
) -> Result<ConsultRequest, CliError> {
    let verdict = VerdictRequest {
        mode: Some(VerdictMode::Full),
        again: args.again.clone(),
        panel_models: args.panel.clone(),
        moves: args.moves,
        ..VerdictRequest::default()
    };
    let committee = board_with_panel(args.rounds, &verdict)?;
    Ok(ConsultRequest {
        gather: GatherRequest {
            ticker: ticker.to_owned(),
            name: None,
            source: EvidenceSource::Filings,
            as_of: Some(as_of),
            // Later filings may be years after the day.
            allow_stale: true,
            documents: None,
            news: None,
        },
        committee,
        moves: args.moves,
        model: args.model.clone(),
        member_models: Vec::new(),
        accept_findings: false,
        terms: ConsultOptions { do_nothing: true, ..ConsultOptions::default() },
        settings: settings.clone(),
        files: RunFiles::default(),
        judge_file: JudgeFileSource::ConfigFolder,
    })
}
