//! The program builds on systems that are no Linux, which the gate cannot try: crates that exist on
//! Linux alone are dependencies of Linux alone.

use super::{Level, Problem};
use crate::tree::Tree;

pub(crate) const ID: &str = "linux-only";

/// Crates that do not compile elsewhere, or mean nothing there.
const CRATES: &[&str] = &["command-fds", "landlock", "seccompiler"];

/// Runs inside of sandboxes, and those are Linux.
const GUEST: &str = "crates/moothall-guest/Cargo.toml";

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    let is_product = |path: &str| path.starts_with("crates/") && path != GUEST;
    let manifests =
        tree.texts().filter(|(path, _)| is_product(path) && path.ends_with("/Cargo.toml"));
    manifests.flat_map(|(path, text)| check_manifest(path, text)).collect()
}

fn check_manifest(path: &str, text: &str) -> Vec<Problem> {
    let problem = |message: String| Problem {
        path: path.to_owned(),
        line: None,
        rule: ID,
        level: Level::Fail,
        message,
        hint: "move it below [target.'cfg(target_os = \"linux\")'.dependencies]".to_owned(),
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
