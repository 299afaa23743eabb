//! What a consultation came to, for people and for programs.

use std::path::{Path, PathBuf};

use moothall_core::{Conclusion, EffectResult, MicroUsd, Outcome, RunEventBody, Verdict};
use moothall_engine::{Ended, Pause, RunRecord};
use moothall_store::Store;

use super::drive::Left;
use super::reading::{Reading, beside_calls};
use super::summary::{self, DOES_NOT_EXIST, NOT_ADVICE};
use crate::commands::failure;
use crate::context::Context;
use crate::display::{self, cents, short_number};
use crate::error::{CliError, Exit};
use crate::files;
use crate::local;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// Files that are written at the end.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) receipt: Option<PathBuf>,
    pub(super) events: Option<PathBuf>,
    pub(super) memo: Option<PathBuf>,
    pub(super) artifacts: Option<PathBuf>,
    pub(super) json: bool,
}

/// Writes the files that are wanted and tells what came of the run.
pub(super) async fn finish(
    context: &Context,
    store: &dyn Store,
    run_id: &moothall_core::RunId,
    left: &Left,
    wanted: &Files,
) -> anyhow::Result<Exit> {
    let record = RunRecord::read(store, run_id).await.map_err(local::broken)?;
    let reading = Reading::of(&record)?;
    let unsaved = write_files(&record, &reading, wanted);
    let told = tell(context, &record, &reading, left, wanted);
    // What cannot be written is still told: it is paid for.
    match (told, unsaved) {
        (told, Ok(())) => told,
        (Ok(_), Err(unsaved)) => Err(unsaved),
        (Err(error), Err(unsaved)) => {
            terminal::show_error(&unsaved.into());
            Err(error)
        }
    }
}

fn write_files(record: &RunRecord, reading: &Reading, wanted: &Files) -> anyhow::Result<()> {
    if let Some(path) = &wanted.events {
        files::write_events(path, record)?;
    }
    if let (Some(path), Some(receipt)) = (&wanted.receipt, record.receipt()) {
        files::write_receipt(path, &receipt)?;
    }
    // A memo of a run that stands still says what is missing.
    if let Some(path) = &wanted.memo {
        fs_err::write(path, reading.memo())
            .map_err(|error| CliError::failed("the memo cannot be written").with_source(error))?;
    }
    if let (Some(folder), Some(_)) = (&wanted.artifacts, &record.row.outcome) {
        reading.write_artifacts(folder)?;
    }
    Ok(())
}

fn tell(
    context: &Context,
    record: &RunRecord,
    reading: &Reading,
    left: &Left,
    wanted: &Files,
) -> anyhow::Result<Exit> {
    if wanted.json {
        terminal::print(&format!("{:#}\n", reading.json(record, false)))?;
    } else if let Left::Ended(Ended::Done(_)) = left {
        terminal::print(&summary::text(&reading.view))?;
        note_end(record, reading, wanted);
    }
    let id = local::short(&record.row.run_id);
    let resume = format!("let it go on: `moothall resume {id}`");
    Err(match left {
        Left::Ended(Ended::Done(outcome)) => match of_failure(context, record, reading, outcome) {
            Some(failure) => failure,
            None => {
                return Ok(match outcome.verdict {
                    Verdict::Pass => Exit::Fine,
                    Verdict::NeedsPerson => Exit::NeedsPerson,
                    Verdict::Fail => Exit::VerdictNegative,
                });
            }
        },
        Left::Ended(Ended::Paused(Pause::Budget(found))) => {
            let flag = match found.detail.contains("tokens") {
                true => "--budget-tokens N",
                false => "--budget USD",
            };
            CliError::new(Exit::BudgetStopped, format!("run {id} is paused ({found})")).with_hint(
                format!(
                    "let it go on with more: `moothall resume {id} {flag}`; \
                     what there is: `moothall show {id} --memo`"
                ),
            )
        }
        Left::Ended(Ended::Paused(Pause::Failure(model, found))) => {
            failure::of_pause(context, model, found, &record.row.run_id)
        }
        Left::Ended(Ended::Paused(Pause::Question(asked))) => CliError::new(
            Exit::NeedsPerson,
            format!("run {id} is paused: {asked}"),
        )
        .with_hint(format!(
            "see and change them: `moothall moves {id}`; let it go on: `moothall resume {id}`"
        )),
        Left::Ended(Ended::Paused(Pause::Person)) => {
            CliError::new(Exit::Cancelled, format!("run {id} is paused")).with_hint(resume)
        }
        Left::Ended(Ended::Cancelled) => {
            CliError::new(Exit::Cancelled, format!("run {} is cancelled", record.row.run_id))
        }
        Left::Interrupted => CliError::new(
            Exit::Cancelled,
            format!("run {id} is interrupted; calls that were under way are asked again"),
        )
        .with_hint(resume),
    }
    .into())
}

/// The line about the run, and where everything else is.
fn note_end(record: &RunRecord, reading: &Reading, wanted: &Files) {
    let outcome = reading.view.outcome.as_ref();
    let passed = outcome.is_some_and(|outcome| outcome.verdict == Verdict::Pass);
    let style = if passed { GREEN } else { YELLOW };
    let word = outcome.map_or("not finished", display::verdict);
    let (parts, id) = (figures(record, reading).join(" · "), local::short(&record.row.run_id));
    terminal::note(&format!(
        "\n{style}{BOLD}{word}{BOLD:#}{style:#} {DIM}· {parts} · run {id}{DIM:#}\n"
    ));
    match &wanted.memo {
        Some(path) => terminal::note(&format!("{DIM}wrote {}{DIM:#}\n", here(path))),
        None => terminal::note(&format!("{DIM}the memo: moothall show {id} --memo{DIM:#}\n")),
    }
    let held = reading.view.ranked.as_ref().and_then(|ranked| {
        ranked.other.iter().find(|one| one.debated.is_some() && one.rank.is_none())
    });
    if let Some(held) = held {
        let move_id = display::line(&held.move_id);
        terminal::note(&format!(
            "{DIM}a move that is held back is let through by: moothall approve {id} --move {move_id}{DIM:#}\n"
        ));
    }
    terminal::note(&format!("{DIM}{NOT_ADVICE}{DIM:#}\n"));
}

/// Calls, tokens, cost, walls, and what kind of run it was.
pub(super) fn figures(record: &RunRecord, reading: &Reading) -> Vec<String> {
    let facts = &reading.facts;
    let beside = beside_calls(record);
    let own = facts.calls.saturating_sub(facts.extra_calls).saturating_sub(beside);
    let mut calls = format!("{own} calls");
    if beside > 0 {
        calls.push_str(&format!(" + {beside} for scores without a debate"));
    }
    if facts.extra_calls > 0 {
        calls.push_str(&format!(" + {} asked again", facts.extra_calls));
    }
    let mut parts = vec![calls, format!("{} tokens", short_number(facts.usage.total()))];
    if facts.usage.cache_read > 0 {
        let prompt = facts.usage.prompt().max(1);
        let share = u128::from(facts.usage.cache_read) * 100 / u128::from(prompt);
        parts.push(format!("{share}% of prompts from cache"));
    }
    match record.row.spent {
        Some(spent) if spent.unpriced_calls > 0 && spent.usd == MicroUsd::ZERO => {
            parts.push("price unknown".to_owned());
        }
        Some(spent) => {
            parts.push(cents(spent.usd));
            if spent.unpriced_calls > 0 {
                parts.push(format!("{} calls without a known price", spent.unpriced_calls));
            }
        }
        None => parts.extend(facts.cost.map(cents)),
    }
    parts.extend(weakest(reading));
    if facts.demonstration {
        parts.push("a demonstration, no model was asked".to_owned());
    }
    if reading.is_fictional() {
        parts.push(DOES_NOT_EXIST.to_owned());
    }
    parts
}

/// The weakest walls around any debate.
fn weakest(reading: &Reading) -> Option<String> {
    let classes = reading.view.debates.values().filter_map(|debate| debate.isolation.as_ref());
    let weakest = classes.min_by_key(|isolation| isolation.class)?;
    let mut words = format!("debated in class {}", weakest.class);
    if let Some(why) = &weakest.fallback {
        words.push_str(&format!(" ({})", display::line(why)));
    }
    Some(words)
}

/// Why there is nothing to rank, with the cure where we know it; nothing where there are moves.
fn of_failure(
    context: &Context,
    record: &RunRecord,
    reading: &Reading,
    outcome: &Outcome,
) -> Option<CliError> {
    if reading.view.moves().next().is_some() {
        return None;
    }
    let failed = record.events.iter().find_map(|stored| match &stored.event.body {
        RunEventBody::ModelFailed { effect_id, model, .. } => {
            match &record.journal.get(effect_id)?.result {
                EffectResult::ModelFailed(found) => Some(failure::of_call(context, model, found)),
                _ => None,
            }
        }
        _ => None,
    });
    let not_gathered = || {
        record.journal.values().find_map(|entry| match &entry.result {
            EffectResult::NotGathered(found) => Some(
                CliError::failed(format!("there is no evidence: {}", found.detail))
                    .with_hint("start it again when the service can be reached"),
            ),
            _ => None,
        })
    };
    let unnamed = || match &outcome.conclusion {
        Conclusion::Failed { .. } | Conclusion::NotGathered { .. } => {
            let why = outcome.findings.first().map(display::finding);
            Some(CliError::failed(why.unwrap_or_else(|| "the run failed".to_owned())))
        }
        _ => None,
    };
    failed.or_else(not_gathered).or_else(unnamed)
}

fn here(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}
