//! The attempts of a run, gathered from its events.

use std::collections::BTreeMap;

use moothall_core::reflexion::{Attempted, read_program};
use moothall_core::sandbox::{Exit, FileRef, GuestPath, IsolationClass};
use moothall_core::{Conclusion, EffectId, EffectResult, Finding, RunEventBody, Sha256Hex};
use moothall_engine::RunRecord;
use serde::Serialize;

/// One attempt as far as it went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Attempt {
    pub(super) attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<Program>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) executed: Option<Executed>,
    /// The check of its results, in a sandbox of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checked: Option<Executed>,
    /// Absent where it was not judged yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) findings: Option<Vec<Finding>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) critique: Option<String>,
    /// Why answers could not be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) rejected: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Program {
    /// The call whose answer holds it.
    pub(super) effect_id: EffectId,
    pub(super) code_sha256: Sha256Hex,
    pub(super) code_lines: u64,
    pub(super) dependencies: Vec<String>,
    /// The model's word, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confidence_permille: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Executed {
    pub(super) exit: Exit,
    pub(super) engine: String,
    pub(super) class: IsolationClass,
    pub(super) stdout_bytes: u64,
    pub(super) stderr_bytes: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) files: BTreeMap<GuestPath, FileRef>,
}

/// All attempts of a run, the first one first.
pub(super) fn attempts(record: &RunRecord) -> Vec<Attempt> {
    let mut found: BTreeMap<u32, Attempt> = BTreeMap::new();
    let mut current = 0;
    let mut of = |number: u32, change: &mut dyn FnMut(&mut Attempt)| {
        let fresh = || Attempt { attempt: number, ..Attempt::default() };
        change(found.entry(number).or_insert_with(fresh));
    };
    for stored in &record.events {
        match &stored.event.body {
            RunEventBody::AttemptStarted { attempt, .. } => {
                current = *attempt;
                of(*attempt, &mut |_| {});
            }
            RunEventBody::OutputRejected { problems, .. } => {
                of(current, &mut |one| one.rejected.extend(problems.iter().cloned()));
            }
            RunEventBody::CodeGenerated {
                effect_id,
                attempt,
                code_sha256,
                code_lines,
                dependencies,
                confidence_permille,
            } => of(*attempt, &mut |one| {
                one.program = Some(Program {
                    effect_id: effect_id.clone(),
                    code_sha256: *code_sha256,
                    code_lines: *code_lines,
                    dependencies: dependencies.clone(),
                    confidence_permille: *confidence_permille,
                });
            }),
            RunEventBody::Executed {
                effect_id,
                attempt,
                exit,
                engine,
                class,
                stdout_bytes,
                stderr_bytes,
                files,
            } => of(*attempt, &mut |one| {
                let executed = Some(Executed {
                    exit: exit.clone(),
                    engine: engine.clone(),
                    class: *class,
                    stdout_bytes: *stdout_bytes,
                    stderr_bytes: *stderr_bytes,
                    files: files.clone(),
                });
                match effect_id.as_str().ends_with("/check") {
                    true => one.checked = executed,
                    false => one.executed = executed,
                }
            }),
            RunEventBody::Judged { attempt, findings, .. } => {
                of(*attempt, &mut |one| one.findings = Some(findings.clone()));
            }
            RunEventBody::Critiqued { attempt, text, .. } => {
                of(*attempt, &mut |one| one.critique = Some(text.clone()));
            }
            // Of the run as a whole, or of another kind of trial.
            _ => {}
        }
    }
    found.into_values().collect()
}

/// What the last attempt came to, where the run has ended with one.
pub(super) fn attempted(record: &RunRecord) -> Option<&Attempted> {
    match &record.row.outcome.as_ref()?.conclusion {
        Conclusion::Ran(attempted)
        | Conclusion::Passed(attempted)
        | Conclusion::Questioned(attempted)
        | Conclusion::NotPassed(attempted) => Some(attempted),
        _ => None,
    }
}

/// Files that the last program left, whether the run has ended or not.
pub(super) fn files(record: &RunRecord) -> BTreeMap<GuestPath, FileRef> {
    let last = attempts(record).into_iter().rev().find_map(|attempt| attempt.executed);
    last.map(|executed| executed.files).unwrap_or_default()
}

/// The text of the last program that was written.
pub(super) fn code(record: &RunRecord) -> Option<String> {
    let program = attempts(record).into_iter().rev().find_map(|attempt| attempt.program)?;
    match &record.journal.get(&program.effect_id)?.result {
        EffectResult::ModelReplied(reply) => Some(read_program(reply).ok()?.code),
        _ => None,
    }
}
