//! Detects programs that modify the files they are checked against.

use super::AttemptContext;
use crate::program::python::FileAccess;
use crate::{FindingSeverity, RunFinding};

/// The program's own file and the check script.
const PROTECTED_FILES: [&str; 2] = ["main.py", "check.py"];

/// Blocks programs that try to modify given files: the inputs, their own source, or the check. The
/// sandbox prevents the first and keeps the last out of reach, but the attempt alone disqualifies a
/// program.
pub(crate) fn edited(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let uses = attempt.source.file_uses();
    let tried = uses.iter().filter(|used| used.how == FileAccess::Write && is_given(&used.path));
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
    let mut finding = attempt.finding("check.edited", FindingSeverity::Block, &message);
    finding.evidence = evidence;
    vec![finding]
}

fn is_given(path: &str) -> bool {
    let below_workspace = path.strip_prefix("/workspace/").unwrap_or(path);
    let plain = below_workspace.trim_start_matches("./");
    path == "/inputs" || path.starts_with("/inputs/") || PROTECTED_FILES.contains(&plain)
}
