//! What came of it, for people and for programs.

use moothall_core::EditSpec;
use moothall_core::drafts::State;
use moothall_core::edit::Edited;
use moothall_core::{Conclusion, EffectResult, Outcome, Severity, Verdict};
use moothall_engine::{Ended, Pause, RunRecord};
use serde_json::{Value, json};

use crate::commands::run::Audience;
use crate::commands::{failure, runs};
use crate::context::Context;
use crate::display;
use crate::error::{CliError, Exit};
use crate::local;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

pub(super) struct Report<'a> {
    pub(super) context: &'a Context,
    pub(super) spec: &'a EditSpec,
    pub(super) record: &'a RunRecord,
    pub(super) ended: &'a Ended,
}

impl Report<'_> {
    /// Prints it, and says how the program ends.
    pub(super) fn print(&self, audience: Audience) -> anyhow::Result<Exit> {
        match audience {
            Audience::Person => self.print_text()?,
            Audience::Json | Audience::Stdio => terminal::print(&format!("{:#}\n", self.json()))?,
        }
        let id = local::short(&self.record.row.run_id);
        match self.ended {
            Ended::Done(outcome) => match &outcome.conclusion {
                Conclusion::Failed { .. } => Err(self.failure(outcome).into()),
                _ => Ok(match outcome.verdict {
                    Verdict::Pass => Exit::Fine,
                    Verdict::NeedsPerson => Exit::NeedsPerson,
                    Verdict::Fail => Exit::VerdictNegative,
                }),
            },
            Ended::Paused(Pause::Budget(found)) => {
                let words = format!("run {id} is paused ({found})");
                let hint = format!("let it go on with more: `moothall resume {id} --budget USD`");
                Err(CliError::new(Exit::BudgetStopped, words).with_hint(hint).into())
            }
            Ended::Paused(Pause::Failure(model, found)) => {
                let run_id = &self.record.row.run_id;
                Err(failure::of_pause(self.context, model, found, run_id).into())
            }
            Ended::Paused(Pause::Person | Pause::Question(_)) => {
                let words = format!("run {id} is paused");
                let hint = format!("let it go on: `moothall resume {id}`");
                Err(CliError::new(Exit::NeedsPerson, words).with_hint(hint).into())
            }
            Ended::Cancelled => {
                Err(CliError::new(Exit::Cancelled, format!("run {id} is cancelled")).into())
            }
        }
    }

    fn edited(&self) -> Option<&Edited> {
        match self.ended {
            Ended::Done(Outcome { conclusion: Conclusion::Edited(edited), .. }) => Some(edited),
            _ => None,
        }
    }

    fn json(&self) -> Value {
        let mut report = runs::run_json(&self.record.row, false);
        let outcome = self.record.row.outcome.as_ref();
        let more = json!({
            "edited": self.edited(),
            "findings": outcome.map(|outcome| &outcome.findings),
            "latency_ms": self.record.timing().latency_ms,
        });
        if let (Value::Object(report), Value::Object(more)) = (&mut report, more) {
            report.extend(more);
        }
        report
    }

    /// The files that were changed are the data; everything else is said about them.
    fn print_text(&self) -> anyhow::Result<()> {
        let Ended::Done(outcome) = self.ended else { return Ok(()) };
        let Some(edited) = self.edited() else { return Ok(()) };
        if edited.state == Some(State::Applied) {
            let paths: String = edited.paths.iter().map(|path| format!("{path}\n")).collect();
            terminal::print(&paths)?;
        }
        let style = if outcome.verdict == Verdict::Pass { GREEN } else { YELLOW };
        let plural = if edited.attempts == 1 { "" } else { "s" };
        let mut parts = vec![format!("{} attempt{plural}", edited.attempts)];
        parts.extend(self.record.row.spent.as_ref().map(display::spent));
        if self.spec.input.model.is_demo() {
            parts.push("a demonstration, no model was asked".to_owned());
        }
        parts.push(format!("run {}", local::short(&self.record.row.run_id)));
        let (word, parts) = (display::verdict(outcome), parts.join(" · "));
        terminal::note(&format!("{style}{BOLD}{word}{BOLD:#}{style:#} {DIM}· {parts}{DIM:#}\n"));
        if !edited.summary.is_empty() {
            let summary = display::line(&edited.summary);
            terminal::note(&format!("{DIM}the model says: {summary}{DIM:#}\n"));
        }
        for finding in outcome.findings.iter().filter(|one| one.severity >= Severity::Warn) {
            let (subject, words) = (display::line(&finding.subject), display::finding(finding));
            terminal::note(&format!("{YELLOW}{subject}: {words}{YELLOW:#}\n"));
        }
        if self.spec.input.model.is_demo() && edited.state.is_none() {
            terminal::note(&format!(
                "{DIM}the demonstration can play one task: adding --version to a Python program{DIM:#}\n"
            ));
        }
        if let (Some(State::Escalated), Some(draft)) = (edited.state, edited.drafts.first()) {
            let folder = self.spec.workspace.display();
            terminal::note(&format!(
                "{DIM}a person decides: moothall review show {draft} --workspace {folder}{DIM:#}\n"
            ));
        }
        Ok(())
    }

    fn failure(&self, outcome: &Outcome) -> CliError {
        let results = self.record.journal.values().map(|entry| &entry.result);
        for result in results {
            match result {
                EffectResult::ModelFailed(found) if matches!(&outcome.conclusion, Conclusion::Failed { kind } if *kind == found.kind) =>
                {
                    return failure::of_call(self.context, &self.spec.input.model, found);
                }
                _ => {}
            }
        }
        CliError::failed("the run failed")
    }
}
