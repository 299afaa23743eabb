//! Reports the result of an edit run as text or JSON.

use moothall_core::EditSpec;
use moothall_core::drafts::DraftState;
use moothall_core::edit::EditResult;
use moothall_core::{Conclusion, EffectResult, FindingSeverity, Outcome, RunVerdict};
use moothall_engine::{RunExit, RunRecord};
use serde_json::{Value, json};

use crate::commands::pausable_run::{
    DriveResult, cancellation_message, interruption_message, pause_message,
};
use crate::commands::run::RunOutputMode;
use crate::commands::{failure, runs};
use crate::context::CommandContext;
use crate::display;
use crate::error::{CliError, CliExit};
use crate::run_store;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

pub(crate) struct EditReport<'a> {
    pub(crate) context: &'a CommandContext,
    pub(crate) spec: &'a EditSpec,
    pub(crate) record: &'a RunRecord,
    pub(crate) ended: &'a DriveResult,
}

impl EditReport<'_> {
    /// Prints the report and returns the exit code.
    pub(crate) fn print(&self, audience: RunOutputMode) -> anyhow::Result<CliExit> {
        match audience {
            RunOutputMode::Person => self.print_text()?,
            RunOutputMode::Json | RunOutputMode::Stdio => {
                terminal::print(&format!("{:#}\n", self.json()))?
            }
        }
        let run_id = &self.record.row.run_id;
        match self.ended {
            DriveResult::Ended(RunExit::Done(outcome)) => match &outcome.conclusion {
                Conclusion::Failed { .. } => Err(self.failure(outcome).into()),
                _ => Ok(match outcome.verdict {
                    RunVerdict::Pass => CliExit::Fine,
                    RunVerdict::NeedsPerson => CliExit::NeedsPerson,
                    RunVerdict::Fail => CliExit::VerdictNegative,
                }),
            },
            DriveResult::Ended(RunExit::Paused(pause)) => {
                Err(pause_message(self.context, run_id, pause).into())
            }
            DriveResult::Ended(RunExit::Cancelled) => Err(cancellation_message(run_id).into()),
            DriveResult::Interrupted => Err(interruption_message(run_id).into()),
        }
    }

    fn edited(&self) -> Option<&EditResult> {
        match self.ended {
            DriveResult::Ended(RunExit::Done(Outcome {
                conclusion: Conclusion::Edited(edited),
                ..
            })) => Some(edited),
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

    /// Changed files go to standard output, everything else to standard error.
    fn print_text(&self) -> anyhow::Result<()> {
        let DriveResult::Ended(RunExit::Done(outcome)) = self.ended else { return Ok(()) };
        let Some(edited) = self.edited() else { return Ok(()) };
        if edited.state == Some(DraftState::Applied) {
            let paths: String = edited.paths.iter().map(|path| format!("{path}\n")).collect();
            terminal::print(&paths)?;
        }
        let style = if outcome.verdict == RunVerdict::Pass { GREEN } else { YELLOW };
        let plural = if edited.attempts == 1 { "" } else { "s" };
        let mut parts = vec![format!("{} attempt{plural}", edited.attempts)];
        parts.extend(self.record.row.spent.as_ref().map(display::spent));
        if self.spec.input.model.first().is_demo() {
            parts.push("demo model (scripted answers, no API call)".to_owned());
        }
        parts.push(format!("run {}", run_store::short_id(&self.record.row.run_id)));
        let (word, parts) = (display::verdict(outcome), parts.join(" · "));
        terminal::note(&format!("{style}{BOLD}{word}{BOLD:#}{style:#} {DIM}· {parts}{DIM:#}\n"));
        if !edited.summary.is_empty() {
            let summary = display::line(&edited.summary);
            terminal::note(&format!("{DIM}summary by the model: {summary}{DIM:#}\n"));
        }
        for finding in outcome.findings.iter().filter(|one| one.severity >= FindingSeverity::Warn) {
            let (subject, message) = (display::line(&finding.subject), display::finding(finding));
            terminal::note(&format!("{YELLOW}{subject}: {message}{YELLOW:#}\n"));
        }
        if let (Some(DraftState::Escalated), Some(draft)) = (edited.state, edited.drafts.first()) {
            let folder = self.spec.workspace.display();
            terminal::note(&format!(
                "{DIM}review it: moothall review show {draft} --workspace {folder}{DIM:#}\n"
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
                    return failure::of_call(self.context, self.spec.input.model.first(), found);
                }
                _ => {}
            }
        }
        CliError::failed("the run failed")
    }
}
