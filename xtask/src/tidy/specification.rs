//! Checks that the test or benchmark of every promise in SPECIFICATION.md exists.
//!
//! They are named in code spans: `test:budget::ledger_never_overshoots`, with groups as in a shell
//! (`test:faults::{openai,ollama}::connection_reset`), and `bench:gateway`.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Options, Parser};

use super::{ProblemLevel, TidyProblem, line_of};
use crate::tokens::tokens;
use crate::tree::{SourceTree, is_test_file};

pub(crate) const ID: &str = "specification";

const SPECIFICATION: &str = "SPECIFICATION.md";

/// The identifiers of one test file, including those inside macros, and the modules in its path.
struct TestFile {
    names: BTreeSet<String>,
}

pub(crate) fn check(tree: &SourceTree, benches: &[String]) -> Vec<TidyProblem> {
    let Some(text) = tree.text(SPECIFICATION) else {
        return vec![problem(None, "is missing".to_owned())];
    };
    let files: Vec<TestFile> =
        tree.rust().filter(|(path, _)| is_test_file(path)).map(read).collect();
    let mut problems = Vec::new();
    for (code, offset) in code_spans(text) {
        let line = Some(line_of(text, offset));
        if let Some(names) = code.strip_prefix("test:") {
            let missing =
                expand(names).into_iter().filter(|name| !files.iter().any(|file| file.has(name)));
            problems.extend(missing.map(|name| problem(line, format!("unknown test `{name}`"))));
        } else if let Some(name) = code.strip_prefix("bench:")
            && !benches.iter().any(|bench| bench == name)
        {
            problems.push(problem(line, format!("unknown benchmark `cargo xtask bench {name}`")));
        }
    }
    problems
}

impl TestFile {
    /// Whether this file contains every part of the path.
    ///
    /// Weaker than listing the tests with the test runner, which would need a full build, but
    /// enough to catch a rename.
    fn has(&self, name: &str) -> bool {
        name.split("::").all(|part| self.names.contains(part))
    }
}

fn read((path, source): (&str, &str)) -> TestFile {
    // A file that does not parse counts as having no tests; the compiler reports the error.
    let mut names: BTreeSet<String> =
        tokens(source).unwrap_or_default().into_iter().map(|token| token.text).collect();
    for part in path.split('/') {
        let module = part.trim_end_matches(".rs").replace('-', "_");
        // `ledger_tests.rs` is the module `ledger::tests`.
        if let Some(parent) = module.strip_suffix("_tests") {
            names.extend([parent.to_owned(), "tests".to_owned()]);
        }
        names.insert(module);
    }
    TestFile { names }
}

fn code_spans(text: &str) -> impl Iterator<Item = (String, usize)> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    events.filter_map(|(event, range)| match event {
        Event::Code(code) => Some((code.to_string(), range.start)),
        _ => None,
    })
}

/// Expands `a::{b,c}::d` to `a::b::d` and `a::c::d`.
fn expand(names: &str) -> Vec<String> {
    let group =
        names.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match group {
        None => vec![names.to_owned()],
        Some((before, (choices, after))) => choices
            .split(',')
            .flat_map(|choice| {
                expand(after)
                    .into_iter()
                    .map(move |after| format!("{before}{}{after}", choice.trim()))
            })
            .collect(),
    }
}

fn problem(line: Option<usize>, message: String) -> TidyProblem {
    TidyProblem {
        path: SPECIFICATION.to_owned(),
        line,
        rule: ID,
        level: ProblemLevel::Fail,
        message,
        hint: "name the test as `test:module::name` or the benchmark as `bench:name`, or mark the promise as untested"
            .to_owned(),
    }
}

#[cfg(test)]
#[path = "specification_tests.rs"]
mod tests;
