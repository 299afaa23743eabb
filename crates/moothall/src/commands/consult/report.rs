//! Reports the result of a consultation as text or JSON.

use std::path::{Path, PathBuf};

use moothall_core::sandbox::IsolationClass;
use moothall_core::{Conclusion, EffectResult, MicroUsd, Outcome, RunEventBody, RunVerdict};
use moothall_engine::{RunExit, RunPause, RunRecord};
use moothall_store::Store;

use super::stored_consultation::{StoredConsultation, beside_calls};
use super::summary::{self, FICTIONAL_LABEL, NOT_ADVICE};
use crate::args::{ConsultOutputFlags, OutputFileFlags};
use crate::commands::failure;
use crate::commands::pausable_run::{
    DriveResult, cancellation_message, interruption_message, pause_message,
};
use crate::context::CommandContext;
use crate::display::{self, cents, short_number};
use crate::error::{CliError, CliExit};
use crate::files;
use crate::run_store;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// Output files and format.
#[derive(Debug, Default)]
pub(crate) struct ConsultOutputFiles {
    pub(crate) receipt: Option<PathBuf>,
    pub(crate) events: Option<PathBuf>,
    pub(crate) memo: Option<PathBuf>,
    pub(crate) artifacts: Option<PathBuf>,
    pub(crate) json: bool,
}

impl From<&ConsultOutputFlags> for ConsultOutputFiles {
    fn from(flags: &ConsultOutputFlags) -> Self {
        let ConsultOutputFlags { memo, artifacts, files, json } = flags;
        let OutputFileFlags { receipt, events } = files;
        Self {
            receipt: receipt.clone(),
            events: events.clone(),
            memo: memo.clone(),
            artifacts: artifacts.clone(),
            json: *json,
        }
    }
}

/// Writes the requested files and reports the result of the run. A note before it may have
/// explained an isolation class.
pub(crate) async fn finish(
    context: &CommandContext,
    store: &dyn Store,
    run_id: &moothall_core::RunId,
    drive_result: &DriveResult,
    (outputs, announced): (&ConsultOutputFiles, Option<IsolationClass>),
) -> anyhow::Result<CliExit> {
    let record = RunRecord::read(store, run_id).await.map_err(run_store::store_error)?;
    let consultation = StoredConsultation::of(&record)?;
    let unsaved = write_files(&record, &consultation, outputs);
    let printed = print_result(context, &record, &consultation, drive_result, (outputs, announced));
    // The result is shown even if files cannot be written, because it is paid for.
    match (printed, unsaved) {
        (printed, Ok(())) => printed,
        (Ok(_), Err(unsaved)) => Err(unsaved),
        (Err(error), Err(unsaved)) => {
            terminal::show_error(&unsaved.into());
            Err(error)
        }
    }
}

fn write_files(
    record: &RunRecord,
    consultation: &StoredConsultation,
    outputs: &ConsultOutputFiles,
) -> anyhow::Result<()> {
    if let Some(path) = &outputs.events {
        files::write_events(path, record)?;
    }
    if let (Some(path), Some(receipt)) = (&outputs.receipt, record.receipt()) {
        files::write_receipt(path, &receipt)?;
    }
    // The memo of an unfinished run lists what is missing.
    if let Some(path) = &outputs.memo {
        fs_err::write(path, consultation.memo())
            .map_err(|error| CliError::failed("cannot write the memo").with_source(error))?;
    }
    if let (Some(folder), Some(_)) = (&outputs.artifacts, &record.row.outcome) {
        consultation.write_artifacts(folder)?;
    }
    Ok(())
}

fn print_result(
    context: &CommandContext,
    record: &RunRecord,
    consultation: &StoredConsultation,
    drive_result: &DriveResult,
    (outputs, announced): (&ConsultOutputFiles, Option<IsolationClass>),
) -> anyhow::Result<CliExit> {
    if outputs.json {
        terminal::print(&format!("{:#}\n", consultation.json(record, false)))?;
    } else if let DriveResult::Ended(RunExit::Done(_)) = drive_result {
        terminal::print(&summary::text(&consultation.view))?;
        print_footer(record, consultation, outputs, announced);
    }
    let run_id = &record.row.run_id;
    Err(match drive_result {
        DriveResult::Ended(RunExit::Done(outcome)) => {
            match failure_error(context, record, consultation, outcome) {
                Some(failure) => failure,
                None => {
                    return Ok(match outcome.verdict {
                        RunVerdict::Pass => CliExit::Fine,
                        RunVerdict::NeedsPerson => CliExit::NeedsPerson,
                        RunVerdict::Fail => CliExit::VerdictNegative,
                    });
                }
            }
        }
        DriveResult::Ended(RunExit::Paused(pause)) => {
            let message = pause_message(context, run_id, pause);
            let id = run_store::short_id(run_id);
            match (pause, &message.hint) {
                (RunPause::Budget(_), Some(raise)) => {
                    let hint = format!(
                        "{raise}, or read the results so far with `moothall show {id} --memo`"
                    );
                    message.with_hint(hint)
                }
                (RunPause::Question(_), _) => message.with_hint(format!(
                    "review the moves with `moothall moves {id}`, then run `moothall resume {id}`"
                )),
                _ => message,
            }
        }
        DriveResult::Ended(RunExit::Cancelled) => cancellation_message(run_id),
        DriveResult::Interrupted => interruption_message(run_id),
    }
    .into())
}

/// Prints the summary line and the commands for further details.
fn print_footer(
    record: &RunRecord,
    consultation: &StoredConsultation,
    outputs: &ConsultOutputFiles,
    announced: Option<IsolationClass>,
) {
    let outcome = consultation.view.outcome.as_ref();
    let passed = outcome.is_some_and(|outcome| outcome.verdict == RunVerdict::Pass);
    let style = if passed { GREEN } else { YELLOW };
    let word = outcome.map_or("not finished", display::verdict);
    let parts = figures(record, consultation, announced).join(" · ");
    let id = run_store::short_id(&record.row.run_id);
    terminal::note(&format!(
        "\n{style}{BOLD}{word}{BOLD:#}{style:#} {DIM}· {parts} · run {id}{DIM:#}\n"
    ));
    match &outputs.memo {
        Some(path) => terminal::note(&format!("{DIM}wrote {}{DIM:#}\n", here(path))),
        None => terminal::note(&format!("{DIM}read the memo: moothall show {id} --memo{DIM:#}\n")),
    }
    let held = consultation.view.ranked.as_ref().and_then(|ranked| {
        ranked.other.iter().find(|one| one.debated.is_some() && one.rank.is_none())
    });
    if let Some(held) = held {
        let move_id = display::line(&held.move_id);
        terminal::note(&format!(
            "{DIM}approve a move that is held back: moothall approve {id} --move {move_id}{DIM:#}\n"
        ));
    }
    let verdict = consultation.view.ranked.as_ref().and_then(|ranked| ranked.verdict.as_ref());
    if verdict.is_some_and(|verdict| verdict.is_failed() && !verdict.approved) && outcome.is_some()
    {
        terminal::note(&format!(
            "{DIM}accept the verdict anyway: moothall approve {id} --verdict --note REASON{DIM:#}\n"
        ));
    }
    terminal::note(&format!("{DIM}{NOT_ADVICE}{DIM:#}\n"));
}

/// Calls, tokens, cost, isolation, and the kind of run.
pub(crate) fn figures(
    record: &RunRecord,
    consultation: &StoredConsultation,
    announced: Option<IsolationClass>,
) -> Vec<String> {
    let facts = &consultation.facts;
    let beside = beside_calls(record);
    let own = facts.calls.saturating_sub(facts.extra_calls).saturating_sub(beside);
    let mut calls = format!("{own} calls");
    if beside > 0 {
        calls.push_str(&format!(" + {beside} for scores without a debate"));
    }
    if facts.extra_calls > 0 {
        calls.push_str(&format!(" + {} retried", facts.extra_calls));
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
                parts.push(format!("{} calls with unknown price", spent.unpriced_calls));
            }
        }
        None => parts.extend(facts.cost.map(cents)),
    }
    parts.extend(weakest(consultation, announced));
    if facts.demonstration {
        parts.push("demo model (scripted answers, no API call)".to_owned());
    }
    if consultation.is_fictional() {
        parts.push(FICTIONAL_LABEL.to_owned());
    }
    parts
}

/// The weakest isolation of any debate, with its reason unless that was announced.
fn weakest(consultation: &StoredConsultation, announced: Option<IsolationClass>) -> Option<String> {
    let classes = consultation.view.debates.values().filter_map(|debate| debate.isolation.as_ref());
    let weakest = classes.min_by_key(|isolation| isolation.class)?;
    let mut text = format!("debated in isolation class {}", weakest.class);
    if let (Some(why), true) = (&weakest.fallback, announced != Some(weakest.class)) {
        text.push_str(&format!(" ({})", display::line(why)));
    }
    Some(text)
}

/// Why there are no moves to rank, with a hint if the cause is known. `None` if there are moves.
fn failure_error(
    context: &CommandContext,
    record: &RunRecord,
    consultation: &StoredConsultation,
    outcome: &Outcome,
) -> Option<CliError> {
    if consultation.view.moves().next().is_some() {
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
                CliError::failed(format!("cannot gather evidence: {}", found.detail))
                    .with_hint("start the consultation again when the service is reachable"),
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
