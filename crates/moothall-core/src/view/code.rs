//! A run that writes a program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::RunEventBody;
use crate::sandbox::{Exit, FileRef, GuestPath, IsolationClass};
use crate::{EffectId, Finding, Sha256Hex, Verdict};

/// The attempts of a run, the first one first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CodeView {
    /// How many attempts there may be.
    pub of: u32,
    /// Those that began.
    pub attempts: Vec<Attempt>,
}

/// One program of a run, as far as it went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Attempt {
    /// From 1.
    pub attempt: u32,
    /// Why answers could not be used.
    pub rejected: Vec<String>,
    /// What the model wrote.
    pub program: Option<Program>,
    /// How it ran.
    pub executed: Option<Executed>,
    /// The check of its results, in a sandbox of its own.
    pub checked: Option<Executed>,
    /// Absent where it was not judged yet.
    pub findings: Option<Vec<Finding>>,
    /// What the findings come to.
    pub verdict: Option<Verdict>,
    /// What a model says went wrong.
    pub critique: Option<String>,
}

/// A program that a model wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Program {
    /// The call whose answer holds it.
    pub effect_id: EffectId,
    /// The hash of its text.
    pub code_sha256: Sha256Hex,
    /// How many lines it has.
    pub code_lines: u64,
    /// Packages that the model says it needs.
    pub dependencies: Vec<String>,
    /// How sure the model says it is, in thousandths.
    pub confidence_permille: Option<u16>,
}

/// One execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Executed {
    /// How it ended.
    pub exit: Exit,
    /// What ran it, such as `microvm`.
    pub engine: String,
    /// How strong the wall around it was.
    pub class: IsolationClass,
    /// What was kept of its output.
    pub stdout_bytes: u64,
    /// What was kept of its errors.
    pub stderr_bytes: u64,
    /// Files it left.
    pub files: BTreeMap<GuestPath, FileRef>,
}

impl CodeView {
    /// What these events say about attempts.
    pub fn of<'a>(bodies: impl IntoIterator<Item = &'a RunEventBody>) -> Self {
        let mut view = Self::default();
        for body in bodies {
            view.apply(body);
        }
        view
    }

    pub(super) fn apply(&mut self, body: &RunEventBody) {
        match body {
            RunEventBody::AttemptStarted { attempt, of, .. } => {
                self.of = *of;
                if self.find(*attempt).is_none() {
                    self.attempts.push(Attempt { attempt: *attempt, ..Attempt::default() });
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
                let executed = Executed {
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
                    one.verdict = Some(Verdict::of(findings));
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

    fn find(&mut self, attempt: u32) -> Option<&mut Attempt> {
        self.attempts.iter_mut().find(|one| one.attempt == attempt)
    }
}
