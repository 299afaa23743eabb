//! What can be said about one attempt: a program, and what came of running it.
//!
//! Each rule is a function of its own. A rule may be deceived by a program that hides what it does;
//! none can be switched off by one.

mod dependencies;
mod echoed;
mod edited;
mod fabricated;
mod forced_exit;
mod network;
mod ran;
mod task_files;

use std::collections::{BTreeMap, BTreeSet};

use super::contract::Contract;
use super::python::Source;
use crate::sandbox::{Execution, FileRef, GuestPath};
use crate::{Finding, Severity};

/// The longest message of a finding.
const MAX_MESSAGE_CHARS: usize = 400;

/// One attempt, as its judge sees it.
#[derive(Debug, Clone)]
pub struct Attempt<'a> {
    /// What the program shall do.
    pub task: &'a str,
    /// The files it was given.
    pub inputs: &'a BTreeMap<GuestPath, FileRef>,
    /// What can be imported beside the standard library.
    pub packages: &'a [String],
    /// What it must do to pass.
    pub contract: &'a Contract,
    /// The program.
    pub source: &'a Source<'a>,
    /// Packages that the model says it needs.
    pub dependencies: &'a [String],
    /// What came of running it.
    pub execution: &'a Execution,
    /// Files that earlier attempts looked for in vain.
    pub missed: &'a BTreeSet<String>,
    /// What the findings are about: the execution's effect id.
    pub subject: &'a str,
}

impl Attempt<'_> {
    fn finding(&self, rule: &'static str, severity: Severity, message: &str) -> Finding {
        finding(rule, severity, self.subject, message)
    }
}

pub(super) fn finding(
    rule: &'static str,
    severity: Severity,
    subject: &str,
    message: &str,
) -> Finding {
    let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    Finding::new(rule, severity, subject, message)
}

/// Everything that can be said without looking at what the contract demands.
pub fn of_attempt(attempt: &Attempt<'_>) -> Vec<Finding> {
    let rules: [fn(&Attempt<'_>) -> Vec<Finding>; 8] = [
        ran::ended,
        ran::truncated,
        dependencies::missing,
        fabricated::inputs,
        edited::edited,
        forced_exit::forced,
        network::attempted,
        echoed::echoed,
    ];
    rules.iter().flat_map(|rule| rule(attempt)).collect()
}

pub(super) use self::fabricated::missed_files;

fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
