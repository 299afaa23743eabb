//! What is run in the two sandboxes of an attempt.

use std::collections::BTreeMap;

use super::input::ReflexionInput;
use crate::sandbox::{ExecuteRequest, Execution, GuestPath};

/// The program, with what it was given.
pub(super) fn program(input: &ReflexionInput, code: &str) -> ExecuteRequest {
    ExecuteRequest {
        image: input.image.clone(),
        sources: path("main.py").map(|main| (main, code.to_owned())).into_iter().collect(),
        inputs: input.inputs.clone(),
        argv: vec!["python3".to_owned(), "main.py".to_owned()],
        env: BTreeMap::new(),
        stdin: String::new(),
        limits: input.limits,
        collect: true,
    }
}

/// The check, with what the program was given and what it left, none of which it can change. The
/// program never sees the check: this is a sandbox of its own. Nothing where a file that was left
/// has a path that cannot be given.
pub(super) fn check(
    input: &ReflexionInput,
    script: &str,
    execution: &Execution,
) -> Option<ExecuteRequest> {
    let files = [
        ("check.py", script.to_owned()),
        ("stdout.txt", execution.stdout.text.clone()),
        ("stderr.txt", execution.stderr.text.clone()),
        ("exit.txt", format!("{}\n", execution.exit)),
    ];
    let sources = files.into_iter().filter_map(|(name, text)| Some((path(name)?, text)));
    let mut inputs = input.inputs.clone();
    for (left, file) in &execution.files {
        inputs.insert(path(&format!("{}/{left}", ExecuteRequest::OUTPUT_FOLDER))?, *file);
    }
    Some(ExecuteRequest {
        sources: sources.collect(),
        inputs,
        argv: vec!["python3".to_owned(), "check.py".to_owned()],
        collect: false,
        ..program(input, "")
    })
}

fn path(text: &str) -> Option<GuestPath> {
    text.parse().ok()
}
