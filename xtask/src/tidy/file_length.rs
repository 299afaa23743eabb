//! A file holds one idea. Length is the part of that a tool can see.

use super::{Level, Problem};
use crate::tree::{Tree, is_test_file};

pub(crate) const ID: &str = "file-length";

const WARN_ABOVE: usize = 500;
const FAIL_ABOVE: usize = 800;
/// Tests are tables more often than ideas, so they may be longer.
const TESTS_FAIL_ABOVE: usize = 1500;

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    tree.rust().filter_map(|(path, text)| check_file(path, text.lines().count())).collect()
}

fn check_file(path: &str, lines: usize) -> Option<Problem> {
    let (level, limit) = if is_test_file(path) {
        (lines > TESTS_FAIL_ABOVE).then_some((Level::Fail, TESTS_FAIL_ABOVE))?
    } else if lines > FAIL_ABOVE {
        (Level::Fail, FAIL_ABOVE)
    } else {
        (lines > WARN_ABOVE).then_some((Level::Warn, WARN_ABOVE))?
    };
    Some(Problem {
        path: path.to_owned(),
        line: None,
        rule: ID,
        level,
        message: format!("{lines} lines, more than {limit}"),
        hint: "move one idea to a file of its own: `thing.rs` and `thing/part.rs`".to_owned(),
    })
}

#[cfg(test)]
#[path = "file_length_tests.rs"]
mod tests;
