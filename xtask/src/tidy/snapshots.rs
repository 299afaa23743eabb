//! Rejects pending snapshots: a snapshot that was not reviewed tests nothing.

use std::path::Path;

use anyhow::Result;

use super::{ProblemLevel, TidyProblem};
use crate::shell;

pub(crate) const ID: &str = "snapshots";

const PENDING: &[&str] = &[".snap.new", ".pending-snap"];

/// Files named like pending snapshots. Git ignores them, so they are not in `SourceTree`.
pub(crate) fn candidates(root: &Path) -> Result<Vec<String>> {
    let list = |flags: &[&str]| {
        let base = ["git", "ls-files", "-z"];
        let patterns = ["--", "*.snap.new", "*.pending-snap", ":!target"];
        let command_line: Vec<_> = base.iter().chain(flags).chain(&patterns).copied().collect();
        shell::read(root, &command_line)
    };
    let ignored = list(&["--others", "--ignored", "--exclude-standard"])?;
    let visible = list(&["--cached", "--others", "--exclude-standard"])?;
    Ok(ignored
        .split_terminator('\0')
        .chain(visible.split_terminator('\0'))
        .map(str::to_owned)
        .collect())
}

pub(crate) fn check(paths: &[String]) -> Vec<TidyProblem> {
    let pending = paths.iter().filter(|path| PENDING.iter().any(|end| path.ends_with(end)));
    pending
        .map(|path| TidyProblem {
            path: path.clone(),
            line: None,
            rule: ID,
            level: ProblemLevel::Fail,
            message: "is a snapshot that has not been reviewed".to_owned(),
            hint: "review the diff, then rename it over the `.snap` file or delete it".to_owned(),
        })
        .collect()
}

#[cfg(test)]
#[path = "snapshots_tests.rs"]
mod tests;
