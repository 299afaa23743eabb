//! Generated files are committed, so that readers need no tool, and compared here, so that they
//! never lag behind.

use super::{Level, Problem};
use crate::tree::Tree;

pub(crate) const ID: &str = "generated";

/// `fresh` is what each generated file should hold.
pub(crate) fn check(tree: &Tree, fresh: &[(&str, String)]) -> Vec<Problem> {
    fresh.iter().filter_map(|(path, fresh)| check_file(path, tree.text(path), fresh)).collect()
}

fn check_file(path: &str, committed: Option<&str>, fresh: &str) -> Option<Problem> {
    if committed == Some(fresh) {
        return None;
    }
    let line = committed.map(|committed| first_difference(committed, fresh));
    let message = if committed.is_some() { "is stale from here on" } else { "is missing" };
    Some(Problem {
        path: path.to_owned(),
        line,
        rule: ID,
        level: Level::Fail,
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
