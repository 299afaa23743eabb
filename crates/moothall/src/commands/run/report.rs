//! Reports the result of a program run as text or JSON.

use moothall_core::model::ModelName;
use moothall_core::sandbox::SandboxFailureKind;
use moothall_core::text::sanitize_line;
use moothall_core::{
    Conclusion, EffectResult, FindingSeverity, Outcome, RunEventBody, RunFinding, RunVerdict,
};
use moothall_engine::{RunExit, RunRecord};
use serde_json::{Value, json};

use super::view::RunOutputMode;
use crate::artifacts::WrittenFiles;
use crate::commands::pausable_run::{
    DriveResult, cancellation_message, interruption_message, pause_message,
};
use crate::commands::{attempts, failure, show};
use crate::context::CommandContext;
use crate::display;
use crate::error::{CliError, CliExit};
use crate::files;
use crate::run_store;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// Limit for a line of output beside a finding.
const MAX_SHOWN_CHARS: usize = 160;

pub(crate) struct ProgramReport<'a> {
    pub(crate) context: &'a CommandContext,
    pub(crate) model: &'a ModelName,
    pub(crate) record: &'a RunRecord,
    pub(crate) ended: &'a DriveResult,
    /// Files of the program, if requested.
    pub(crate) written: &'a WrittenFiles,
}

impl ProgramReport<'_> {
    /// Prints the report and returns the exit code.
    pub(crate) fn print(&self, audience: RunOutputMode) -> anyhow::Result<CliExit> {
        self.written.report_skipped();
        match audience {
            RunOutputMode::Person => self.print_text()?,
            RunOutputMode::Json => terminal::print(&format!("{:#}\n", self.json()))?,
            RunOutputMode::Stdio => {
                terminal::print(&format!("{}\n", json!({"result": self.json()})))?
            }
        }
        let run_id = &self.record.row.run_id;
        match self.ended {
            DriveResult::Ended(RunExit::Done(outcome)) => match &outcome.conclusion {
                Conclusion::Failed { .. } | Conclusion::NotExecuted { .. } => {
                    Err(self.failure(outcome).into())
                }
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

    fn json(&self) -> Value {
        let mut report = show::run_json(self.record, false);
        if let Some(fields) = report.as_object_mut() {
            fields.insert("written".to_owned(), json!(self.written.written));
            fields.insert("not_written".to_owned(), json!(self.written.skipped));
        }
        report
    }

    /// The program's output goes to standard output, everything else to standard error.
    fn print_text(&self) -> anyhow::Result<()> {
        let DriveResult::Ended(RunExit::Done(outcome)) = self.ended else { return Ok(()) };
        if let Some(stdout) = self.stdout().filter(|stdout| !stdout.is_empty()) {
            terminal::print_answer(&files::with_line_break(stdout.to_owned()))?;
        }
        let word = display::verdict(outcome);
        let style = if outcome.verdict == RunVerdict::Pass { GREEN } else { YELLOW };
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
            parts.push("demo model (scripted answers, no API call)".to_owned());
        }
        parts.push(format!("run {}", run_store::short_id(&self.record.row.run_id)));
        terminal::note(&format!(
            "{style}{BOLD}{word}{BOLD:#}{style:#} {DIM}· {}{DIM:#}\n",
            parts.join(" · ")
        ));
        for warning in attempts::isolation_warnings(self.record) {
            terminal::note(&format!("{YELLOW}{}{YELLOW:#}\n", display::line(&warning)));
        }
        if matches!(outcome.conclusion, Conclusion::Ran(_)) {
            terminal::note(&format!(
                "{DIM}without a contract a program cannot pass: add --expect, --check or --expect-file{DIM:#}\n"
            ));
        }
        for finding in outcome.findings.iter().filter(|one| one.severity >= FindingSeverity::Warn) {
            terminal::note(&format!("{YELLOW}{}{YELLOW:#}\n", display::finding(finding)));
            for line in comparison(finding, self.stdout().unwrap_or_default()) {
                // Keeps the spaces that align both lines.
                terminal::note(&format!("    {}\n", sanitize_line(&line)));
            }
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
                (run_store::short_id(&self.record.row.run_id), if left == 1 { "" } else { "s" });
            terminal::note(&format!(
                "{DIM}the program wrote {left} file{plural}: moothall show {id} --output DIR{DIM:#}\n"
            ));
        }
    }

    /// The complete standard output of the last program.
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

    /// Why the run has no verdict, with a hint if the cause is known.
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
                    let error = CliError::failed(format!("cannot run the program: {found}"));
                    return match found.kind {
                        SandboxFailureKind::NoEngine | SandboxFailureKind::Lost => error.with_hint(
                            "run `moothall doctor` to see which sandboxes work on this machine",
                        ),
                        // The message says what to change.
                        SandboxFailureKind::Image | SandboxFailureKind::Request => error,
                    };
                }
                _ => {}
            }
        }
        CliError::failed("the run failed")
    }
}

/// What a contract expected and what the program printed. The message of the finding does not
/// contain the expected output, because models see it.
fn comparison(finding: &RunFinding, stdout: &str) -> Vec<String> {
    let rule = finding.rule.to_string();
    if !rule.starts_with("contract.") {
        return Vec::new();
    }
    let mut lines = finding.evidence.clone();
    if rule == "contract.pattern" {
        let last = stdout.trim_end().lines().next_back().unwrap_or("(nothing)");
        lines.push(format!("got:      {}", display::cut(last, MAX_SHOWN_CHARS)));
    }
    lines
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
