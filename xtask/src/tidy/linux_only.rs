//! Checks that Linux-only crates are dependencies on Linux only. `moothall` also builds on other
//! systems, which the gate cannot test.

use super::{ProblemLevel, TidyProblem};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "linux-only";

/// Crates that do not compile or have no use on other systems.
const CRATES: &[&str] = &["command-fds", "landlock", "seccompiler"];

/// Exempt because it runs inside sandboxes, which are always Linux.
const GUEST: &str = "crates/moothall-guest/Cargo.toml";

pub(crate) fn check(tree: &SourceTree) -> Vec<TidyProblem> {
    let is_product = |path: &str| path.starts_with("crates/") && path != GUEST;
    let manifests =
        tree.texts().filter(|(path, _)| is_product(path) && path.ends_with("/Cargo.toml"));
    manifests.flat_map(|(path, text)| check_manifest(path, text)).collect()
}

fn check_manifest(path: &str, text: &str) -> Vec<TidyProblem> {
    let problem = |message: String| TidyProblem {
        path: path.to_owned(),
        line: None,
        rule: ID,
        level: ProblemLevel::Fail,
        message,
        hint: "move it to [target.'cfg(target_os = \"linux\")'.dependencies]".to_owned(),
    };
    let manifest: toml::Table = match toml::from_str(text) {
        Ok(manifest) => manifest,
        Err(error) => return vec![problem(format!("cannot read: {}", error.message()))],
    };
    let everywhere = manifest.get("dependencies").and_then(toml::Value::as_table);
    CRATES
        .iter()
        .filter(|name| everywhere.is_some_and(|table| table.contains_key(**name)))
        .map(|name| problem(format!("`{name}` exists on Linux only")))
        .collect()
}

#[cfg(test)]
#[path = "linux_only_tests.rs"]
mod tests;
