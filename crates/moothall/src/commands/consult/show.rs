//! `moothall show` for a consultation.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use moothall_core::consult::{DO_NOTHING_ID, MoveReview, RankedMove, fork_changes, group_by_model};
use moothall_core::debate::{CalculationResult, DebateResult, Scorecard};
use moothall_core::report::VerdictSummary;
use moothall_engine::RunRecord;
use moothall_store::{RunRow, RunState};
use serde_json::{Value, json};

use super::report::figures;
use super::stored_consultation::StoredConsultation;
use super::summary::{self, NOT_ADVICE};
use crate::args::ShowArgs;
use crate::commands::show;
use crate::display;
use crate::error::{CliError, CliExit};
use crate::files;
use crate::run_store;
use crate::terminal::{self, DIM};

pub(crate) fn show(
    record: &RunRecord,
    parent: Option<&RunRow>,
    is_driven: bool,
    args: &ShowArgs,
) -> anyhow::Result<CliExit> {
    let consultation = StoredConsultation::of(record)?;
    if let Some(folder) = &args.artifacts {
        let written = consultation.write_artifacts(folder)?;
        let (many, folder) = (written.len(), folder.display());
        terminal::note(&format!("{DIM}wrote {many} documents to {folder}{DIM:#}\n"));
    }
    match (&args.move_id, &args.thread) {
        (Some(move_id), Some(thread)) => {
            let transcript = consultation.transcript(move_id, thread)?;
            if args.json {
                print_thread(&consultation, move_id, thread)?;
            } else {
                terminal::print_answer(&files::with_line_break(transcript))?;
            }
        }
        (Some(move_id), None) if args.json => {
            terminal::print(&format!("{:#}\n", move_json(&consultation, move_id)?))?;
        }
        (Some(move_id), None) => terminal::print_answer(&move_text(&consultation, move_id)?)?,
        (None, _) if args.memo => {
            terminal::print_answer(&files::with_line_break(consultation.memo()))?;
        }
        (None, _) if args.json => {
            terminal::print(&format!("{:#}\n", consultation.json(record, is_driven)))?;
        }
        (None, _) => terminal::print(&text(record, &consultation, parent, is_driven))?,
    }
    Ok(CliExit::Fine)
}

/// The parent of a fork and the settings that differ. A deleted parent is `None`.
fn fork_lines(consultation: &StoredConsultation, parent: Option<&RunRow>) -> Vec<String> {
    let input = &consultation.spec.input;
    let Some(fork) = &input.parent else { return Vec::new() };
    let mut lines = vec![format!("{} from the {}", fork.run, fork.from)];
    let before = parent.and_then(|row| row.spec.consult());
    let changes = before.map(|before| fork_changes(&before.input, input)).unwrap_or_default();
    lines.extend(changes.iter().map(|change| {
        let value = |text: &str| match text {
            "" => "none".to_owned(),
            text => display::cut(text, 60),
        };
        let (before, after) = (value(&change.before), value(&change.after));
        format!("{}: {before} → {after}", change.setting)
    }));
    lines
}

fn text(
    record: &RunRecord,
    consultation: &StoredConsultation,
    parent: Option<&RunRow>,
    is_driven: bool,
) -> String {
    let mut text = String::new();
    for (name, value) in show::head(record, is_driven) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<10} {value}");
    }
    for (number, line) in fork_lines(consultation, parent).iter().enumerate() {
        let name = if number == 0 { "fork of" } else { "" };
        let _ = writeln!(text, "{name:<10} {line}");
    }
    if let Some(outcome) = &consultation.view.outcome {
        let _ =
            writeln!(text, "{:<10} {} ({})", "verdict", display::verdict(outcome), outcome.verdict);
    }
    let input = &consultation.spec.input;
    if input.distinct_models().len() > 1 {
        let models = group_by_model(&input.member_models());
        let _ = writeln!(text, "{:<10} {}", "models", display::line(&models));
    }
    for one in &consultation.facts.fallbacks {
        let _ = writeln!(text, "{:<10} {}", "fallback", display::line(&one.describe()));
    }
    for (file, sha256) in input.receipt_texts() {
        let _ = writeln!(text, "{:<10} {} sha256 {sha256}", "text", display::line(&file));
    }
    let _ = writeln!(text, "{:<10} {}", "figures", figures(record, consultation, None).join(" · "));
    for (title, parts) in show::cost_lines(record) {
        let _ = writeln!(text, "{title:<10} {parts}");
    }
    let said = record.journal.values().filter_map(|entry| MoveReview::of(&entry.result));
    let inherited = consultation.spec.input.inherited_review();
    for change in inherited.into_iter().chain(said).flat_map(|review| &review.changes) {
        let (description, at) = (display::line(&change.describe()), display::time(change.at_ms));
        let _ = writeln!(text, "{:<10} {description} at {at}", "changed");
    }
    for approval in &record.approvals {
        let (who, note) = (display::line(&approval.by), display::line(&approval.note));
        let note = if note.is_empty() { note } else { format!(": {note}") };
        let _ = writeln!(
            text,
            "{:<10} {} by {who} at {}{note}",
            "approved",
            display::line(&approval.move_id),
            display::time(approval.at_ms)
        );
    }
    let _ = writeln!(text, "\n{}", summary::text(&consultation.view).trim_end());
    let id = run_store::short_id(&record.row.run_id);
    let is_stopped = record.row.state == RunState::Paused
        || (record.row.state == RunState::Running && !is_driven);
    let _ = match is_stopped {
        true if record.waits_for_person() => writeln!(
            text,
            "\n{DIM}review the moves: moothall moves {id}\n\
             continue the run: moothall resume {id}{DIM:#}"
        ),
        true => writeln!(text, "\n{DIM}continue the run: moothall resume {id}{DIM:#}"),
        false => writeln!(
            text,
            "\n{DIM}details: moothall show {id} --memo, --move m1, --move m1 --thread D1{DIM:#}"
        ),
    };
    let _ = writeln!(text, "{DIM}{NOT_ADVICE}{DIM:#}");
    text
}

/// Finds a move and, if it is ranked, its ranking.
fn find_move<'a>(
    consultation: &'a StoredConsultation,
    move_id: &str,
) -> Result<(&'a moothall_core::consult::Move, Option<&'a RankedMove>), CliError> {
    let one = consultation.view.find_move(move_id).ok_or_else(|| {
        let refused = CliError::usage(format!("no move `{}`", display::line(move_id)));
        let ids: Vec<&str> = consultation.view.moves().map(|one| one.move_id.as_str()).collect();
        match ids.is_empty() {
            true => refused.with_hint("no moves have been proposed yet"),
            false => refused.with_hint(format!("available moves: {}", ids.join(", "))),
        }
    })?;
    let ranked = consultation.view.ranked.as_ref();
    Ok((one, ranked.and_then(|ranked| ranked.moves().find(|one| one.move_id == move_id))))
}

fn move_json(consultation: &StoredConsultation, move_id: &str) -> Result<Value, CliError> {
    let (one, ranked) = find_move(consultation, move_id)?;
    let all = consultation.view.ranked.as_ref();
    let rank = all.and_then(|all| all.meaningful_rank(move_id));
    let ranked = ranked.map(|one| RankedMove { rank, ..one.clone() });
    let debate = consultation.view.debates.get(move_id);
    Ok(json!({
        "move_id": one.move_id,
        "analyst": one.analyst,
        "proposal": one.proposal,
        "content": one.markdown(),
        "ranked": ranked,
        "isolation": debate.and_then(|debate| debate.isolation.as_ref()),
        "conversation_logs": debate.map(|debate| &debate.logs),
    }))
}

fn print_thread(
    consultation: &StoredConsultation,
    move_id: &str,
    thread: &str,
) -> Result<(), CliError> {
    let log = consultation.log_name(thread);
    let debate = consultation.view.debates.get(move_id);
    let entries = debate.and_then(|debate| debate.logs.get(&log));
    let printed = json!({ "move_id": move_id, "thread": thread, "log": entries });
    terminal::print(&format!("{printed:#}\n"))
        .map_err(|error| CliError::failed("cannot write to standard output").with_source(error))
}

/// The move, then its scores, objections and findings.
fn move_text(consultation: &StoredConsultation, move_id: &str) -> Result<String, CliError> {
    let (one, ranked) = find_move(consultation, move_id)?;
    let mut text = files::with_line_break(one.markdown());
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n## Evaluation");
    let do_nothing =
        consultation.view.ranked.as_ref().and_then(|ranked| ranked.do_nothing.as_ref());
    let verdict = VerdictSummary::of(&consultation.view);
    let verdict_line = verdict.and_then(|verdict| verdict.move_line(move_id));
    if let (DO_NOTHING_ID, Some(do_nothing)) = (move_id, do_nothing) {
        let score = match do_nothing.is_scored() {
            true => format!("{}/{}", do_nothing.total_score, do_nothing.top_score),
            false => "not scored".to_owned(),
        };
        let debated = match &verdict_line {
            Some(line) => {
                let _ = writeln!(text, "- {line}");
                "without its debate"
            }
            None => "not debated",
        };
        let _ = writeln!(text, "- {score}, score range {}, {debated}", do_nothing.spread);
        let _ = write_cards(&mut text, &do_nothing.scorecards);
        return Ok(text);
    }
    let Some(ranked) = ranked else {
        let _ = writeln!(text, "not ranked yet");
        return Ok(text);
    };
    let place = match (verdict_line, ranked.rank) {
        // A rank would order moves of the same tier.
        (Some(line), _) => line,
        (None, Some(rank)) => format!("rank {rank}"),
        (None, None) => "not ranked".to_owned(),
    };
    let _ = writeln!(text, "- {place}");
    if let Some(class) = ranked.isolation {
        let _ = writeln!(text, "- debated in isolation class {class}");
    }
    let support = ranked.support;
    let _ = writeln!(text, "- {} of {} numbers supported", support.supported, support.total);
    for mark in summary::marks(&consultation.view, ranked) {
        let _ = writeln!(text, "- {mark}");
    }
    if let Some(debated) = &ranked.debated {
        let _ = write_debate(&mut text, debated);
    }
    if !ranked.findings.is_empty() {
        let _ = writeln!(text, "\n### Findings");
        for finding in &ranked.findings {
            let _ = writeln!(text, "- {}", display::finding(finding));
        }
    }
    let members = &consultation.spec.input.committee.decision_makers;
    if let Some(first) = members.first() {
        let _ = writeln!(text, "\nTo read a debate, add --move {move_id} --thread {}", first.id);
    }
    Ok(text)
}

fn write_debate(text: &mut String, debated: &DebateResult) -> std::fmt::Result {
    let DebateResult { spread, rounds_done, rounds, .. } = debated;
    let score = debated.score_text();
    writeln!(text, "- {score}, score range {spread}, {rounds_done} of {rounds} rounds")?;
    write_cards(text, &debated.scorecards)?;
    writeln!(text, "\n### Objections")?;
    for objection in &debated.objections {
        let (severity, state) = (objection.severity.word(), objection.state.word());
        let (id, said) = (display::line(&objection.id), display::cut(&objection.text, 1000));
        writeln!(text, "- {id}, {severity}, {state}: {said}")?;
    }
    write_calculations(text, &debated.calculations)
}

/// The calculations with their programs.
fn write_calculations(text: &mut String, calculations: &[CalculationResult]) -> std::fmt::Result {
    if calculations.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n### Calculations")?;
    for one in calculations {
        let (id, speaker) = (display::line(&one.id), display::line(&one.speaker));
        let purpose = display::cut(&one.purpose, 300);
        writeln!(text, "- {id}, {speaker}, round {}: {purpose}", one.round)?;
        writeln!(text, "  {}", display::cut(&one.outcome_text(), 1000))?;
        let basis = one.basis_text();
        if !basis.is_empty() {
            writeln!(text, "  {}", display::cut(&basis, 1000))?;
        }
        writeln!(text, "  program, sha256 {}:", one.code_sha256)?;
        for line in one.code.lines() {
            writeln!(text, "      {}", moothall_core::text::sanitize_line(line))?;
        }
    }
    Ok(())
}

fn write_cards(text: &mut String, cards: &BTreeMap<String, Scorecard>) -> std::fmt::Result {
    writeln!(text, "\n### Scores")?;
    for (member, card) in cards {
        if !card.is_given() {
            writeln!(text, "- {}: not scored", display::line(member))?;
            continue;
        }
        let scores: Vec<String> =
            card.scores.iter().map(|(metric, score)| format!("{metric} {score}")).collect();
        let (member, scores) = (display::line(member), display::line(&scores.join(", ")));
        writeln!(text, "- {member}: {} ({scores})", card.sum())?;
        if !card.reasoning.trim().is_empty() {
            writeln!(text, "  {}", display::cut(&card.reasoning, 1000))?;
        }
    }
    Ok(())
}
