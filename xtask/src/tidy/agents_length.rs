//! AGENTS.md is read at the start of every task, so it must fit on one screen.

use super::{ProblemLevel, TidyProblem};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "agents-length";

const PATH: &str = "AGENTS.md";
const LIMIT: usize = 60;

pub(crate) fn check(tree: &SourceTree) -> Vec<TidyProblem> {
    let message = match tree.text(PATH).map(|text| text.lines().count()) {
        None => "is missing".to_owned(),
        Some(lines) if lines > LIMIT => format!("{lines} lines, more than {LIMIT}"),
        Some(_) => return Vec::new(),
    };
    vec![TidyProblem {
        path: PATH.to_owned(),
        line: None,
        rule: ID,
        level: ProblemLevel::Fail,
        message,
        hint: "keep commands, tree, ten rules and entry points; move the rest to CONTRIBUTING.md"
            .to_owned(),
    }]
}

#[cfg(test)]
#[path = "agents_length_tests.rs"]
mod tests;
