//! Checks that the lock files of nested workspaces list the current dependencies of our crates.
//! Cargo updates only the lock file of the workspace it builds, so without this rule a stale lock
//! file is noticed only in the gate.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use toml::Table;

use super::{ProblemLevel, TidyProblem};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "nested-locks";

const LOCKS: &[&str] = &["bench/secrets/Cargo.lock", "fuzz/libfuzzer/Cargo.lock"];

#[derive(Deserialize)]
struct LockFile {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    #[serde(default)]
    dependencies: Vec<String>,
}

#[derive(Deserialize)]
struct CrateManifest {
    #[serde(default)]
    dependencies: Table,
    #[serde(default, rename = "build-dependencies")]
    build_dependencies: Table,
}

pub(crate) fn check(tree: &SourceTree) -> Result<Vec<TidyProblem>> {
    let mut problems = Vec::new();
    for path in LOCKS {
        let text = tree.text(path).with_context(|| format!("{path} not found"))?;
        for package in toml::from_str::<LockFile>(text)?.package {
            let Some(manifest) = tree.text(&format!("crates/{}/Cargo.toml", package.name)) else {
                continue;
            };
            let CrateManifest { dependencies, build_dependencies } = toml::from_str(manifest)?;
            let needed: BTreeSet<&str> =
                dependencies.keys().chain(build_dependencies.keys()).map(String::as_str).collect();
            // An entry also has a version if the lock file holds two versions of the crate.
            let locked: BTreeSet<&str> =
                package.dependencies.iter().filter_map(|entry| entry.split(' ').next()).collect();
            if needed != locked {
                problems.push(TidyProblem {
                    path: (*path).to_owned(),
                    line: None,
                    rule: ID,
                    level: ProblemLevel::Fail,
                    message: format!("the dependencies of `{}` have changed", package.name),
                    hint: "run `cargo metadata --format-version 1` in its directory".to_owned(),
                });
            }
        }
    }
    Ok(problems)
}

#[cfg(test)]
#[path = "nested_locks_tests.rs"]
mod tests;
