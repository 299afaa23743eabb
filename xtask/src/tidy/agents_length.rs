//! AGENTS.md is read at the start of every task, so it stays one screen.

use super::{Level, Problem};
use crate::tree::Tree;

pub(crate) const ID: &str = "agents-length";

const PATH: &str = "AGENTS.md";
const LIMIT: usize = 60;

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    let message = match tree.text(PATH).map(|text| text.lines().count()) {
        None => "is missing".to_owned(),
        Some(lines) if lines > LIMIT => format!("{lines} lines, more than {LIMIT}"),
        Some(_) => return Vec::new(),
    };
    vec![Problem {
        path: PATH.to_owned(),
        line: None,
        rule: ID,
        level: Level::Fail,
        message,
        hint: "it holds commands, tree, ten rules and where to start; the rest belongs in CONTRIBUTING.md".to_owned(),
    }]
}

#[cfg(test)]
#[path = "agents_length_tests.rs"]
mod tests;
