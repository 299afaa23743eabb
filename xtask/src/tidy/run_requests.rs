//! Checks that runs are started from a typed request: no other code reads its stored form or
//! compares workflow names, and HTTP requests do not go through the command-line types.

use super::{ProblemLevel, TidyProblem};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "run-requests";

/// Defines the request, and so may read names and stored forms.
const SPEC: &str = "crates/moothall-core/src/run_spec.rs";

/// Code that compares the name of a workflow.
const COMPARISONS: &[&str] = &[
    "workflow ==",
    "workflow !=",
    "workflow() ==",
    "workflow() !=",
    "workflow.as_str()",
    "== Consult::NAME",
    "!= Consult::NAME",
    "== ProgramRun::NAME",
    "!= ProgramRun::NAME",
    "== EditWorkflow::NAME",
    "!= EditWorkflow::NAME",
];

/// Files that may convert a stored form to a request: the store, and `ask`, whose requests are
/// never stored.
const READERS: &[&str] =
    &[SPEC, "crates/moothall-store/src/rows.rs", "crates/moothall/src/commands/ask.rs"];

/// The code between an HTTP request and a run.
const HTTP: &[&str] = &[
    "crates/moothall-server/src/",
    "crates/moothall/src/commands/serve/",
    "crates/moothall/src/launch/http_request.rs",
];

pub(crate) fn check(tree: &SourceTree) -> Vec<TidyProblem> {
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
                problems.push(TidyProblem {
                    path: path.to_owned(),
                    line: Some(index + 1),
                    rule: ID,
                    level: ProblemLevel::Fail,
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
        return Some(("compares a workflow name", "match on `RunSpec` or `RunKind`"));
    }
    if !READERS.contains(&path) && code.contains("StoredSpec::from_columns(") {
        return Some(("reads the stored form of a run", "take a `RunSpec`"));
    }
    let is_http = HTTP.iter().any(|prefix| path.starts_with(prefix));
    if is_http && (code.contains("clap::") || code.contains("crate::args")) {
        return Some((
            "uses command-line types to serve HTTP",
            "build the request from its fields",
        ));
    }
    None
}

#[cfg(test)]
#[path = "run_requests_tests.rs"]
mod tests;
