//! Checks that the committed generated files are up to date. They are committed so readers need no
//! tool.

use super::{ProblemLevel, TidyProblem};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "generated";

/// `fresh` is the expected content of each generated file.
pub(crate) fn check(tree: &SourceTree, fresh: &[(&str, String)]) -> Vec<TidyProblem> {
    fresh.iter().filter_map(|(path, fresh)| check_file(path, tree.text(path), fresh)).collect()
}

fn check_file(path: &str, committed: Option<&str>, fresh: &str) -> Option<TidyProblem> {
    if committed == Some(fresh) {
        return None;
    }
    let line = committed.map(|committed| first_difference(committed, fresh));
    let message = if committed.is_some() { "is out of date from this line" } else { "is missing" };
    Some(TidyProblem {
        path: path.to_owned(),
        line,
        rule: ID,
        level: ProblemLevel::Fail,
        message: message.to_owned(),
        hint: "run `cargo xtask codegen` and commit the file".to_owned(),
    })
}

fn first_difference(committed: &str, fresh: &str) -> usize {
    committed.lines().zip(fresh.lines()).take_while(|(committed, fresh)| committed == fresh).count()
        + 1
}

#[cfg(test)]
#[path = "generated_tests.rs"]
mod tests;
