//! Findings about one attempt: a program and the result of running it.
//!
//! Each rule is a separate function. A program that obscures its behavior can evade a rule, but no
//! program can switch one off.

mod dependencies;
mod exit_status;
mod fabricated_data;
mod forced_exit;
mod hardcoded_output;
mod network;
mod tampering;
mod task_files;

use std::collections::{BTreeMap, BTreeSet};

use super::contract::ProgramContract;
use super::python::PythonSource;
use crate::sandbox::{FileRef, GuestPath, SandboxExecution};
use crate::{FindingSeverity, RunFinding};

/// Longer finding messages are truncated.
const MAX_MESSAGE_CHARS: usize = 400;

/// The data of one attempt that the rules use.
#[derive(Debug, Clone)]
pub struct AttemptContext<'a> {
    /// The task.
    pub task: &'a str,
    /// The input files.
    pub inputs: &'a BTreeMap<GuestPath, FileRef>,
    /// Packages available in addition to the standard library.
    pub packages: &'a [String],
    /// The contract.
    pub contract: &'a ProgramContract,
    /// The program.
    pub source: &'a PythonSource<'a>,
    /// Packages the model says it needs.
    pub dependencies: &'a [String],
    /// The result of running it.
    pub execution: &'a SandboxExecution,
    /// Files that earlier attempts tried to open but did not find.
    pub missed: &'a BTreeSet<String>,
    /// The subject of the findings: the execution's effect id.
    pub subject: &'a str,
}

impl AttemptContext<'_> {
    fn finding(&self, rule: &'static str, severity: FindingSeverity, message: &str) -> RunFinding {
        finding(rule, severity, self.subject, message)
    }
}

pub(crate) fn finding(
    rule: &'static str,
    severity: FindingSeverity,
    subject: &str,
    message: &str,
) -> RunFinding {
    let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    RunFinding::new(rule, severity, subject, message)
}

/// All findings that do not depend on the contract's expectations.
pub fn of_attempt(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let rules: [fn(&AttemptContext<'_>) -> Vec<RunFinding>; 8] = [
        exit_status::ended,
        exit_status::truncated,
        dependencies::missing,
        fabricated_data::inputs,
        tampering::edited,
        forced_exit::forced,
        network::attempted,
        hardcoded_output::echoed,
    ];
    rules.iter().flat_map(|rule| rule(attempt)).collect()
}

pub(crate) use self::fabricated_data::missed_files;

fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
