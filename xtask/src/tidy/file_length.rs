//! Limits the length of Rust files.

use super::{ProblemLevel, TidyProblem};
use crate::tree::{SourceTree, is_test_file};

pub(crate) const ID: &str = "file-length";

const WARN_ABOVE: usize = 500;
const FAIL_ABOVE: usize = 800;
/// Tests may be longer, because many are tables of cases.
const TESTS_FAIL_ABOVE: usize = 1500;

pub(crate) fn check(tree: &SourceTree) -> Vec<TidyProblem> {
    tree.rust().filter_map(|(path, text)| check_file(path, text.lines().count())).collect()
}

fn check_file(path: &str, lines: usize) -> Option<TidyProblem> {
    let (level, limit) = if is_test_file(path) {
        (lines > TESTS_FAIL_ABOVE).then_some((ProblemLevel::Fail, TESTS_FAIL_ABOVE))?
    } else if lines > FAIL_ABOVE {
        (ProblemLevel::Fail, FAIL_ABOVE)
    } else {
        (lines > WARN_ABOVE).then_some((ProblemLevel::Warn, WARN_ABOVE))?
    };
    Some(TidyProblem {
        path: path.to_owned(),
        line: None,
        rule: ID,
        level,
        message: format!("{lines} lines, more than {limit}"),
        hint: "move one part to a separate file: `thing.rs` and `thing/part.rs`".to_owned(),
    })
}

#[cfg(test)]
#[path = "file_length_tests.rs"]
mod tests;
