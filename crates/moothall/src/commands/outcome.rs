//! `moothall outcome`: compares forecasts of a panel with later filings.

pub(crate) mod outcome_text;

use std::collections::BTreeMap;

use moothall_core::consult::{ForecastRecord, GatherRequest, PanelVerdict, RunOutcomes, ScoredRun};
use moothall_core::evidence::CalendarDay;
use moothall_core::model::ModelName;
use moothall_core::verdict::{
    ForecastReport, MoveNote, ResolvedForecast, TierOutcome, VerdictTier, count_tiers,
};
use moothall_core::{Outcome, RunId};
use moothall_models::Catalog;
use moothall_store::RunRow;
use serde_json::json;

use super::runtime;
use crate::args::{GlobalArgs, OutcomeCommand, OutcomeRecordArgs, OutcomeScoreArgs};
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::evidence_sources::EvidenceSources;
use crate::run_store::{self, RunStore};
use crate::{logging, terminal};

pub(crate) fn run(global: &GlobalArgs, command: &OutcomeCommand) -> anyhow::Result<CliExit> {
    let context = CommandContext::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        match command {
            OutcomeCommand::Record(args) => Box::pin(record(&context, args)).await,
            OutcomeCommand::Score(args) => score(&context, args).await,
        }
    })
}

async fn record(context: &CommandContext, args: &OutcomeRecordArgs) -> anyhow::Result<CliExit> {
    let loaded = &context.loaded;
    let (local, row) = run_store::open_and_find(loaded, &args.run).await?;
    let verdict = verdict_of(&row.run_id, row.outcome.as_ref())?;
    let note = match args.taken {
        Some(day) => Some(MoveNote::Taken(day)),
        None => args.not_taken.then(|| MoveNote::NotTaken(today())),
    };
    if let (Some(move_id), Some(note)) = (&args.move_id, note) {
        if verdict.estimate(move_id).is_none() {
            return Err(CliError::usage(format!("the run has no move `{move_id}`"))
                .with_hint(format!("`moothall moves {}` lists the moves", args.run))
                .into());
        }
        let mut known = known_outcomes(&local, &row.run_id).await?;
        known.note(move_id, note, verdict.forecasts.as_deref());
        keep(&local, &row.run_id, &known).await?;
        terminal::print(&match (args.json, note) {
            (true, _) => {
                let report = json!({
                    "run_id": row.run_id,
                    "taken": known.taken,
                    "not_taken": known.not_taken,
                });
                format!("{report:#}\n")
            }
            (false, MoveNote::Taken(day)) => format!("{move_id} was taken on {day}\n"),
            (false, MoveNote::NotTaken(day)) => format!("{move_id} was not taken until {day}\n"),
        })?;
        return Ok(CliExit::Fine);
    }
    let forecasts = forecasts_of(&row, &verdict)?;
    let spec = row.spec.consult().ok_or_else(|| run_store::not_a_consultation(&row.run_id))?;
    let request = GatherRequest {
        as_of: args.evidence.as_of,
        allow_stale: true,
        documents: None,
        news: None,
        ..spec.input.gather.clone()
    };
    let offline = args.evidence.offline.as_deref().or(spec.settings.offline.as_deref());
    let sources = EvidenceSources::open(loaded, offline, &request.ticker, context.limiter.clone())?;
    let evidence = sources.gather(&request).await?;
    // Read after the filings were gathered, which takes a while: someone may have noted a move.
    let mut known = known_outcomes(&local, &row.run_id).await?;
    let as_of = known.answer(&forecasts, &evidence);
    let as_of = as_of.ok_or_else(|| CliError::failed("no filed facts found"))?;
    keep(&local, &row.run_id, &known).await?;
    terminal::print(&match args.json {
        true => {
            let open = forecasts.questions.len() - known.outcomes.len();
            let report = json!({
                "announcements": forecasts.announcements,
                "announced": known.announcements,
                "run_id": row.run_id,
                "as_of": as_of,
                "questions": forecasts.questions,
                "outcomes": known.outcomes,
                "open": open,
            });
            format!("{report:#}\n")
        }
        false => {
            let figures = outcome_text::questions(&forecasts, &known.outcomes);
            figures + &outcome_text::announcements(&forecasts, &known.announcements, as_of)
        }
    })?;
    Ok(CliExit::Fine)
}

async fn score(context: &CommandContext, args: &OutcomeScoreArgs) -> anyhow::Result<CliExit> {
    let loaded = &context.loaded;
    let local = RunStore::open_existing(loaded).await?.ok_or_else(nothing_recorded)?;
    let store = &local.store;
    let mut rows = Vec::new();
    match args.runs.is_empty() {
        true => {
            let ids = store.runs_with_later_outcomes().await.map_err(run_store::store_error)?;
            for id in ids {
                rows.extend(store.run(&id).await.map_err(run_store::store_error)?);
            }
        }
        false => {
            for named in &args.runs {
                rows.push(local.find(named).await?);
            }
        }
    }
    let mut total = ForecastTotal::default();
    for row in &rows {
        let outcomes = store.later_outcomes(&row.run_id).await.map_err(run_store::store_error)?;
        let Some(outcomes) = outcomes else { continue };
        total.add(
            &context.catalog,
            &row.run_id,
            day_of(row.created_at_ms),
            &verdict_of(&row.run_id, row.outcome.as_ref())?,
            &outcomes,
        );
    }
    let report = total.report().ok_or_else(nothing_recorded)?;
    terminal::print(&match args.json {
        true => format!("{:#}\n", json!({ "runs": rows.len(), "report": report })),
        false => outcome_text::score(&report, rows.len()),
    })?;
    Ok(CliExit::Fine)
}

fn nothing_recorded() -> CliError {
    CliError::usage("no forecast has an outcome yet")
        .with_hint("run `moothall outcome record RUN` after the company's next annual report")
}

pub(crate) fn verdict_of(
    run_id: &RunId,
    outcome: Option<&Outcome>,
) -> Result<PanelVerdict, CliError> {
    outcome.and_then(Outcome::panel_verdict).cloned().ok_or_else(|| {
        CliError::usage(format!("run {run_id} has no verdict of a panel"))
            .with_hint("start runs without `--verdict off`")
    })
}

fn forecasts_of(row: &RunRow, verdict: &PanelVerdict) -> Result<ForecastRecord, CliError> {
    verdict.forecasts.as_deref().cloned().ok_or_else(|| {
        CliError::usage(format!("run {} has no forecasts", row.run_id)).with_hint(
            "runs with a panel and at least six moves about a company that files have forecasts",
        )
    })
}

/// Forecasts of several runs and what happened.
#[derive(Debug, Default)]
pub(crate) struct ForecastTotal {
    figures: Vec<ResolvedForecast>,
    announcements: Vec<ResolvedForecast>,
    by_tier: BTreeMap<VerdictTier, TierOutcome>,
}

impl ForecastTotal {
    pub(crate) fn add(
        &mut self,
        catalog: &Catalog,
        run_id: &RunId,
        run_on: CalendarDay,
        verdict: &PanelVerdict,
        outcomes: &RunOutcomes,
    ) {
        count_tiers(&mut self.by_tier, &verdict.tiers, &outcomes.notes());
        let knowledge_until = |model: &str| {
            let model: Option<ModelName> = model.parse().ok();
            model.and_then(|model| catalog.knowledge_until(&model))
        };
        let scored = ScoredRun { run_id, verdict, run_on, outcomes, knowledge_until };
        self.figures.extend(scored.figures());
        self.announcements.extend(scored.announcements());
    }

    /// `None` if no forecast has an outcome.
    pub(crate) fn report(self) -> Option<ForecastReport> {
        if self.figures.is_empty() && self.announcements.is_empty() {
            return None;
        }
        Some(ForecastReport::of(&self.figures).with_moves(&self.announcements, self.by_tier))
    }
}

async fn known_outcomes(local: &RunStore, id: &RunId) -> Result<RunOutcomes, CliError> {
    let known = local.store.later_outcomes(id).await.map_err(run_store::store_error)?;
    Ok(known.unwrap_or_default())
}

async fn keep(local: &RunStore, id: &RunId, known: &RunOutcomes) -> Result<(), CliError> {
    local.store.set_later_outcomes(id, known).await.map_err(run_store::store_error)
}

pub(crate) fn today() -> CalendarDay {
    day_of(moothall_store::now_ms())
}

fn day_of(unix_ms: u64) -> CalendarDay {
    CalendarDay::from_unix_seconds(i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX))
}
