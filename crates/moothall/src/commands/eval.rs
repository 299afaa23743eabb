//! `moothall eval`: measures a panel with moves whose true value is known.
//!
//! Every company of the set is a complete consultation: gathered filings, analysts, debates, panel,
//! controls and repeats. Only the moves are fixed: they are those of the set.

mod back_test;
mod chart;
mod eval_text;

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::benchmark::{
    BenchmarkCompany, BenchmarkReport, CompanyResult, JudgeMeasurement, JudgeWorld, ScriptedJudges,
};
use moothall_core::consult::{
    Committee, ConsultOptions, EvidenceSource, GatherRequest, PanelVerdict, VerdictRequest, board,
};
use moothall_core::model::{ModelList, ModelName};
use moothall_core::verdict::NoiseAllowances;
use moothall_core::{Conclusion, IsolationChoice, Outcome, RunId, RunSettings, RunSpec};
use moothall_engine::{RunExit, RunPause};
use moothall_models::{RunLedger, ScriptedJudgeBackend};
use moothall_store::{SqliteStore, Store};
use serde_json::json;
use tokio::runtime::Builder as RuntimeBuilder;
use tokio::task::JoinSet;

use super::{InterruptibleResult, build_runtime, interruptible, prompt};
use crate::args::{EvalArgs, GlobalArgs};
use crate::context::CommandContext;
use crate::demo_delay::DemoDelay;
use crate::error::{CliError, CliExit};
use crate::filing_recording::benchmark;
use crate::judge_files::{self, JudgeFileSource};
use crate::launch::estimate::CostEstimate;
use crate::launch::{
    self, ConsultPlan, ConsultRequest, PreparedRun, RunFiles, RunParts, engine_failure,
};
use crate::logging;
use crate::run_store::{self, RunStore};
use crate::terminal::{self, DIM};

/// Speaks in the debates and proposes the moves of the set.
const SCRIPT: &str = "scripted-judge/debate-script";

/// Debates of one company that run in parallel.
const PARALLEL_MOVES: u32 = 15;

pub(crate) fn run(global: &GlobalArgs, args: &EvalArgs) -> anyhow::Result<CliExit> {
    if let Some(as_of) = args.as_of {
        return back_test::run(global, args, as_of);
    }
    let world = judge_world(args)?;
    let settings = RunSettings { budget_micro_usd: args.budget, ..RunSettings::default() };
    let mut context = launch::context(global.config.as_deref(), &settings, None)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let styles = world.judges.iter();
    let styles = styles.map(|(name, judge)| (scripted_name(name), judge.style)).collect();
    let judges = ScriptedJudges::new(benchmark::set().clone(), world);
    let request = EvalRequest::new(args, &judges)?;
    context.judges = Some(Arc::new(ScriptedJudgeBackend::new(judges)));
    let companies = benchmark::set().companies.iter();
    let companies: Vec<&'static BenchmarkCompany> =
        companies.take(args.companies.map_or(usize::MAX, |count| count as usize)).collect();

    let mut builder = RuntimeBuilder::new_multi_thread();
    let runtime = build_runtime(builder.worker_threads(args.parallel as usize))?;
    let report = runtime.block_on(async {
        if let Some(first) = companies.first() {
            let estimate = request.plan(&context, first)?.estimate;
            consent(&estimate, companies.len(), args.yes).await?;
        }
        let runs = run_all(Arc::new(context), request, &companies, args);
        match interruptible(Box::pin(runs)).await {
            InterruptibleResult::Done(runs) => runs,
            InterruptibleResult::Cancelled => {
                Err(CliError::new(CliExit::Cancelled, "benchmark cancelled"))
            }
        }
    });
    let runs = report?;
    let results: Vec<CompanyResult<'_>> = runs.iter().map(CompanyRun::result).collect();
    let report = BenchmarkReport::of(&results, &styles).map_err(|error| {
        CliError::failed("the cards of a run do not fit together").with_source(error)
    })?;
    let sha256 = benchmark::set().sha256().map_err(|error| {
        CliError::failed("cannot compute the hash of the set").with_source(error)
    })?;
    let measured = report.measurement(benchmark::set().name, &sha256.to_string());
    let written = match &args.write {
        Some(path) => Some((path, judge_files::write(path, measured.clone())?)),
        None => None,
    };
    if let Some(path) = &args.chart {
        fs_err::write(path, chart::calibration_chart(&report))
            .map_err(|error| CliError::failed("cannot write the chart").with_source(error))?;
    }
    let shown = match args.json {
        true => format!("{:#}\n", as_json(&runs, &report, &measured)),
        false => eval_text::text(&report, &measured),
    };
    terminal::print(&shown)?;
    if let (Some((path, sha256)), false) = (written, args.json) {
        terminal::note(&format!("{DIM}wrote {} ({sha256:.12}){DIM:#}\n", path.display()));
    }
    Ok(CliExit::Fine)
}

fn as_json(
    runs: &[CompanyRun],
    report: &BenchmarkReport,
    measured: &JudgeMeasurement,
) -> serde_json::Value {
    let run = |run: &CompanyRun| {
        let lead = run.verdict.tiers.tier(moothall_core::verdict::VerdictTier::Lead);
        json!({
            "company": run.company.ticker(),
            "lead": lead.iter().map(|one| &one.move_id).collect::<Vec<_>>(),
            "best": run.best_id(),
            "check": run.verdict.tiers.controls.check,
            "held_back": run.held_back,
        })
    };
    json!({
        "set": measured.set,
        "sha256": measured.set_sha256,
        "report": report,
        "allowances": {
            "shared_error": measured.shared_error,
            "single_model": measured.single_model,
            "single_debate": measured.single_debate,
        },
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
    })
}

fn scripted_name(judge: &str) -> String {
    format!("{}/{judge}", ModelName::SCRIPTED_JUDGE)
}

/// The profile of the scripted judges.
fn judge_world(args: &EvalArgs) -> Result<JudgeWorld, CliError> {
    let path = match args.profile.as_str() {
        "default" => return Ok(JudgeWorld::default()),
        "exact" => return Ok(JudgeWorld::without_noise()),
        path => path,
    };
    let text = fs_err::read_to_string(path).map_err(|error| {
        CliError::usage(format!("cannot read the profile `{path}`"))
            .with_source(error)
            .with_hint("use `default`, `exact` or a TOML file")
    })?;
    let invalid = || {
        CliError::usage(format!("{path} is not a valid profile"))
            .with_hint("see \"Measure a panel\" in the documentation for the format")
    };
    let world: JudgeWorld = toml::from_str(&text).map_err(|error| invalid().with_source(error))?;
    match world.problem() {
        None => Ok(world),
        Some(problem) => Err(CliError::usage(format!("{path}: {problem}"))),
    }
}

/// What is the same for all companies.
#[derive(Debug, Clone)]
struct EvalRequest {
    speaker: ModelList,
    script: ModelList,
    panel: Vec<ModelName>,
    again: Option<Vec<u32>>,
    rounds: u32,
    moves: Option<u32>,
    has_allowances: bool,
    settings: RunSettings,
}

impl EvalRequest {
    fn new(args: &EvalArgs, judges: &ScriptedJudges) -> Result<Self, CliError> {
        let name = |text: &str| {
            text.parse::<ModelName>().map_err(|error| CliError::usage(error.to_string()))
        };
        let script = ModelList::from(name(SCRIPT)?);
        let panel = match args.panel.as_slice() {
            [] => {
                let names = judges.world().judges.keys();
                names.map(|judge| name(&scripted_name(judge))).collect::<Result<_, _>>()?
            }
            models => models.to_vec(),
        };
        Ok(Self {
            speaker: args.model.clone().unwrap_or_else(|| script.clone()),
            script,
            panel,
            again: args.again.clone(),
            rounds: args.rounds,
            moves: args.moves,
            has_allowances: !args.no_allowances,
            settings: RunSettings {
                isolation: Some(IsolationChoice::None),
                parallel_moves: Some(PARALLEL_MOVES),
                budget_micro_usd: args.budget,
                ..RunSettings::default()
            },
        })
    }

    /// The consultation about one company.
    fn plan(
        &self,
        context: &CommandContext,
        company: &BenchmarkCompany,
    ) -> Result<ConsultPlan, CliError> {
        let mut committee = board_with_panel(
            self.rounds,
            &VerdictRequest {
                again: self.again.clone(),
                panel_models: self.panel.clone(),
                moves: self.moves,
                ..VerdictRequest::default()
            },
        )?;
        if let Some(plan) = &mut committee.verdict {
            // The companies of a set have no later filings.
            plan.forecasts = Some(false);
            let none = NoiseAllowances {
                shared_error: 0,
                single_model: 0,
                single_debate: 0,
                ..NoiseAllowances::default()
            };
            plan.allowances = (!self.has_allowances).then_some(none);
        }
        let request = ConsultRequest {
            gather: GatherRequest {
                ticker: company.ticker(),
                name: None,
                source: EvidenceSource::Filings,
                as_of: None,
                allow_stale: false,
                documents: None,
                news: None,
            },
            committee,
            moves: self.moves,
            model: Some(self.speaker.clone()),
            // Only the moves of the set have a known value.
            member_models: vec![("analyst".to_owned(), self.script.clone())],
            accept_findings: false,
            terms: ConsultOptions { do_nothing: true, ..ConsultOptions::default() },
            settings: self.settings.clone(),
            files: RunFiles::default(),
            judge_file: JudgeFileSource::Input,
        };
        request.plan(context)
    }
}

fn board_with_panel(rounds: u32, verdict: &VerdictRequest) -> Result<Committee, CliError> {
    let mut committee = board();
    committee.rounds = rounds;
    committee.request_verdict(verdict).map_err(|conflict| CliError::usage(conflict.to_string()))?;
    Ok(committee)
}

/// Asks before models that cost money are called for hours.
async fn consent(estimate: &CostEstimate, companies: usize, yes: bool) -> Result<(), CliError> {
    if estimate.free || yes {
        return Ok(());
    }
    let cost = format!("{companies} runs, each: {}", estimate.line());
    if !prompt::is_interactive() {
        let message = format!("this benchmark needs confirmation because of its cost: {cost}");
        return Err(
            CliError::usage(message).with_hint("pass `--yes`, or reduce companies or `--rounds`")
        );
    }
    terminal::note(&format!("{cost}\n"));
    match prompt::confirm("Start this benchmark?").await {
        true => Ok(()),
        false => Err(CliError::new(CliExit::Cancelled, "benchmark not started")),
    }
}

/// A company with its verdict.
struct CompanyRun {
    company: &'static BenchmarkCompany,
    titles: BTreeMap<String, String>,
    verdict: PanelVerdict,
    /// Moves that checks hold back; none of the set should be.
    held_back: Vec<String>,
}

impl CompanyRun {
    fn result(&self) -> CompanyResult<'_> {
        CompanyResult {
            company: self.company,
            titles: &self.titles,
            record: &self.verdict.record,
            tiers: &self.verdict.tiers,
        }
    }

    fn best_id(&self) -> Option<&String> {
        let best = &self.company.best_of(self.titles.values())?.proposal.title;
        self.titles.iter().find(|(_, title)| *title == best).map(|(move_id, _)| move_id)
    }
}

/// Runs all companies, several at a time, and returns them in the order of their numbers.
async fn run_all(
    context: Arc<CommandContext>,
    request: EvalRequest,
    companies: &[&'static BenchmarkCompany],
    args: &EvalArgs,
) -> Result<Vec<CompanyRun>, CliError> {
    let kept = match args.keep {
        true => Some(Arc::new(RunStore::open(&context.loaded).await?)),
        false => None,
    };
    let request = Arc::new(request);
    let mut waiting = companies.iter().copied();
    let mut tasks = JoinSet::new();
    let mut runs = BTreeMap::new();
    loop {
        while tasks.len() < args.parallel as usize
            && let Some(company) = waiting.next()
        {
            let (context, request) = (Arc::clone(&context), Arc::clone(&request));
            let kept = kept.clone();
            tasks.spawn(async move { run_company(&context, &request, company, kept).await });
        }
        let Some(done) = tasks.join_next().await else { break };
        let done =
            done.map_err(|error| CliError::failed("a run ended early").with_source(error))?;
        let run = done?;
        runs.insert(run.company.number, run);
        if !args.json {
            progress(runs.len(), companies.len());
        }
    }
    Ok(runs.into_values().collect())
}

fn progress(done: usize, all: usize) {
    if terminal::stderr_is_terminal() {
        terminal::clear_line();
        match done == all {
            true => {}
            false => terminal::note(&format!("{DIM}{done} of {all} companies{DIM:#}")),
        }
    }
}

async fn run_company(
    context: &CommandContext,
    request: &EvalRequest,
    company: &'static BenchmarkCompany,
    kept: Option<Arc<RunStore>>,
) -> Result<CompanyRun, CliError> {
    let plan = request.plan(context, company)?;
    let done = complete(context, plan, &company.ticker(), kept.as_ref()).await?;
    company_run(company, done.outcome)
}

/// A run that ended.
struct CompletedRun {
    run_id: RunId,
    outcome: Outcome,
}

/// Runs a consultation from start to end, in memory unless a store keeps it.
async fn complete(
    context: &CommandContext,
    plan: ConsultPlan,
    ticker: &str,
    kept: Option<&Arc<RunStore>>,
) -> Result<CompletedRun, CliError> {
    let ConsultPlan { spec, cap, .. } = plan;
    let prepared = PreparedRun::open(context, RunSpec::Consult(spec)).await?;
    let evidence = prepared.gather().await?;
    let new = prepared.new_run(evidence.as_ref())?;
    let run_id = new.run_id.clone();
    let store: Arc<dyn Store> = match kept {
        Some(local) => Arc::clone(&local.store),
        None => Arc::new(SqliteStore::in_memory().await.map_err(run_store::store_error)?),
    };
    let _lock = match kept {
        Some(local) => Some(local.lock(&run_id).await.map_err(engine_failure)?),
        None => None,
    };
    store.create_run(new).await.map_err(run_store::store_error)?;
    let ledger = RunLedger::new(cap.budget());
    let RunParts { mut workflow, driver } =
        prepared.parts(&store, &run_id, ledger, DemoDelay::NONE, None).await?;
    // Boxed because the future holds hundreds of concurrent calls.
    let exit = Box::pin(driver.drive(&mut *workflow)).await.map_err(engine_failure)?;
    prepared.shut_down().await;
    match exit {
        RunExit::Done(outcome) => Ok(CompletedRun { run_id, outcome }),
        RunExit::Paused(pause) => Err(paused(ticker, &pause)),
        RunExit::Cancelled => Err(CliError::new(CliExit::Cancelled, "a run was cancelled")),
    }
}

fn company_run(
    company: &'static BenchmarkCompany,
    outcome: Outcome,
) -> Result<CompanyRun, CliError> {
    let ticker = company.ticker();
    let Conclusion::Ranked(result) = outcome.conclusion else {
        return Err(CliError::failed(format!("the run of {ticker} has no verdict"))
            .with_hint("keep its run with `--keep`, and look at it with `moothall show`"));
    };
    let moves = || result.recommended.iter().chain(&result.other);
    let titles = moves().map(|one| (one.move_id.clone(), one.title.clone())).collect();
    let verdict = result.verdict.as_deref().cloned().ok_or_else(|| {
        CliError::failed(format!("the run of {ticker} has no verdict of the panel"))
    })?;
    let estimates = verdict.tiers.estimates.iter();
    let held = estimates.filter(|one| one.kind == moothall_core::verdict::CaseKind::HeldMove);
    let held_back = held.map(|one| one.move_id.clone()).collect();
    Ok(CompanyRun { company, titles, verdict, held_back })
}

fn paused(ticker: &str, pause: &RunPause) -> CliError {
    match pause {
        RunPause::Budget(_) => CliError::new(
            CliExit::BudgetStopped,
            format!("the budget of the run of {ticker} is used up"),
        )
        .with_hint("raise `--budget`, or reduce `--rounds`"),
        RunPause::Failure(model, failure) => {
            CliError::failed(format!("{model} cannot be called: {}", failure.detail))
        }
        RunPause::Person | RunPause::Question(_) => {
            CliError::failed(format!("the run of {ticker} was paused"))
        }
    }
}
