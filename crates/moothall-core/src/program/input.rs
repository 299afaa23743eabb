//! The input of a program run. It is stored with the run so that another process can resume it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::contract::ProgramContract;
use crate::model::ModelList;
use crate::sandbox::{FileRef, GuestPath, SandboxLimits};
use crate::{InvalidId, PromptRevision};

/// The maximum size of a task.
pub(crate) const MAX_TASK_BYTES: usize = 64 * 1024;

/// The maximum number of attempts.
pub const MAX_ATTEMPTS: u32 = 10;

/// A task with its models, sandbox settings and contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramInput {
    /// What the program should do, in the user's words.
    pub task: String,
    /// The model that writes the program, and its fallbacks.
    pub model: ModelList,
    /// The model that critiques failures; defaults to `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critic: Option<ModelList>,
    /// The answer format requested from the model.
    #[serde(default)]
    pub answer_form: AnswerFormat,
    /// The token limit of one answer.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u32,
    /// Timeout of one attempt of a model call; the gateway has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The sandbox image.
    pub image: String,
    /// Packages available in addition to the standard library, by import name: `numpy`, `PIL`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Resource limits of one execution.
    #[serde(default)]
    pub limits: SandboxLimits,
    /// The maximum number of attempts: 1 to [`MAX_ATTEMPTS`].
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// Input files, by path under `/inputs`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<GuestPath, FileRef>,
    /// The contract.
    #[serde(default, skip_serializing_if = "ProgramContract::is_empty")]
    pub contract: ProgramContract,
    /// Prompts, output schemas and parsing rules.
    #[serde(
        default = "PromptRevision::unstored",
        skip_serializing_if = "PromptRevision::is_unstored"
    )]
    pub prompts: PromptRevision,
}

fn default_max_tokens() -> u32 {
    ProgramInput::DEFAULT_MAX_TOKENS
}

fn default_attempts() -> u32 {
    ProgramInput::DEFAULT_ATTEMPTS
}

impl ProgramInput {
    /// The default number of attempts.
    pub const DEFAULT_ATTEMPTS: u32 = 3;

    /// The default token limit of one answer.
    pub const DEFAULT_MAX_TOKENS: u32 = 4096;

    /// A task with default settings: no inputs, no contract.
    pub fn new(
        task: impl Into<String>,
        model: impl Into<ModelList>,
        image: impl Into<String>,
    ) -> Self {
        Self {
            task: task.into(),
            model: model.into(),
            critic: None,
            answer_form: AnswerFormat::default(),
            max_tokens: Self::DEFAULT_MAX_TOKENS,
            timeout_ms: None,
            image: image.into(),
            packages: Vec::new(),
            limits: SandboxLimits::default(),
            attempts: Self::DEFAULT_ATTEMPTS,
            inputs: BTreeMap::new(),
            contract: ProgramContract::default(),
            prompts: PromptRevision::CURRENT,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), InvalidProgramInput> {
        use InvalidProgramInput as I;
        if self.task.trim().is_empty() {
            return Err(I::NoTask);
        }
        if self.task.len() > MAX_TASK_BYTES {
            return Err(I::LongTask);
        }
        if !(1..=MAX_ATTEMPTS).contains(&self.attempts) {
            return Err(I::Attempts);
        }
        // In the check's sandbox the program's files are in `/inputs/out`.
        let is_in_the_way = |path: &&GuestPath| path.parts().next() == Some("out");
        if self.contract.check.is_some()
            && let Some(path) = self.inputs.keys().find(is_in_the_way)
        {
            return Err(I::InputInTheWay(path.clone()));
        }
        Ok(())
    }
}

/// The answer format requested from a model. Both formats are accepted regardless.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerFormat {
    /// A JSON object with the program and the model's comments.
    #[default]
    Structured,
    /// One fenced block. Small models write working programs this way but fail in JSON.
    Fenced,
}

/// Why an input is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProgramInput {
    /// The task is empty.
    #[error("the task is empty")]
    NoTask,
    /// The task is too long.
    #[error("the task is longer than {} KiB", MAX_TASK_BYTES / 1024)]
    LongTask,
    /// The number of attempts is out of range.
    #[error("the number of attempts must be 1 to {MAX_ATTEMPTS}")]
    Attempts,
    /// An input whose path is reserved for the program's files in the check's sandbox.
    #[error(
        "input `{0}` conflicts with the check: `out` is reserved for the program's output files"
    )]
    InputInTheWay(GuestPath),
    /// An invalid effect id.
    #[error(transparent)]
    Id(#[from] InvalidId),
}
