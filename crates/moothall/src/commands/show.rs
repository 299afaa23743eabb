//! `moothall show`: prints one run.

use std::fmt::Write as _;

use moothall_core::RunKind;
use moothall_core::model::ModelName;
use moothall_core::receipt::Receipt;
use moothall_core::view::{AttemptView, CostPart};
use moothall_core::{RunEventBody, RunVerdict};
use moothall_engine::RunRecord;
use moothall_store::RunState;
use serde_json::{Value, json};

use super::attempts;
use super::{consult, runs, runtime};
use crate::args::{GlobalArgs, ShowArgs};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::files;
use crate::run_store::{self, open_and_find};
use crate::terminal::{self, DIM};
use crate::{config, logging};

pub(crate) fn run(global: &GlobalArgs, args: &ShowArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let record =
            RunRecord::read(&*local.store, &row.run_id).await.map_err(run_store::store_error)?;
        let is_driven = !row.state.is_terminal() && local.is_driven(&row).await?;
        if let Some(path) = &args.receipt {
            files::write_receipt(path, &receipt(&record)?)?;
        }
        if row.spec.is_kind(RunKind::Consult) {
            refuse_flags_of_run(args)?;
            let parent = match runs::parent(&row) {
                Some(parent) => {
                    local.store.run(&parent.run).await.map_err(run_store::store_error)?
                }
                None => None,
            };
            return consult::show(&record, parent.as_ref(), is_driven, args);
        }
        refuse_flags_of_consult(args)?;
        if let Some(folder) = &args.output {
            let left = attempts::files(&record);
            let done = files::write_artifacts(&*local.store, &row.run_id, &left, folder).await?;
            done.report_skipped();
        }
        if args.code {
            let code = attempts::code(&record).ok_or_else(|| {
                let id = run_store::short_id(&row.run_id);
                CliError::usage(format!("run {} has no program", row.run_id))
                    .with_hint(format!("see its state with `moothall show {id}`"))
            })?;
            terminal::print_answer(&files::with_line_break(code))?;
        } else if args.json {
            terminal::print(&format!("{:#}\n", run_json(&record, is_driven)))?;
        } else {
            terminal::print(&text(&record, is_driven))?;
        }
        Ok(CliExit::Fine)
    })
}

pub(crate) fn receipt(record: &RunRecord) -> Result<Receipt, CliError> {
    let run_id = &record.row.run_id;
    record.receipt().ok_or_else(|| {
        CliError::usage(format!("run {run_id} has no receipt because it is not finished"))
            .with_hint("a receipt is written when the run ends")
    })
}

fn refuse_flags_of_run(args: &ShowArgs) -> Result<(), CliError> {
    let given = [(args.code, "--code"), (args.output.is_some(), "--output")];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => Err(CliError::usage(format!(
            "`{flag}` applies to programs, but this run is a consultation"
        ))
        .with_hint("use `--memo`, `--move` or `--artifacts`")),
        None => Ok(()),
    }
}

fn refuse_flags_of_consult(args: &ShowArgs) -> Result<(), CliError> {
    let given = [
        (args.memo, "--memo"),
        (args.move_id.is_some(), "--move"),
        (args.artifacts.is_some(), "--artifacts"),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => Err(CliError::usage(format!(
            "`{flag}` applies to consultations, but this run is a program"
        ))
        .with_hint("use `--code` or `--output`")),
        None => Ok(()),
    }
}

/// The JSON output for one run.
pub(crate) fn run_json(record: &RunRecord, is_driven: bool) -> Value {
    let mut report = runs::run_json(&record.row, is_driven);
    let attempted = attempts::attempted(record);
    let left: Vec<Value> = attempts::files(record)
        .iter()
        .map(|(path, file)| json!({"path": path, "sha256": file.sha256, "bytes": file.bytes}))
        .collect();
    let all = attempts::attempts(record);
    let more = json!({
        "isolation": all.iter().rev().find_map(|one| one.executed.as_ref()).map(|ran| ran.class),
        "attempts": all.iter().map(attempts::attempt_json).collect::<Vec<_>>(),
        "findings": record.row.outcome.as_ref().map(|outcome| &outcome.findings),
        "exit": attempted.and_then(|attempted| attempted.exit.as_ref()),
        "stdout": attempted.map(|attempted| &attempted.stdout),
        "stderr": attempted.map(|attempted| &attempted.stderr),
        "code": attempts::code(record),
        "artifacts": left,
        "input": record.row.spec,
        "latency_ms": record.timing().latency_ms,
        "costs": record.costs(),
    });
    if let (Value::Object(report), Value::Object(more)) = (&mut report, more) {
        report.extend(more);
        let warnings = attempts::isolation_warnings(record);
        if !warnings.is_empty() {
            report.insert("isolation_warnings".to_owned(), json!(warnings));
        }
    }
    report
}

/// Fields that all kinds of runs have.
pub(crate) fn head(record: &RunRecord, is_driven: bool) -> Vec<(&'static str, String)> {
    let row = &record.row;
    let demonstration = match row.model.parse::<ModelName>() {
        Ok(model) if model.is_demo() => " (demo model: scripted answers, no API call)",
        _ => "",
    };
    let (workflow, model) = (display::line(row.spec.workflow()), display::line(&row.model));
    let paused = record.events.iter().rev().find_map(|stored| match &stored.event.body {
        RunEventBody::RunPaused { detail, .. } if row.state == RunState::Paused => Some(detail),
        _ => None,
    });
    let state = display::state(row, is_driven);
    let state = match paused {
        Some(detail) => display::line(&format!("{state}: {detail}")),
        None => state.to_owned(),
    };
    vec![
        ("run", row.run_id.to_string()),
        ("title", display::line(&row.title)),
        ("workflow", format!("{workflow} with {model}{demonstration}")),
        ("state", state),
        ("started", display::time(row.created_at_ms)),
        ("changed", display::time(row.updated_at_ms)),
    ]
}

/// The cost by role, stage and model; nothing if no call was answered.
pub(crate) fn cost_lines(record: &RunRecord) -> Vec<(&'static str, String)> {
    let part = |part: &CostPart| {
        let (name, calls) = (display::line(&part.name), part.calls);
        let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
        format!("{name} {} ({calls})", part.cost_text())
    };
    let costs = record.costs();
    let divisions = costs.divisions().into_iter().filter(|(_, parts)| !parts.is_empty());
    divisions
        .map(|(title, parts)| (title, parts.iter().map(part).collect::<Vec<_>>().join(" · ")))
        .collect()
}

fn text(record: &RunRecord, is_driven: bool) -> String {
    let row = &record.row;
    let mut text = String::new();
    let mut field = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<10} {value}");
    };
    for (name, value) in head(record, is_driven) {
        field(name, &value);
    }
    for attempt in attempts::attempts(record) {
        for (number, line) in attempt_lines(&attempt).iter().enumerate() {
            let name =
                if number == 0 { format!("attempt {}", attempt.attempt) } else { String::new() };
            field(&name, line);
        }
    }
    if let Some(outcome) = &row.outcome {
        field("verdict", display::verdict(outcome));
        for finding in &outcome.findings {
            field("finding", &display::finding(finding));
        }
    }
    for (path, file) in attempts::files(record) {
        let (size, sha256) = (display::bytes(file.bytes), file.sha256);
        field("file", &format!("{} · {size} · {sha256}", display::line(path.as_str())));
    }
    if let Some(spent) = &row.spent {
        field("spent", &display::spent(spent));
    }
    for (title, parts) in cost_lines(record) {
        field(title, &parts);
    }
    let id = run_store::short_id(&row.run_id);
    if row.state == RunState::Paused || (row.state == RunState::Running && !is_driven) {
        let _ = writeln!(text, "{DIM}continue it: moothall resume {id}{DIM:#}");
    } else if !attempts::files(record).is_empty() {
        let _ = writeln!(text, "{DIM}write the files: moothall show {id} --output DIR{DIM:#}");
    }
    text
}

fn attempt_lines(attempt: &AttemptView) -> Vec<String> {
    let mut lines = Vec::new();
    if !attempt.rejected.is_empty() {
        lines.push(display::line(&format!("answer rejected: {}", attempt.rejected.join("; "))));
    }
    if let Some(program) = &attempt.program {
        lines.push(display::lines_of_code(program.code_lines));
    }
    for (what, executed) in [("ran", &attempt.executed), ("checked", &attempt.checked)] {
        if let Some(executed) = executed {
            let (engine, class) = (display::line(&executed.engine), executed.class);
            lines.push(format!("{what} in {engine} ({class}): {}", display::exit(&executed.exit)));
        }
    }
    if let Some(findings) = &attempt.findings {
        lines.push(match findings.is_empty() {
            true => "checked: no findings".to_owned(),
            false => format!("checked: {}", RunVerdict::of(findings)),
        });
        lines.extend(findings.iter().map(display::finding));
    }
    if let Some(critique) = &attempt.critique {
        lines.push(display::line(&format!("critique: {critique}")));
    }
    if lines.is_empty() {
        lines.push("not started".to_owned());
    }
    lines
}
