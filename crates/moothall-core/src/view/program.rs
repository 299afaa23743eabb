//! The view of a run that writes a program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::RunEventBody;
use crate::sandbox::{ExecutionExit, FileRef, GuestPath, IsolationClass};
use crate::{EffectId, RunFinding, RunVerdict, Sha256Hex};

/// The attempts of a run, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ProgramView {
    /// The maximum number of attempts.
    pub of: u32,
    /// The attempts started so far.
    pub attempts: Vec<AttemptView>,
}

/// One attempt, as far as it got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AttemptView {
    /// The number, starting at 1.
    pub attempt: u32,
    /// Why answers were rejected.
    pub rejected: Vec<String>,
    /// The program.
    pub program: Option<Program>,
    /// Its execution.
    pub executed: Option<ExecutionView>,
    /// The execution of its check, in a separate sandbox.
    pub checked: Option<ExecutionView>,
    /// The findings; absent until the attempt is checked.
    pub findings: Option<Vec<RunFinding>>,
    /// The verdict derived from the findings.
    pub verdict: Option<RunVerdict>,
    /// The model's critique.
    pub critique: Option<String>,
}

/// A program written by a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Program {
    /// The call whose answer contains it.
    pub effect_id: EffectId,
    /// The hash of the source code.
    pub code_sha256: Sha256Hex,
    /// The number of lines.
    pub code_lines: u64,
    /// Packages the model says it needs.
    pub dependencies: Vec<String>,
    /// The model's stated confidence, in thousandths.
    pub confidence_permille: Option<u16>,
}

/// One execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ExecutionView {
    /// The exit status.
    pub exit: ExecutionExit,
    /// The sandbox engine, such as `microvm`.
    pub engine: String,
    /// The isolation class.
    pub class: IsolationClass,
    /// Captured bytes of standard output.
    pub stdout_bytes: u64,
    /// Captured bytes of standard error.
    pub stderr_bytes: u64,
    /// Files the program left.
    pub files: BTreeMap<GuestPath, FileRef>,
}

impl ProgramView {
    /// Builds the view from events.
    pub fn of<'a>(bodies: impl IntoIterator<Item = &'a RunEventBody>) -> Self {
        let mut view = Self::default();
        for body in bodies {
            view.apply(body);
        }
        view
    }

    pub(crate) fn apply(&mut self, body: &RunEventBody) {
        match body {
            RunEventBody::AttemptStarted { attempt, of, .. } => {
                self.of = *of;
                if self.find(*attempt).is_none() {
                    self.attempts.push(AttemptView { attempt: *attempt, ..AttemptView::default() });
                }
            }
            RunEventBody::OutputRejected { problems, .. } => {
                if let Some(last) = self.attempts.last_mut() {
                    last.rejected.extend(problems.iter().cloned());
                }
            }
            RunEventBody::CodeGenerated {
                effect_id,
                attempt,
                code_sha256,
                code_lines,
                dependencies,
                confidence_permille,
            } => {
                let program = Program {
                    effect_id: effect_id.clone(),
                    code_sha256: *code_sha256,
                    code_lines: *code_lines,
                    dependencies: dependencies.clone(),
                    confidence_permille: *confidence_permille,
                };
                if let Some(one) = self.find(*attempt) {
                    one.program = Some(program);
                }
            }
            RunEventBody::Executed {
                effect_id,
                attempt,
                exit,
                engine,
                class,
                stdout_bytes,
                stderr_bytes,
                files,
            } => {
                let executed = ExecutionView {
                    exit: exit.clone(),
                    engine: engine.clone(),
                    class: *class,
                    stdout_bytes: *stdout_bytes,
                    stderr_bytes: *stderr_bytes,
                    files: files.clone(),
                };
                let is_check = effect_id.as_str().ends_with("/check");
                if let Some(one) = self.find(*attempt) {
                    *(if is_check { &mut one.checked } else { &mut one.executed }) = Some(executed);
                }
            }
            RunEventBody::Judged { attempt, findings, .. } => {
                if let Some(one) = self.find(*attempt) {
                    one.verdict = Some(RunVerdict::of(findings));
                    one.findings = Some(findings.clone());
                }
            }
            RunEventBody::Critiqued { attempt, text, .. } => {
                if let Some(one) = self.find(*attempt) {
                    one.critique = Some(text.clone());
                }
            }
            _ => {}
        }
    }

    fn find(&mut self, attempt: u32) -> Option<&mut AttemptView> {
        self.attempts.iter_mut().find(|one| one.attempt == attempt)
    }
}
