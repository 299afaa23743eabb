//! The two sandbox executions of an attempt: the program and its check.

use std::collections::BTreeMap;

use super::input::ProgramInput;
use crate::sandbox::{ExecuteRequest, GuestPath, SandboxExecution};

/// Runs the program with its inputs.
pub(crate) fn program(input: &ProgramInput, code: &str) -> ExecuteRequest {
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

/// Runs the check with the program's inputs and outputs, all read-only. It uses a separate sandbox,
/// so the program never sees the check. `None` if the path of an output file is too long.
pub(crate) fn check(
    input: &ProgramInput,
    script: &str,
    execution: &SandboxExecution,
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
