//! Input and result of the edit workflow.

use serde::{Deserialize, Serialize};

use crate::drafts::{DraftId, DraftState, RelPath};
use crate::model::ModelList;
use crate::program::MAX_TASK_BYTES;
use crate::{InvalidId, PromptRevision};

/// The maximum number of attempts.
pub const MAX_ATTEMPTS: u32 = 10;

/// A task with its model and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// The change to make, in the user's words.
    pub task: String,
    /// The model that makes the change, and its fallbacks.
    pub model: ModelList,
    /// The files to work on; if empty, the model chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RelPath>,
    /// The maximum number of proposals: 1 to [`MAX_ATTEMPTS`].
    pub attempts: u32,
    /// How long to wait for a reviewer if a decision is needed, in seconds.
    #[serde(default)]
    pub wait_s: u64,
    /// The token limit of one answer.
    pub max_tokens: u32,
    /// Timeout of one attempt of a model call; the gateway has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Prompts, output schemas and parsing rules.
    #[serde(
        default = "PromptRevision::unstored",
        skip_serializing_if = "PromptRevision::is_unstored"
    )]
    pub prompts: PromptRevision,
}

impl EditInput {
    /// The default number of attempts.
    pub const DEFAULT_ATTEMPTS: u32 = 3;

    /// The default token limit of one answer, enough for a fairly long file.
    pub const DEFAULT_MAX_TOKENS: u32 = 8192;

    /// A task with default settings.
    pub fn new(task: impl Into<String>, model: impl Into<ModelList>) -> Self {
        Self {
            task: task.into(),
            model: model.into(),
            files: Vec::new(),
            attempts: Self::DEFAULT_ATTEMPTS,
            wait_s: 0,
            max_tokens: Self::DEFAULT_MAX_TOKENS,
            timeout_ms: None,
            prompts: PromptRevision::CURRENT,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), InvalidEdit> {
        if self.task.trim().is_empty() {
            return Err(InvalidEdit::NoTask);
        }
        if self.task.len() > MAX_TASK_BYTES {
            return Err(InvalidEdit::LongTask);
        }
        if !(1..=MAX_ATTEMPTS).contains(&self.attempts) {
            return Err(InvalidEdit::Attempts);
        }
        Ok(())
    }
}

/// Why an edit input is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEdit {
    /// The task is empty.
    #[error("the task is empty")]
    NoTask,
    /// The task is too long.
    #[error("the task is longer than {MAX_TASK_BYTES} bytes")]
    LongTask,
    /// The number of attempts is out of range.
    #[error("the number of attempts must be 1 to {MAX_ATTEMPTS}")]
    Attempts,
    /// An invalid effect id.
    #[error(transparent)]
    Id(#[from] InvalidId),
}

/// The result of an edit run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditResult {
    /// The number of proposals made.
    pub attempts: u32,
    /// The state of the last proposal; absent if none was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<DraftState>,
    /// Its drafts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<DraftId>,
    /// Its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<RelPath>,
    /// The model's summary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
}
