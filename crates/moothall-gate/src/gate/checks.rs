//! Checks of a policy: what runs on the drafted tree, and what its end means.
//!
//! The files are given as inputs, which hold any bytes, and copied to where the check may write. The
//! copying is Python because every image has it.

use std::collections::BTreeMap;

use serde_json::json;

use super::policy::{Check, Policy};
use super::rule::Rule;
use super::{FileChange, Seen};
use crate::sandbox::{ExecuteRequest, Exit, FileRef, GuestPath, InvalidGuestPath, Limits};

/// The program before the check. It is told in a file, not in variables, what to run.
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
    print(run[0] + ": there is no such program in this image", file=sys.stderr)
    sys.exit(127)
os.execvp(run[0], run)
"#;

/// What shells and our runner say where a program is not there: nothing was checked then.
const NO_SUCH_PROGRAM: i32 = 127;

/// What came of a check that a policy asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// The check's id.
    pub id: String,
    /// What came of it.
    pub outcome: CheckOutcome,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Its program ended well.
    Passed,
    /// It did not.
    Failed,
    /// It took too long.
    TimedOut,
    /// It could not be run at all, which never means that it passed.
    NotRun,
}

/// The execution of a check on a tree: each file, and whether it may be run.
pub fn check_request(
    check: &Check,
    tree: &BTreeMap<GuestPath, (FileRef, bool)>,
) -> Result<ExecuteRequest, InvalidGuestPath> {
    let executable: Vec<&GuestPath> =
        tree.iter().filter(|(_, (_, executable))| *executable).map(|(path, _)| path).collect();
    let told = json!({ "run": check.run, "executable": executable });
    let usual = Limits::default();
    Ok(ExecuteRequest {
        image: check.image.clone(),
        sources: BTreeMap::from([
            ("check.py".parse()?, RUNNER.to_owned()),
            ("check.json".parse()?, told.to_string()),
        ]),
        inputs: tree.iter().map(|(path, (file, _))| (path.clone(), *file)).collect(),
        // Isolated: nothing in the working folder is taken for a module.
        argv: ["python3", "-I", "check.py"].map(str::to_owned).to_vec(),
        env: BTreeMap::new(),
        stdin: String::new(),
        limits: Limits {
            wall_ms: check.timeout_ms,
            cpu_seconds: usual.cpu_seconds.max(check.timeout_ms.div_ceil(1000)),
            ..usual
        },
        collect: false,
    })
}

/// What the end of a check means.
pub fn check_outcome(exit: &Exit) -> CheckOutcome {
    match exit {
        Exit::Exited { code: 0 } => CheckOutcome::Passed,
        Exit::Exited { code: NO_SUCH_PROGRAM } | Exit::SandboxDied { .. } => CheckOutcome::NotRun,
        Exit::Exited { .. } | Exit::Signalled { .. } | Exit::OutOfMemory => CheckOutcome::Failed,
        Exit::TimedOut => CheckOutcome::TimedOut,
    }
}

pub(super) fn look(
    policy: &Policy,
    changes: &[FileChange<'_>],
    checks: &[CheckResult],
) -> Vec<Seen> {
    let paths =
        changes.iter().flat_map(|change| std::iter::once(change.path).chain(change.rename_to));
    let mut seen = Vec::new();
    for check in policy.checks_for(paths) {
        let outcome = checks.iter().find(|one| one.id == check.id).map(|one| one.outcome);
        let name = &check.id;
        match outcome {
            Some(CheckOutcome::Passed) => {}
            Some(CheckOutcome::Failed) => {
                let words = format!("check `{name}` failed");
                let failed = Seen::new(Rule::CheckFailed, None, words);
                seen.push(Seen { instead: check.on_fail, ..failed });
            }
            Some(CheckOutcome::TimedOut) => {
                let words = format!("check `{name}` took too long");
                let late = Seen::new(Rule::CheckTimeout, None, words);
                seen.push(Seen { instead: check.on_timeout, ..late });
            }
            Some(CheckOutcome::NotRun) | None => {
                let words = format!("check `{name}` was not run");
                seen.push(Seen::new(Rule::GateError, None, words));
            }
        }
    }
    seen
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
