//! What the last attempt of a run came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sandbox::{Execution, Exit, FileRef, GuestPath, IsolationClass, Output};
use crate::{EffectId, Sha256Hex};

/// How much of each stream is kept; the whole is in the execution's result.
const MAX_STDOUT_BYTES: usize = 64 * 1024;
const MAX_STDERR_BYTES: usize = 16 * 1024;

/// The last attempt of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempted {
    /// How many attempts were made; this is the last.
    pub attempts: u32,
    /// The call whose answer holds the program; absent where the model wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_from: Option<EffectId>,
    /// The hash of the program's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_sha256: Option<Sha256Hex>,
    /// How the program ended; absent where none was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// How strong the wall around it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<IsolationClass>,
    /// The beginning of what it printed.
    #[serde(default)]
    pub stdout: Output,
    /// The end of its errors.
    #[serde(default)]
    pub stderr: Output,
    /// Files it left in its output folder, by path from there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<GuestPath, FileRef>,
}

impl Attempted {
    pub(super) fn of(attempts: u32, from: &EffectId, code: &str, execution: &Execution) -> Self {
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

    pub(super) fn without_program(attempts: u32) -> Self {
        Self {
            attempts,
            code_from: None,
            code_sha256: None,
            exit: None,
            class: None,
            stdout: Output::default(),
            stderr: Output::default(),
            files: BTreeMap::new(),
        }
    }
}

fn beginning(output: &Output, max_bytes: usize) -> Output {
    let kept = output.text.floor_char_boundary(max_bytes);
    Output {
        text: output.text[..kept].to_owned(),
        truncated: output.truncated || kept < output.text.len(),
    }
}

fn end(output: &Output, max_bytes: usize) -> Output {
    let from = output.text.ceil_char_boundary(output.text.len().saturating_sub(max_bytes));
    Output { text: output.text[from..].to_owned(), truncated: output.truncated || from > 0 }
}
