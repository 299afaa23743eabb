//! Decides whether an attempt fulfils its contract. Produces findings only, without a model.

use serde_json::Value;

use super::contract::{OutputExpectation, ProgramContract};
use super::findings::{self, AttemptContext, finding};
use crate::sandbox::{ExecuteRequest, SandboxExecution};
use crate::structured::{MAX_PROBLEMS, OutputCheck};
use crate::{FindingSeverity, RunFinding};

/// Longer evidence is truncated.
const MAX_SHOWN_CHARS: usize = 160;

/// All findings about an attempt before its check runs.
pub(crate) fn judge(attempt: &AttemptContext<'_>, schema: &dyn OutputCheck) -> Vec<RunFinding> {
    let mut found = findings::of_attempt(attempt);
    // The output of a failed program is not compared.
    if attempt.execution.exit.is_zero() {
        found.extend(expected(attempt, schema));
        found.extend(outputs(attempt));
    }
    found
}

pub(crate) fn is_blocked(findings: &[RunFinding]) -> bool {
    findings.iter().any(|finding| finding.severity == FindingSeverity::Block)
}

/// Findings from the check script. Any exit status other than 0 is a failure.
pub(crate) fn checked(execution: &SandboxExecution, subject: &str) -> Vec<RunFinding> {
    if execution.exit.is_zero() {
        return Vec::new();
    }
    let streams = [&execution.stderr.text, &execution.stdout.text];
    let last = streams
        .iter()
        .find_map(|text| text.lines().rev().find(|line| !line.trim().is_empty()))
        .map_or_else(String::new, |line| format!(": {}", line.trim()));
    let message = format!("the check says no ({}){last}", execution.exit);
    vec![finding("contract.check", FindingSeverity::Block, subject, &message)]
}

/// The program's files could not be passed to the check.
pub(crate) fn cannot_check(subject: &str) -> RunFinding {
    let message = "the check cannot be given all files of the program: a path is too long";
    finding("contract.check", FindingSeverity::Block, subject, message)
}

/// The message may be shown to a model. The expected output is only in the evidence, so a
/// program cannot be written to match it.
fn expected(attempt: &AttemptContext<'_>, schema: &dyn OutputCheck) -> Vec<RunFinding> {
    let stdout = attempt.execution.stdout.text.trim_end();
    match &attempt.contract.expect {
        None => Vec::new(),
        Some(OutputExpectation::Text { text }) => text_differs(text.trim_end(), stdout)
            .map(|(message, evidence)| {
                let mut found = blocked(attempt, "contract.text", &message);
                found.evidence = evidence;
                found
            })
            .into_iter()
            .collect(),
        Some(OutputExpectation::Pattern { pattern }) if pattern.is_found_in(stdout) => Vec::new(),
        Some(OutputExpectation::Pattern { pattern }) => {
            let message = "the output does not have the expected form";
            let mut found = blocked(attempt, "contract.pattern", message);
            found.evidence = vec![format!("expected: {}", shown(pattern.as_str()))];
            vec![found]
        }
        Some(OutputExpectation::Schema { .. }) => {
            let problems = match serde_json::from_str::<Value>(stdout) {
                Ok(value) => schema.problems(&value),
                Err(error) => vec![format!("the output is not a single JSON value: {error}")],
            };
            if problems.is_empty() {
                return Vec::new();
            }
            let message = problems[..problems.len().min(MAX_PROBLEMS)].join("; ");
            vec![blocked(attempt, "contract.schema", &message)]
        }
    }
}

/// The first difference between the output and the expected text.
fn text_differs(expected: &str, stdout: &str) -> Option<(String, Vec<String>)> {
    if expected == stdout {
        return None;
    }
    let (wanted, got): (Vec<_>, Vec<_>) = (expected.lines().collect(), stdout.lines().collect());
    let same = wanted.iter().zip(&got).take_while(|(wanted, got)| wanted == got).count();
    let line = same + 1;
    let message = match (wanted.get(same), got.get(same)) {
        _ if stdout.is_empty() => "the program printed nothing".to_owned(),
        (Some(_), Some(got)) => {
            format!("the output is not what was expected: line {line} is `{}`", shown(got))
        }
        (Some(_), None) => {
            format!("the output ends after line {same}; more was expected")
        }
        (None, Some(got)) => {
            format!("the output goes on after line {same} with `{}`", shown(got))
        }
        (None, None) => "the output differs from what was expected in its line ends".to_owned(),
    };
    let evidence =
        wanted.get(same).map(|wanted| format!("expected line {line}: {}", shown(wanted)));
    Some((message, evidence.into_iter().collect()))
}

/// Findings for missing output files.
fn outputs(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let ProgramContract { outputs, .. } = attempt.contract;
    let missing = outputs.iter().filter(|path| !attempt.execution.files.contains_key(path));
    missing
        .map(|path| {
            let folder = ExecuteRequest::OUTPUT_FOLDER;
            let message = format!("the program did not leave `{path}` in /workspace/{folder}");
            blocked(attempt, "contract.output-missing", &message)
        })
        .collect()
}

fn blocked(attempt: &AttemptContext<'_>, rule: &'static str, message: &str) -> RunFinding {
    finding(rule, FindingSeverity::Block, attempt.subject, message)
}

fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
#[path = "contract_check_tests.rs"]
mod tests;
