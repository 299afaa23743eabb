//! Policy checks: builds the sandbox request for a check and interprets its exit.
//!
//! Files are passed as inputs, which can hold any bytes, and copied to a writable directory. The
//! copy script is Python because every image has it.

use std::collections::BTreeMap;

use serde_json::json;

use super::RuleMatch;
use super::policy::{Policy, PolicyCheck};
use super::rule::GateRule;
use crate::drafts::RelPath;
use crate::sandbox::{
    ExecuteRequest, ExecutionExit, FileRef, GuestPath, InvalidGuestPath, SandboxLimits,
};

/// Prepares the tree and starts the check. The command comes from a file, not from environment
/// variables.
const RUNNER: &str = r#"import json, os, shutil, sys

with open("/workspace/check.json") as file:
    told = json.load(file)
os.makedirs("/workspace/tree", exist_ok=True)
shutil.copytree("/inputs", "/workspace/tree", dirs_exist_ok=True, copy_function=shutil.copyfile)
os.chdir("/workspace/tree")
for folder, _, names in os.walk("."):
    os.chmod(folder, 0o755)
    for name in names:
        path = os.path.join(folder, name)
        os.chmod(path, 0o755 if path[2:] in told["executable"] else 0o644)
run = told["run"]
if "/" not in run[0] and shutil.which(run[0]) is None:
    print(run[0] + ": program not found in this image", file=sys.stderr)
    sys.exit(127)
os.execvp(run[0], run)
"#;

/// Exit code of shells and of our runner for a missing program, which means that nothing was
/// checked.
const NO_SUCH_PROGRAM: i32 = 127;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// ID of the check.
    pub id: String,
    /// The outcome.
    pub outcome: CheckOutcome,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The program exited with code 0.
    Passed,
    /// The program failed.
    Failed,
    /// The time limit was reached.
    TimedOut,
    /// The check could not be run. This never counts as passed.
    NotRun,
}

/// Builds the sandbox request for a check on a tree of files, each with its executable bit.
pub fn check_request(
    check: &PolicyCheck,
    tree: &BTreeMap<GuestPath, (FileRef, bool)>,
) -> Result<ExecuteRequest, InvalidGuestPath> {
    let executable: Vec<&GuestPath> =
        tree.iter().filter(|(_, (_, executable))| *executable).map(|(path, _)| path).collect();
    let settings = json!({ "run": check.run, "executable": executable });
    let usual = SandboxLimits::default();
    Ok(ExecuteRequest {
        image: check.image.clone(),
        sources: BTreeMap::from([
            ("check.py".parse()?, RUNNER.to_owned()),
            ("check.json".parse()?, settings.to_string()),
        ]),
        inputs: tree.iter().map(|(path, (file, _))| (path.clone(), *file)).collect(),
        // Isolated mode: files in the working directory cannot be imported as modules.
        argv: ["python3", "-I", "check.py"].map(str::to_owned).to_vec(),
        env: BTreeMap::new(),
        stdin: String::new(),
        limits: SandboxLimits {
            wall_ms: check.timeout_ms,
            cpu_seconds: usual.cpu_seconds.max(check.timeout_ms.div_ceil(1000)),
            ..usual
        },
        collect: false,
    })
}

/// Maps the exit of a check to its outcome.
pub fn check_outcome(exit: &ExecutionExit) -> CheckOutcome {
    match exit {
        ExecutionExit::Exited { code: 0 } => CheckOutcome::Passed,
        ExecutionExit::Exited { code: NO_SUCH_PROGRAM } | ExecutionExit::SandboxDied { .. } => {
            CheckOutcome::NotRun
        }
        ExecutionExit::Exited { .. }
        | ExecutionExit::Signalled { .. }
        | ExecutionExit::OutOfMemory => CheckOutcome::Failed,
        ExecutionExit::TimedOut => CheckOutcome::TimedOut,
    }
}

pub(crate) fn check_findings<'a>(
    policy: &Policy,
    paths: impl Iterator<Item = &'a RelPath> + Clone,
    checks: &[CheckResult],
) -> Vec<RuleMatch> {
    let mut seen = Vec::new();
    for check in policy.checks_for(paths) {
        let outcome = checks.iter().find(|one| one.id == check.id).map(|one| one.outcome);
        let name = &check.id;
        match outcome {
            Some(CheckOutcome::Passed) => {}
            Some(CheckOutcome::Failed) => {
                let words = format!("check `{name}` failed");
                let failed = RuleMatch::new(GateRule::CheckFailed, None, words);
                seen.push(RuleMatch { instead: check.on_fail, ..failed });
            }
            Some(CheckOutcome::TimedOut) => {
                let words = format!("check `{name}` timed out");
                let late = RuleMatch::new(GateRule::CheckTimeout, None, words);
                seen.push(RuleMatch { instead: check.on_timeout, ..late });
            }
            Some(CheckOutcome::NotRun) | None => {
                let words = format!("check `{name}` did not run");
                seen.push(RuleMatch::new(GateRule::GateError, None, words));
            }
        }
    }
    seen
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
