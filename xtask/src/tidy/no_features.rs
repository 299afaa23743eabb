//! Rejects Cargo features in the workspace: choices are made in the configuration, so the tested
//! binary is the released binary.

use super::{ProblemLevel, TidyProblem};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "no-features";

const DEPENDENCY_TABLES: &[&str] = &["dependencies", "build-dependencies"];

pub(crate) fn check(tree: &SourceTree) -> Vec<TidyProblem> {
    let manifests = tree.texts().filter(|(path, _)| is_manifest(path));
    manifests.flat_map(|(path, text)| check_manifest(path, text)).collect()
}

/// Fixtures below `tests/` are not crates of this workspace.
fn is_manifest(path: &str) -> bool {
    (path == "Cargo.toml" || path.ends_with("/Cargo.toml"))
        && !path.split('/').any(|part| part == "tests")
}

fn check_manifest(path: &str, text: &str) -> Vec<TidyProblem> {
    let problem = |message: String| TidyProblem {
        path: path.to_owned(),
        line: None,
        rule: ID,
        level: ProblemLevel::Fail,
        message,
        hint: "make the choice at run time, through the configuration".to_owned(),
    };
    let manifest: toml::Table = match toml::from_str(text) {
        Ok(manifest) => manifest,
        Err(error) => return vec![problem(format!("cannot read: {}", error.message()))],
    };
    let mut problems = Vec::new();
    if manifest.contains_key("features") {
        problems.push(problem("has a `[features]` table".to_owned()));
    }
    // An optional dependency is an implicit feature.
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
