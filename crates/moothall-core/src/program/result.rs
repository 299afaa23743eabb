//! The result of the last attempt of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sandbox::{
    CapturedOutput, ExecutionExit, FileRef, GuestPath, IsolationClass, SandboxExecution,
};
use crate::{EffectId, Sha256Hex};

/// How much of each stream is kept; the execution's result has everything.
const MAX_STDOUT_BYTES: usize = 64 * 1024;
const MAX_STDERR_BYTES: usize = 16 * 1024;

/// The last attempt of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramResult {
    /// The number of attempts made, including this one.
    pub attempts: u32,
    /// The call whose answer contains the program; absent if the model wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_from: Option<EffectId>,
    /// The hash of the program's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_sha256: Option<Sha256Hex>,
    /// The exit status; absent if no program ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExecutionExit>,
    /// The isolation class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<IsolationClass>,
    /// The beginning of standard output.
    #[serde(default)]
    pub stdout: CapturedOutput,
    /// The end of standard error.
    #[serde(default)]
    pub stderr: CapturedOutput,
    /// Files in the program's output directory, by path relative to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<GuestPath, FileRef>,
}

impl ProgramResult {
    pub(crate) fn of(
        attempts: u32,
        from: &EffectId,
        code: &str,
        execution: &SandboxExecution,
    ) -> Self {
        Self {
            attempts,
            code_from: Some(from.clone()),
            code_sha256: Some(Sha256Hex::of(code.as_bytes())),
            exit: Some(execution.exit.clone()),
            class: Some(execution.attestation.class),
            stdout: beginning(&execution.stdout, MAX_STDOUT_BYTES),
            stderr: end(&execution.stderr, MAX_STDERR_BYTES),
            files: execution.files.clone(),
        }
    }

    pub(crate) fn without_program(attempts: u32) -> Self {
        Self {
            attempts,
            code_from: None,
            code_sha256: None,
            exit: None,
            class: None,
            stdout: CapturedOutput::default(),
            stderr: CapturedOutput::default(),
            files: BTreeMap::new(),
        }
    }
}

fn beginning(output: &CapturedOutput, max_bytes: usize) -> CapturedOutput {
    let kept = output.text.floor_char_boundary(max_bytes);
    CapturedOutput {
        text: output.text[..kept].to_owned(),
        truncated: output.truncated || kept < output.text.len(),
    }
}

fn end(output: &CapturedOutput, max_bytes: usize) -> CapturedOutput {
    let from = output.text.ceil_char_boundary(output.text.len().saturating_sub(max_bytes));
    CapturedOutput { text: output.text[from..].to_owned(), truncated: output.truncated || from > 0 }
}
