//! Rejects dev-dependencies that enable more features of a package than the product does: builds
//! with and without tests would then compile it, and everything above it, twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use super::{ProblemLevel, TidyProblem};
use crate::shell;

pub(crate) const ID: &str = "dev-features";

/// The sets of features with which each package is built.
pub(crate) type FeatureSets = BTreeMap<String, BTreeSet<String>>;

/// Reads the features of all packages along these kinds of dependencies.
pub(crate) fn feature_sets(root: &Path, kinds: &str) -> Result<FeatureSets> {
    let tree = ["cargo", "tree", "--workspace", "--locked", "--prefix", "none"];
    let format = ["--edges", kinds, "--format", "{p}\t{f}"];
    Ok(parse(&shell::read(root, &[&tree[..], &format].concat())?))
}

/// A line has a package, a tab, its features and perhaps `(*)`.
fn parse(tree: &str) -> FeatureSets {
    let mut found = FeatureSets::new();
    for (package, features) in tree.lines().filter_map(|line| line.split_once('\t')) {
        let features = features.trim_end_matches("(*)").trim_end().to_owned();
        found.entry(package.to_owned()).or_default().insert(features);
    }
    found
}

pub(crate) fn check(product: &FeatureSets, with_tests: &FeatureSets) -> Vec<TidyProblem> {
    let differs = product.iter().filter_map(|(package, features)| {
        let tested = with_tests.get(package)?;
        (tested != features).then(|| TidyProblem {
            path: "Cargo.toml".to_owned(),
            line: None,
            rule: ID,
            level: ProblemLevel::Fail,
            message: format!(
                "tests build `{package}` with {tested:?}, the product with {features:?}"
            ),
            hint: "remove features from the dev-dependency that enables them, or add them to the dependency".to_owned(),
        })
    });
    differs.collect()
}

#[cfg(test)]
#[path = "dev_features_tests.rs"]
mod tests;
