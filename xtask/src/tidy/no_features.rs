//! No Cargo features in the workspace: choices are configuration, so the binary that was tested is
//! the binary that ships.

use super::{Level, Problem};
use crate::tree::Tree;

pub(crate) const ID: &str = "no-features";

const DEPENDENCY_TABLES: &[&str] = &["dependencies", "build-dependencies"];

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    let manifests = tree.texts().filter(|(path, _)| is_manifest(path));
    manifests.flat_map(|(path, text)| check_manifest(path, text)).collect()
}

/// Fixtures below `tests/` are other people's crates.
fn is_manifest(path: &str) -> bool {
    (path == "Cargo.toml" || path.ends_with("/Cargo.toml"))
        && !path.split('/').any(|part| part == "tests")
}

fn check_manifest(path: &str, text: &str) -> Vec<Problem> {
    let problem = |message: String| Problem {
        path: path.to_owned(),
        line: None,
        rule: ID,
        level: Level::Fail,
        message,
        hint: "make the choice at run time, in the configuration".to_owned(),
    };
    let manifest: toml::Table = match toml::from_str(text) {
        Ok(manifest) => manifest,
        Err(error) => return vec![problem(format!("cannot read: {}", error.message()))],
    };
    let mut problems = Vec::new();
    if manifest.contains_key("features") {
        problems.push(problem("has a `[features]` table".to_owned()));
    }
    // An optional dependency is a feature by another name.
    for table in DEPENDENCY_TABLES.iter().filter_map(|name| manifest.get(*name)?.as_table()) {
        let optional = table.iter().filter(|(_, value)| {
            value.get("optional").and_then(toml::Value::as_bool) == Some(true)
        });
        problems
            .extend(optional.map(|(name, _)| problem(format!("dependency `{name}` is optional"))));
    }
    problems
}

#[cfg(test)]
#[path = "no_features_tests.rs"]
mod tests;
