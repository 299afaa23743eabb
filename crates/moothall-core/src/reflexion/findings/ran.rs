//! How the program ended, and whether all it said was kept.

use super::Attempt;
use crate::sandbox::Exit;
use crate::{Finding, Severity};

/// A program that did not end by itself with 0 has not done its task. Each way has its own rule, so
/// that a program is not blamed for a sandbox that died.
pub(super) fn ended(attempt: &Attempt<'_>) -> Vec<Finding> {
    let execution = attempt.execution;
    let rule = match execution.exit {
        Exit::Exited { code: 0 } => return Vec::new(),
        Exit::Exited { .. } | Exit::Signalled { .. } => "run.crashed",
        Exit::TimedOut => "run.timed-out",
        Exit::OutOfMemory => "run.out-of-memory",
        Exit::SandboxDied { .. } => "run.sandbox-died",
    };
    let mut message = execution.exit.to_string();
    // The last line of a traceback says what happened.
    if rule == "run.crashed"
        && let Some(last) = execution.stderr.text.lines().rev().find(|line| !line.trim().is_empty())
    {
        message = format!("{message}: {}", last.trim());
    }
    vec![attempt.finding(rule, Severity::Block, &message)]
}

/// What was cut off or left behind was not judged.
pub(super) fn truncated(attempt: &Attempt<'_>) -> Vec<Finding> {
    let execution = attempt.execution;
    let mut findings = Vec::new();
    for (name, output) in [("output", &execution.stdout), ("error output", &execution.stderr)] {
        if output.truncated {
            let message = format!(
                "the program's {name} was cut off at {} bytes",
                execution.attestation.limits.output_bytes
            );
            findings.push(attempt.finding("output.truncated", Severity::Warn, &message));
        }
    }
    if let Some(first) = execution.left_behind.first() {
        let message = match execution.left_behind.len() - 1 {
            0 => format!("a file was not brought back: {first}"),
            more => format!("files were not brought back: {first}; and {more} more"),
        };
        findings.push(attempt.finding("output.left-behind", Severity::Warn, &message));
    }
    findings
}
