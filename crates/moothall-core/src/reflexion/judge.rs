//! Whether an attempt did what it had to. Findings in, nothing else: no model is asked.

use serde_json::Value;

use super::contract::{Contract, Expectation};
use super::findings::{self, Attempt, finding};
use crate::sandbox::{ExecuteRequest, Execution};
use crate::structured::{MAX_PROBLEMS, OutputCheck};
use crate::{Finding, Severity};

/// The longest piece of text that a finding shows as evidence.
const MAX_SHOWN_CHARS: usize = 160;

/// Everything that can be said about an attempt before its check is run.
pub(super) fn judge(attempt: &Attempt<'_>, schema: &dyn OutputCheck) -> Vec<Finding> {
    let mut found = findings::of_attempt(attempt);
    // A program that did not end well has nothing to compare.
    if attempt.execution.exit.is_zero() {
        found.extend(expected(attempt, schema));
        found.extend(outputs(attempt));
    }
    found
}

/// Whether a finding stops an attempt.
pub(super) fn is_blocked(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Block)
}

/// What the check says about what the program left. A check that did not end by itself with 0
/// failed, whatever the reason.
pub(super) fn checked(execution: &Execution, subject: &str) -> Vec<Finding> {
    if execution.exit.is_zero() {
        return Vec::new();
    }
    let streams = [&execution.stderr.text, &execution.stdout.text];
    let last = streams
        .iter()
        .find_map(|text| text.lines().rev().find(|line| !line.trim().is_empty()))
        .map_or_else(String::new, |line| format!(": {}", line.trim()));
    let message = format!("the check says no ({}){last}", execution.exit);
    vec![finding("contract.check", Severity::Block, subject, &message)]
}

/// A check that could not be given what the program left.
pub(super) fn cannot_check(subject: &str) -> Finding {
    let message = "the check cannot be given all files of the program: a path is too long";
    finding("contract.check", Severity::Block, subject, message)
}

/// The message says what is wrong and may be shown to a model; what was expected is evidence for
/// people, so that a program cannot be written towards it.
fn expected(attempt: &Attempt<'_>, schema: &dyn OutputCheck) -> Vec<Finding> {
    let stdout = attempt.execution.stdout.text.trim_end();
    match &attempt.contract.expect {
        None => Vec::new(),
        Some(Expectation::Text { text }) => text_differs(text.trim_end(), stdout)
            .map(|(message, evidence)| {
                let mut found = blocked(attempt, "contract.text", &message);
                found.evidence = evidence;
                found
            })
            .into_iter()
            .collect(),
        Some(Expectation::Pattern { pattern }) if pattern.is_found_in(stdout) => Vec::new(),
        Some(Expectation::Pattern { pattern }) => {
            let message = "the output does not have the expected form";
            let mut found = blocked(attempt, "contract.pattern", message);
            found.evidence = vec![format!("expected: {}", shown(pattern.as_str()))];
            vec![found]
        }
        Some(Expectation::Schema { .. }) => {
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

/// Where an output first differs from what was expected.
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

/// Files that must be there.
fn outputs(attempt: &Attempt<'_>) -> Vec<Finding> {
    let Contract { outputs, .. } = attempt.contract;
    let missing = outputs.iter().filter(|path| !attempt.execution.files.contains_key(path));
    missing
        .map(|path| {
            let folder = ExecuteRequest::OUTPUT_FOLDER;
            let message = format!("the program did not leave `{path}` in /workspace/{folder}");
            blocked(attempt, "contract.output-missing", &message)
        })
        .collect()
}

fn blocked(attempt: &Attempt<'_>, rule: &'static str, message: &str) -> Finding {
    finding(rule, Severity::Block, attempt.subject, message)
}

fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
