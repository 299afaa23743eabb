//! What a run is started with, kept so that it can go on in another process.

use std::path::PathBuf;

use moothall_core::MicroUsd;
use moothall_core::edit::EditInput;
use moothall_core::model::ModelName;
use moothall_models::RecordingMode;
use serde::{Deserialize, Serialize};

use crate::args::EditArgs;
use crate::commands::files;
use crate::context::Flags;
use crate::error::CliError;

/// The input of a run. Keys are not in it: they are where they are when the run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    pub(super) edit: EditInput,
    pub(super) workspace: PathBuf,
    pub(super) worker: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) budget_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) budget_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    record: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<PathBuf>,
}

impl Kept {
    /// Paths are kept as whole ones: a run may go on in another folder.
    pub(super) fn from_args(args: &EditArgs, mut edit: EditInput) -> Result<Self, CliError> {
        edit.attempts = args.attempts;
        edit.wait_s = args.wait;
        let workspace = files::whole(Some(&args.path))?;
        Ok(Self {
            edit,
            workspace: workspace.unwrap_or_else(|| args.path.clone()),
            worker: args.worker.clone(),
            budget_micro_usd: args.budget,
            budget_tokens: args.budget_tokens,
            base_url: args.base_url.clone(),
            record: files::whole(args.replies.record.as_deref())?,
            replay: files::whole(args.replies.replay.as_deref())?,
        })
    }

    /// The settings that stand for configuration keys.
    pub(super) fn flags(&self, model: Option<&ModelName>) -> Result<toml::Table, CliError> {
        let base_url = self.base_url.as_deref();
        Flags::of_calls(self.budget_micro_usd, self.budget_tokens, base_url, model)
    }

    pub(super) fn recording(&self) -> Result<RecordingMode, CliError> {
        files::recording(self.record.as_deref(), self.replay.as_deref())
    }
}
