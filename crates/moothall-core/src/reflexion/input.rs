//! What a run of the workflow is asked for. It is kept with the run, so that the run can go on in
//! another process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::contract::Contract;
use crate::InvalidId;
use crate::model::ModelName;
use crate::sandbox::{FileRef, GuestPath, Limits};

/// The longest task.
pub(crate) const MAX_TASK_BYTES: usize = 64 * 1024;

/// The most attempts.
pub const MAX_ATTEMPTS: u32 = 10;

/// A task, who writes the program, where it runs and what it must do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReflexionInput {
    /// What the program shall do, in the user's words.
    pub task: String,
    /// Who writes it.
    pub model: ModelName,
    /// Who says what went wrong; the writer, where nobody else is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critic: Option<ModelName>,
    /// How the writer is asked to answer.
    #[serde(default)]
    pub answer_form: AnswerForm,
    /// The most tokens one answer may have.
    #[serde(default = "usual_max_tokens")]
    pub max_tokens: u32,
    /// How long one try of a model call may take. The gateway has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The image that the program runs in.
    pub image: String,
    /// What can be imported there beside the standard library, by the names that programs write:
    /// `numpy`, `PIL`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// The most one execution may use.
    #[serde(default)]
    pub limits: Limits,
    /// How many programs may be tried: 1 to [`MAX_ATTEMPTS`].
    #[serde(default = "usual_attempts")]
    pub attempts: u32,
    /// Files that the program is given, by path under `/inputs`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<GuestPath, FileRef>,
    /// What the program must do to pass.
    #[serde(default, skip_serializing_if = "Contract::is_empty")]
    pub contract: Contract,
}

fn usual_max_tokens() -> u32 {
    ReflexionInput::USUAL_MAX_TOKENS
}

fn usual_attempts() -> u32 {
    ReflexionInput::USUAL_ATTEMPTS
}

impl ReflexionInput {
    /// Attempts where nothing else is said.
    pub const USUAL_ATTEMPTS: u32 = 3;

    /// Tokens of one answer where nothing else is said.
    pub const USUAL_MAX_TOKENS: u32 = 4096;

    /// A task with everything else as usual: no inputs, no contract.
    pub fn new(task: impl Into<String>, model: ModelName, image: impl Into<String>) -> Self {
        Self {
            task: task.into(),
            model,
            critic: None,
            answer_form: AnswerForm::default(),
            max_tokens: Self::USUAL_MAX_TOKENS,
            timeout_ms: None,
            image: image.into(),
            packages: Vec::new(),
            limits: Limits::default(),
            attempts: Self::USUAL_ATTEMPTS,
            inputs: BTreeMap::new(),
            contract: Contract::default(),
        }
    }

    /// Whether a run can be made of it.
    pub(crate) fn validate(&self) -> Result<(), InvalidReflexion> {
        use InvalidReflexion as I;
        if self.task.trim().is_empty() {
            return Err(I::NoTask);
        }
        if self.task.len() > MAX_TASK_BYTES {
            return Err(I::LongTask);
        }
        if !(1..=MAX_ATTEMPTS).contains(&self.attempts) {
            return Err(I::Attempts);
        }
        // In the check's sandbox the program's files are under `/inputs/out`.
        let is_in_the_way = |path: &&GuestPath| path.parts().next() == Some("out");
        if self.contract.check.is_some()
            && let Some(path) = self.inputs.keys().find(is_in_the_way)
        {
            return Err(I::InputInTheWay(path.clone()));
        }
        Ok(())
    }
}

/// How a model is asked to write its program. Both forms are read, whichever was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerForm {
    /// A JSON object with the program and what the model has to say about it.
    #[default]
    Structured,
    /// One fenced block. Small models write working programs this way and junk inside JSON.
    Fenced,
}

/// Why no run can be made of an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidReflexion {
    /// Nothing is to be done.
    #[error("there is no task")]
    NoTask,
    /// More than a prompt should hold.
    #[error("the task is longer than {} KiB", MAX_TASK_BYTES / 1024)]
    LongTask,
    /// None, or too many.
    #[error("the number of attempts is from 1 to {MAX_ATTEMPTS}")]
    Attempts,
    /// The check finds the program's files where this input would be.
    #[error(
        "an input cannot be called `{0}` where there is a check: `out` is for what the program leaves"
    )]
    InputInTheWay(GuestPath),
    /// An effect id that cannot be made.
    #[error(transparent)]
    Id(#[from] InvalidId),
}
