//! Programs that change what they are judged by.

use super::Attempt;
use crate::reflexion::python::How;
use crate::{Finding, Severity};

/// The program's own file, and the check's.
const GIVEN: [&str; 2] = ["main.py", "check.py"];

/// Whatever was given is not the program's to change: the inputs, its own text, the check. The
/// sandbox forbids the first and keeps the last out of reach; whoever tries cannot pass.
pub(super) fn edited(attempt: &Attempt<'_>) -> Vec<Finding> {
    let uses = attempt.source.file_uses();
    let tried = uses.iter().filter(|used| used.how == How::Write && is_given(&used.path));
    let mut evidence: Vec<_> =
        tried.map(|used| format!("line {}: {}", used.line, used.path)).take(8).collect();
    let stderr = &attempt.execution.stderr.text;
    evidence.extend(
        stderr
            .lines()
            .filter(|line| {
                line.contains("'/inputs")
                    && (line.contains("Read-only file system") || line.contains("PermissionError"))
            })
            .take(1)
            .map(|line| line.trim().chars().take(200).collect()),
    );
    let Some(first) = evidence.first() else { return Vec::new() };
    let message = format!("the program changes what it was given: {first}");
    let mut finding = attempt.finding("check.edited", Severity::Block, &message);
    finding.evidence = evidence;
    vec![finding]
}

fn is_given(path: &str) -> bool {
    let below_workspace = path.strip_prefix("/workspace/").unwrap_or(path);
    let plain = below_workspace.trim_start_matches("./");
    path == "/inputs" || path.starts_with("/inputs/") || GIVEN.contains(&plain)
}
