//! `moothall outcome`: compares forecasts of a panel with later filings.

mod outcome_text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use moothall_core::consult::{ForecastRecord, GatherRequest, PanelVerdict};
use moothall_core::evidence::CalendarDay;
use moothall_core::model::ModelName;
use moothall_core::verdict::{
    AnnouncementOutcome, ForecastOutcome, ForecastReport, MemberForecast, MoveNote,
    ResolvedForecast, count_tiers, is_possibly_known, resolve_announcement, resolve_question,
};
use moothall_core::{Conclusion, RunId};
use moothall_models::Catalog;
use moothall_store::RunRow;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::runtime;
use crate::args::{GlobalArgs, OutcomeCommand, OutcomeRecordArgs, OutcomeScoreArgs};
use crate::config::LoadedConfig;
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::evidence_sources::EvidenceSources;
use crate::run_store::{self, RunStore};
use crate::{logging, terminal};

/// What happened after a run; a file in the data directory.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OutcomeFile {
    /// Answers of filings.
    outcomes: Vec<ForecastOutcome>,
    /// Moves that the company took, with the day.
    taken: BTreeMap<String, CalendarDay>,
    /// Moves that the company had not taken on this day.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_taken: BTreeMap<String, CalendarDay>,
    /// Answers to questions about announcements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    announcements: Vec<AnnouncementOutcome>,
}

impl OutcomeFile {
    /// What a person noted about each move.
    fn notes(&self) -> BTreeMap<String, MoveNote> {
        let not_taken = self.not_taken.iter();
        let not_taken = not_taken.map(|(id, day)| (id.clone(), MoveNote::NotTaken(*day)));
        let taken = self.taken.iter().map(|(id, day)| (id.clone(), MoveNote::Taken(*day)));
        not_taken.chain(taken).collect()
    }

    /// Notes what became of a move. The last note counts.
    fn note(&mut self, move_id: &str, note: MoveNote) {
        self.taken.remove(move_id);
        self.not_taken.remove(move_id);
        match note {
            MoveNote::Taken(day) => self.taken.insert(move_id.to_owned(), day),
            MoveNote::NotTaken(day) => self.not_taken.insert(move_id.to_owned(), day),
        };
    }
}

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
    let (_, row) = run_store::open_and_find(loaded, &args.run).await?;
    let verdict = verdict_of(&row)?;
    let path = outcome_path(loaded, &row.run_id);
    let mut file = read_file(&path)?.unwrap_or_default();
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
        file.note(move_id, note);
        write_file(&path, &file)?;
        terminal::print(&match (args.json, note) {
            (true, _) => {
                let report = json!({
                    "run_id": row.run_id,
                    "taken": file.taken,
                    "not_taken": file.not_taken,
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
    let sheet = evidence.sheet.as_ref();
    let sheet = sheet.ok_or_else(|| CliError::failed("there are no filed facts"))?;
    let resolve = |question| resolve_question(question, sheet, forecasts.asked);
    for outcome in forecasts.questions.iter().filter_map(resolve) {
        // The first answer stays.
        if file.outcomes.iter().all(|known| known.question != outcome.question) {
            file.outcomes.push(outcome);
        }
    }
    let notes = file.notes();
    for question in &forecasts.announcements {
        let note = notes.get(&question.move_id).copied();
        let events = &evidence.events;
        let found = resolve_announcement(question, forecasts.asked, sheet.as_of, note, events);
        // A person may correct a note, and its answer with it.
        file.announcements.retain(|known| known.question != question.id);
        file.announcements.extend(found);
    }
    write_file(&path, &file)?;
    terminal::print(&match args.json {
        true => {
            let open = forecasts.questions.len() - file.outcomes.len();
            let report = json!({
                "announcements": forecasts.announcements,
                "announced": file.announcements,
                "run_id": row.run_id,
                "as_of": sheet.as_of,
                "questions": forecasts.questions,
                "outcomes": file.outcomes,
                "open": open,
            });
            format!("{report:#}\n")
        }
        false => {
            let figures = outcome_text::questions(&forecasts, &file.outcomes);
            figures + &outcome_text::announcements(&forecasts, &file.announcements, sheet.as_of)
        }
    })?;
    Ok(CliExit::Fine)
}

async fn score(context: &CommandContext, args: &OutcomeScoreArgs) -> anyhow::Result<CliExit> {
    let loaded = &context.loaded;
    let local = RunStore::open_existing(loaded).await?.ok_or_else(nothing_recorded)?;
    let mut rows = Vec::new();
    match args.runs.is_empty() {
        true => {
            for id in recorded_runs(loaded)? {
                // A deleted run has no forecasts any more.
                rows.extend(local.store.run(&id).await.map_err(run_store::store_error)?);
            }
        }
        false => {
            for named in &args.runs {
                rows.push(local.find(named).await?);
            }
        }
    }
    let (mut resolved, mut announced) = (Vec::new(), Vec::new());
    let mut by_tier = BTreeMap::new();
    for row in &rows {
        let Some(file) = read_file(&outcome_path(loaded, &row.run_id))? else { continue };
        let verdict = verdict_of(row)?;
        count_tiers(&mut by_tier, &verdict.tiers, &file.notes());
        let Some(forecasts) = &verdict.forecasts else { continue };
        let scored = ScoredRun { catalog: &context.catalog, row, verdict: &verdict, forecasts };
        resolved.extend(scored.figures(&file));
        announced.extend(scored.announcements(&file));
    }
    if resolved.is_empty() && announced.is_empty() {
        return Err(nothing_recorded().into());
    }
    let report = ForecastReport::of(&resolved).with_moves(&announced, by_tier);
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

fn verdict_of(row: &RunRow) -> Result<PanelVerdict, CliError> {
    let conclusion = row.outcome.as_ref().map(|outcome| &outcome.conclusion);
    let verdict = match conclusion {
        Some(Conclusion::Ranked(result)) => result.verdict.as_deref().cloned(),
        _ => None,
    };
    verdict.ok_or_else(|| {
        CliError::usage(format!("run {} has no verdict of a panel", row.run_id))
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

/// A run whose forecasts are scored.
struct ScoredRun<'a> {
    catalog: &'a Catalog,
    row: &'a RunRow,
    verdict: &'a PanelVerdict,
    forecasts: &'a ForecastRecord,
}

impl ScoredRun<'_> {
    /// Stated chances about figures whose questions have an answer.
    fn figures(&self, file: &OutcomeFile) -> Vec<ResolvedForecast> {
        let stated = self.forecasts.forecasts.iter().filter_map(|stated| {
            let question = self.forecasts.questions.iter().find(|one| one.id == stated.question)?;
            let outcome = file.outcomes.iter().find(|one| one.question == stated.question)?;
            let past = Some(question.past_frequency);
            self.resolved(stated, outcome.happened, past, question.period_end)
        });
        stated.collect()
    }

    /// Stated chances about announcements whose questions have an answer.
    fn announcements(&self, file: &OutcomeFile) -> Vec<ResolvedForecast> {
        let stated = self.forecasts.forecasts.iter().filter_map(|stated| {
            let outcome = file.announcements.iter().find(|one| one.question == stated.question)?;
            // A model that learned anything after the question may know the answer.
            self.resolved(stated, outcome.happened, None, self.forecasts.asked)
        });
        stated.collect()
    }

    fn resolved(
        &self,
        stated: &MemberForecast,
        happened: bool,
        past_frequency: Option<u32>,
        period_end: CalendarDay,
    ) -> Option<ResolvedForecast> {
        let judge = self.verdict.record.judges.iter().find(|judge| judge.id == stated.member)?;
        let model: Option<ModelName> = judge.model.parse().ok();
        let known = model.and_then(|model| self.catalog.knowledge_until(&model));
        Some(ResolvedForecast {
            question: format!("{}/{}", self.row.run_id, stated.question),
            member: stated.member.clone(),
            model: judge.model.clone(),
            chance: stated.chance,
            past_frequency,
            happened,
            is_possibly_known: is_possibly_known(period_end, known),
        })
    }
}

fn today() -> CalendarDay {
    let seconds = moothall_store::now_ms() / 1000;
    CalendarDay::from_unix_seconds(i64::try_from(seconds).unwrap_or(i64::MAX))
}

fn outcome_folder(loaded: &LoadedConfig) -> PathBuf {
    loaded.locations.folders.data.join("outcomes")
}

fn outcome_path(loaded: &LoadedConfig, run_id: &RunId) -> PathBuf {
    outcome_folder(loaded).join(format!("{run_id}.json"))
}

/// Runs with a file, by id.
fn recorded_runs(loaded: &LoadedConfig) -> Result<Vec<RunId>, CliError> {
    let folder = outcome_folder(loaded);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let cannot = |error| CliError::failed("cannot read the recorded outcomes").with_source(error);
    let mut runs = Vec::new();
    for entry in fs_err::read_dir(folder).map_err(cannot)? {
        let name = entry.map_err(cannot)?.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
        runs.extend(id.and_then(|id| id.parse().ok()));
    }
    runs.sort();
    Ok(runs)
}

fn read_file(path: &Path) -> Result<Option<OutcomeFile>, CliError> {
    let text = match fs_err::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(CliError::failed("cannot read recorded outcomes").with_source(error));
        }
    };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        CliError::failed(format!("{} is damaged", path.display()))
            .with_source(error)
            .with_hint("remove the file, and record the outcomes again")
    })
}

fn write_file(path: &Path, file: &OutcomeFile) -> Result<(), CliError> {
    let cannot = |error| CliError::failed("cannot write recorded outcomes").with_source(error);
    let text = serde_json::to_string_pretty(file)
        .map_err(|error| CliError::failed("cannot write recorded outcomes").with_source(error))?;
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder).map_err(cannot)?;
    }
    fs_err::write(path, text).map_err(cannot)
}
