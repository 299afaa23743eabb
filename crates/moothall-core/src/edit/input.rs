//! What the agent is asked for, and what it has to show.

use serde::{Deserialize, Serialize};

use crate::InvalidId;
use crate::drafts::{DraftId, RelPath, State};
use crate::model::ModelName;
use crate::reflexion::MAX_TASK_BYTES;

/// The most attempts.
pub const MAX_ATTEMPTS: u32 = 10;

/// A task, who does it, and how often it may try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// What shall be changed, in the user's words.
    pub task: String,
    /// Who changes it.
    pub model: ModelName,
    /// The files to work on; empty: the model chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RelPath>,
    /// How many proposals there may be: 1 to [`MAX_ATTEMPTS`].
    pub attempts: u32,
    /// Seconds to wait for a person where one must decide.
    #[serde(default)]
    pub wait_s: u64,
    /// The most tokens one answer may have.
    pub max_tokens: u32,
    /// How long one try of a model call may take. The gateway has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl EditInput {
    /// Attempts where nothing else is said.
    pub const USUAL_ATTEMPTS: u32 = 3;

    /// Tokens of one answer where nothing else is said: a whole file of some length.
    pub const USUAL_MAX_TOKENS: u32 = 8192;

    /// A task with everything else as usual.
    pub fn new(task: impl Into<String>, model: ModelName) -> Self {
        Self {
            task: task.into(),
            model,
            files: Vec::new(),
            attempts: Self::USUAL_ATTEMPTS,
            wait_s: 0,
            max_tokens: Self::USUAL_MAX_TOKENS,
            timeout_ms: None,
        }
    }

    pub(super) fn validate(&self) -> Result<(), InvalidEdit> {
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

/// Why an input is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEdit {
    /// Nothing to do.
    #[error("the task is empty")]
    NoTask,
    /// Too much to read.
    #[error("the task is longer than {MAX_TASK_BYTES} bytes")]
    LongTask,
    /// None, or too many.
    #[error("there are 1 to {MAX_ATTEMPTS} attempts")]
    Attempts,
    /// An id of ours is none.
    #[error(transparent)]
    Id(#[from] InvalidId),
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edited {
    /// Proposals that were made.
    pub attempts: u32,
    /// Where the last one stands; absent where none could be handed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Its drafts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<DraftId>,
    /// Its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<RelPath>,
    /// What the model says about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
}
