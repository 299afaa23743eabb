//! Allows only one module of the product to name the Restate SDK. Its futures can be awaited
//! together in ways that compile, pass every test and never finish after a crash; the wrapper in
//! that module rules these out. The benchmark that compares this wrapper with the bare SDK is
//! exempt.

use super::{ProblemLevel, TidyProblem};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "one-sdk";

/// Concatenated from halves so this file does not match itself.
const SDK: &str = concat!("restate", "_sdk");

const HOME: &str = "crates/moothall-restate/src/sdk.rs";

/// The baseline of `bench:engine`, which is not part of the product.
const BASELINE: &str = "bench/src/engine/bare.rs";

pub(crate) fn check(tree: &SourceTree) -> Vec<TidyProblem> {
    let mut problems = Vec::new();
    let sources = tree.texts().filter(|(path, _)| path.ends_with(".rs"));
    let sources = sources.filter(|(path, _)| ![HOME, BASELINE].contains(path));
    for (path, text) in sources {
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains(SDK) {
                problems.push(TidyProblem {
                    path: path.to_owned(),
                    line: Some(index + 1),
                    rule: ID,
                    level: ProblemLevel::Fail,
                    message: format!("names `{SDK}`; only {HOME} may use it"),
                    hint: "use `moothall_engine::durable::DurableEngine`".to_owned(),
                });
            }
        }
    }
    problems
}

#[cfg(test)]
#[path = "one_sdk_tests.rs"]
mod tests;
