//! The lock files of nested workspaces know the dependencies of our crates. Cargo updates only the lock file of the workspace that is
//! built, so a new dependency is noticed in the gate otherwise.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use toml::Table;

use super::{Level, Problem};
use crate::tree::Tree;

pub(crate) const ID: &str = "nested-locks";

const LOCKS: &[&str] = &["bench/secrets/Cargo.lock", "fuzz/Cargo.lock"];

#[derive(Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    #[serde(default)]
    dependencies: Vec<String>,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    dependencies: Table,
    #[serde(default, rename = "build-dependencies")]
    build_dependencies: Table,
}

pub(crate) fn check(tree: &Tree) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for path in LOCKS {
        let text = tree.text(path).with_context(|| format!("there is no {path}"))?;
        for package in toml::from_str::<Lock>(text)?.package {
            let Some(manifest) = tree.text(&format!("crates/{}/Cargo.toml", package.name)) else {
                continue;
            };
            let Manifest { dependencies, build_dependencies } = toml::from_str(manifest)?;
            let needed: BTreeSet<&str> =
                dependencies.keys().chain(build_dependencies.keys()).map(String::as_str).collect();
            // An entry has a version behind the name if there are two of them.
            let locked: BTreeSet<&str> =
                package.dependencies.iter().filter_map(|entry| entry.split(' ').next()).collect();
            if needed != locked {
                problems.push(Problem {
                    path: (*path).to_owned(),
                    line: None,
                    rule: ID,
                    level: Level::Fail,
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
