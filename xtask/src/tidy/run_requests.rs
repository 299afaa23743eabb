//! Runs are started from a typed request. Nobody else reads its stored form or compares workflow names, and HTTP requests do not pass
//! through the command line.

use super::{Level, Problem};
use crate::tree::Tree;

pub(crate) const ID: &str = "run-requests";

/// The type itself, which is where names and stored forms are read.
const SPEC: &str = "crates/moothall-core/src/run_spec.rs";

/// How the name of a workflow is compared.
const COMPARISONS: &[&str] = &[
    "workflow ==",
    "workflow !=",
    "workflow() ==",
    "workflow() !=",
    "workflow.as_str()",
    "== Consult::NAME",
    "!= Consult::NAME",
    "== Reflexion::NAME",
    "!= Reflexion::NAME",
    "== EditWorkflow::NAME",
    "!= EditWorkflow::NAME",
];

/// Who may turn a stored form into a request: the store, and `ask`, whose questions are never stored.
const READERS: &[&str] =
    &[SPEC, "crates/moothall-store/src/rows.rs", "crates/moothall/src/commands/ask.rs"];

/// The path of an HTTP request to a run.
const HTTP: &[&str] = &[
    "crates/moothall-server/src/",
    "crates/moothall/src/commands/serve/",
    "crates/moothall/src/launch/from_request.rs",
];

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let sources = tree.texts().filter(|(path, _)| {
        path.starts_with("crates/")
            && path.contains("/src/")
            && path.ends_with(".rs")
            && !path.ends_with("_tests.rs")
    });
    for (path, text) in sources {
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some((message, hint)) = problem(path, code) {
                problems.push(Problem {
                    path: path.to_owned(),
                    line: Some(index + 1),
                    rule: ID,
                    level: Level::Fail,
                    message: message.to_owned(),
                    hint: hint.to_owned(),
                });
            }
        }
    }
    problems
}

fn problem(path: &str, code: &str) -> Option<(&'static str, &'static str)> {
    if path != SPEC && COMPARISONS.iter().any(|comparison| code.contains(comparison)) {
        return Some(("compares the name of a workflow", "match on `RunSpec` or `RunKind`"));
    }
    if !READERS.contains(&path) && code.contains("StoredSpec::from_columns(") {
        return Some(("reads the stored form of a run", "take a `RunSpec`"));
    }
    let is_http = HTTP.iter().any(|place| path.starts_with(place));
    if is_http && (code.contains("clap::") || code.contains("crate::args")) {
        return Some(("uses the command line to serve HTTP", "build the request from its fields"));
    }
    None
}

#[cfg(test)]
#[path = "run_requests_tests.rs"]
mod tests;
