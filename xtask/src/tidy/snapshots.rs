//! A snapshot that nobody looked at is a test that says nothing.

use std::path::Path;

use anyhow::Result;

use super::{Level, Problem};
use crate::shell;

pub(crate) const ID: &str = "snapshots";

const PENDING: &[&str] = &[".snap.new", ".pending-snap"];

/// Files named like pending snapshots. They are ignored by git, so the tree does not hold them.
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

pub(crate) fn check(paths: &[String]) -> Vec<Problem> {
    let pending = paths.iter().filter(|path| PENDING.iter().any(|end| path.ends_with(end)));
    pending
        .map(|path| Problem {
            path: path.clone(),
            line: None,
            rule: ID,
            level: Level::Fail,
            message: "is a snapshot that nobody has reviewed".to_owned(),
            hint: "read the difference, then rename it over the `.snap` file or delete it"
                .to_owned(),
        })
        .collect()
}

#[cfg(test)]
#[path = "snapshots_tests.rs"]
mod tests;
