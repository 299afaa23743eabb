//! What a run came to, for people and for programs.

use moothall_core::model::ModelName;
use moothall_core::{Conclusion, EffectResult, Outcome, RunEventBody, Severity, Verdict};
use moothall_engine::{Ended, Pause, RunRecord};
use serde_json::{Value, json};

use super::view::Audience;
use crate::artifacts::WrittenFiles;
use crate::commands::{attempts, failure, show};
use crate::context::Context;
use crate::display;
use crate::error::{CliError, Exit};
use crate::files;
use crate::local;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

pub(super) struct Report<'a> {
    pub(super) context: &'a Context,
    pub(super) model: &'a ModelName,
    pub(super) record: &'a RunRecord,
    pub(super) ended: &'a Ended,
    /// Files of the program, where they were wanted.
    pub(super) written: &'a WrittenFiles,
}

impl Report<'_> {
    /// Prints it, and says how the program ends.
    pub(super) fn print(&self, audience: Audience) -> anyhow::Result<Exit> {
        self.written.note_left_out();
        match audience {
            Audience::Person => self.print_text()?,
            Audience::Json => terminal::print(&format!("{:#}\n", self.json()))?,
            Audience::Stdio => terminal::print(&format!("{}\n", json!({"result": self.json()})))?,
        }
        match self.ended {
            Ended::Done(outcome) => match &outcome.conclusion {
                Conclusion::Failed { .. } | Conclusion::NotExecuted { .. } => {
                    Err(self.failure(outcome).into())
                }
                _ => Ok(match outcome.verdict {
                    Verdict::Pass => Exit::Fine,
                    Verdict::NeedsPerson => Exit::NeedsPerson,
                    Verdict::Fail => Exit::VerdictNegative,
                }),
            },
            Ended::Paused(pause) => Err(self.paused(pause).into()),
            Ended::Cancelled => {
                let id = &self.record.row.run_id;
                Err(CliError::new(Exit::Cancelled, format!("run {id} is cancelled")).into())
            }
        }
    }

    fn json(&self) -> Value {
        let mut report = show::run_json(self.record, false);
        if let Some(fields) = report.as_object_mut() {
            fields.insert("written".to_owned(), json!(self.written.written));
            fields.insert("not_written".to_owned(), json!(self.written.left_out));
        }
        report
    }

    /// The program's own output is the data; everything else is said about it.
    fn print_text(&self) -> anyhow::Result<()> {
        let Ended::Done(outcome) = self.ended else { return Ok(()) };
        if let Some(stdout) = self.stdout().filter(|stdout| !stdout.is_empty()) {
            terminal::print_answer(&files::with_line_break(stdout.to_owned()))?;
        }
        let word = display::verdict(outcome);
        let style = if outcome.verdict == Verdict::Pass { GREEN } else { YELLOW };
        let mut parts = Vec::new();
        let all = attempts::attempts(self.record);
        if !all.is_empty() {
            let plural = if all.len() == 1 { "" } else { "s" };
            parts.push(format!("{} attempt{plural}", all.len()));
        }
        if let Some(ran) = all.iter().rev().find_map(|one| one.executed.as_ref()) {
            parts.push(format!("{} on {}", ran.class, display::line(&ran.engine)));
        }
        parts.extend(self.record.row.spent.as_ref().map(display::spent));
        if self.model.is_demo() {
            parts.push("a demonstration, no model was asked".to_owned());
        }
        parts.push(format!("run {}", local::short(&self.record.row.run_id)));
        terminal::note(&format!(
            "{style}{BOLD}{word}{BOLD:#}{style:#} {DIM}· {}{DIM:#}\n",
            parts.join(" · ")
        ));
        for warning in attempts::isolation_warnings(self.record) {
            terminal::note(&format!("{YELLOW}{}{YELLOW:#}\n", display::line(&warning)));
        }
        if matches!(outcome.conclusion, Conclusion::Ran(_)) {
            terminal::note(&format!(
                "{DIM}nobody said what it had to do, so it cannot have passed: see --expect, --check and --leaves{DIM:#}\n"
            ));
        }
        for finding in outcome.findings.iter().filter(|one| one.severity >= Severity::Warn) {
            terminal::note(&format!("{YELLOW}{}{YELLOW:#}\n", display::finding(finding)));
        }
        self.note_files();
        Ok(())
    }

    fn note_files(&self) {
        let here = std::env::current_dir().unwrap_or_default();
        for path in &self.written.written {
            let shown = path.strip_prefix(&here).unwrap_or(path).display();
            terminal::note(&format!("{DIM}wrote {shown}{DIM:#}\n"));
        }
        let left = attempts::files(self.record).len();
        if *self.written == WrittenFiles::default() && left > 0 {
            let (id, plural) =
                (local::short(&self.record.row.run_id), if left == 1 { "" } else { "s" });
            terminal::note(&format!(
                "{DIM}it left {left} file{plural}: moothall show {id} --output DIR{DIM:#}\n"
            ));
        }
    }

    /// The whole of what the last program printed.
    fn stdout(&self) -> Option<&str> {
        let executed =
            self.record.events.iter().rev().find_map(|stored| match &stored.event.body {
                RunEventBody::Executed { effect_id, .. }
                    if !effect_id.as_str().ends_with("/check") =>
                {
                    Some(effect_id)
                }
                _ => None,
            })?;
        match &self.record.journal.get(executed)?.result {
            EffectResult::Executed(execution) => Some(&execution.stdout.text),
            _ => None,
        }
    }

    /// Why the run could not come to a verdict, with the cure where we know it.
    fn failure(&self, outcome: &Outcome) -> CliError {
        let results = self.record.journal.values().map(|entry| &entry.result);
        for result in results {
            match result {
                EffectResult::ModelFailed(found) if matches!(&outcome.conclusion, Conclusion::Failed { kind } if *kind == found.kind) =>
                {
                    return failure::of_call(self.context, self.model, found);
                }
                EffectResult::NotExecuted(found) if matches!(&outcome.conclusion, Conclusion::NotExecuted { kind } if *kind == found.kind) =>
                {
                    let words = format!("the program could not be run: {found}");
                    return CliError::failed(words)
                        .with_hint("`moothall doctor` shows what works on this machine");
                }
                _ => {}
            }
        }
        CliError::failed("the run failed")
    }

    fn paused(&self, pause: &Pause) -> CliError {
        let id = local::short(&self.record.row.run_id);
        match pause {
            Pause::Budget(found) => {
                let flag = match found.detail.contains("tokens") {
                    true => "--budget-tokens N",
                    false => "--budget USD",
                };
                let words = format!("run {id} is paused ({found})");
                CliError::new(Exit::BudgetStopped, words)
                    .with_hint(format!("let it go on with more: `moothall resume {id} {flag}`"))
            }
            Pause::Failure(model, found) => {
                failure::of_pause(self.context, model, found, &self.record.row.run_id)
            }
            Pause::Question(words) => {
                CliError::new(Exit::NeedsPerson, format!("run {id} is paused: {words}"))
                    .with_hint(format!("let it go on: `moothall resume {id}`"))
            }
            Pause::Person => {
                CliError::new(Exit::NeedsPerson, format!("run {id} is paused, as somebody asked"))
                    .with_hint(format!("let it go on: `moothall resume {id}`"))
            }
        }
    }
}
