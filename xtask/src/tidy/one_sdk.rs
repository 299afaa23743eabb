//! The SDK of Restate is named in one module of the product, behind which nobody sees it. Its futures
//! can be awaited together in ways that compile, pass every test and never end after a crash; that
//! module's wrapper makes those impossible to write. The benchmark that measures this wrapper beside
//! the bare SDK names it, too.

use super::{Level, Problem};
use crate::tree::Tree;

pub(crate) const ID: &str = "one-sdk";

/// Put together from halves so that this file does not trip over itself.
const SDK: &str = concat!("restate", "_sdk");

/// The one module.
const HOME: &str = "crates/moothall-restate/src/sdk.rs";

/// The baseline of `bench:engine`, which no product contains.
const BASELINE: &str = "bench/src/engine/bare.rs";

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let sources = tree.texts().filter(|(path, _)| path.ends_with(".rs"));
    let sources = sources.filter(|(path, _)| ![HOME, BASELINE].contains(path));
    for (path, text) in sources {
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains(SDK) {
                problems.push(Problem {
                    path: path.to_owned(),
                    line: Some(index + 1),
                    rule: ID,
                    level: Level::Fail,
                    message: format!("names `{SDK}`, which only {HOME} may"),
                    hint: "use `moothall_engine::waves::Durable`".to_owned(),
                });
            }
        }
    }
    problems
}

#[cfg(test)]
#[path = "one_sdk_tests.rs"]
mod tests;
