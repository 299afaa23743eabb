//! Findings about the exit status and truncated output.

use super::AttemptContext;
use crate::sandbox::ExecutionExit;
use crate::{FindingSeverity, RunFinding};

/// A program that did not exit with 0 has not done its task. Each cause has its own rule, so a
/// program is not blamed for a lost sandbox.
pub(crate) fn ended(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let execution = attempt.execution;
    let rule = match execution.exit {
        ExecutionExit::Exited { code: 0 } => return Vec::new(),
        ExecutionExit::Exited { .. } | ExecutionExit::Signalled { .. } => "run.crashed",
        ExecutionExit::TimedOut => "run.timed-out",
        ExecutionExit::OutOfMemory => "run.out-of-memory",
        ExecutionExit::SandboxDied { .. } => "run.sandbox-died",
    };
    let mut message = execution.exit.to_string();
    // The last line of a traceback has the error message.
    if rule == "run.crashed"
        && let Some(last) = execution.stderr.text.lines().rev().find(|line| !line.trim().is_empty())
    {
        message = format!("{message}: {}", last.trim());
    }
    vec![attempt.finding(rule, FindingSeverity::Block, &message)]
}

/// Truncated output and files that were not copied out have not been checked.
pub(crate) fn truncated(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let execution = attempt.execution;
    let mut findings = Vec::new();
    for (name, output) in [("output", &execution.stdout), ("error output", &execution.stderr)] {
        if output.truncated {
            let message = format!(
                "the program's {name} was cut off at {} bytes",
                execution.attestation.limits.output_bytes
            );
            findings.push(attempt.finding("output.truncated", FindingSeverity::Warn, &message));
        }
    }
    if let Some(first) = execution.left_behind.first() {
        let message = match execution.left_behind.len() - 1 {
            0 => format!("a file was not brought back: {first}"),
            more => format!("files were not brought back: {first}; and {more} more"),
        };
        findings.push(attempt.finding("output.left-behind", FindingSeverity::Warn, &message));
    }
    findings
}
