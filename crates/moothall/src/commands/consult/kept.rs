//! What a consultation is started with, kept so that it can go on in another process.

use std::path::PathBuf;

use moothall_core::MicroUsd;
use moothall_core::consult::ConsultInput;
use moothall_core::model::ModelName;
use moothall_models::RecordingMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::{ConsultArgs, DebateEngine, NewsArg};
use crate::commands::files;
use crate::context::Flags;
use crate::error::CliError;
use crate::local;

/// The input of a consultation. Keys are not in it: they are where they are when the run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::commands) struct Kept {
    pub(in crate::commands) consult: ConsultInput,
    pub(in crate::commands) settings: Settings,
}

/// What the flags of the command said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::commands) struct Settings {
    /// Where the Restate is whose workers drive the run; this machine's processes do where there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) restate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) isolation: Option<DebateEngine>,
    #[serde(default)]
    pub(super) allow_shared_kernel: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parallel_moves: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) budget_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) budget_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) offline: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) record: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replay: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) memo: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) artifacts: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) files: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) news: Option<NewsArg>,
}

impl Settings {
    /// Paths are kept as whole ones: a run may go on in another folder.
    pub(super) fn from_args(args: &ConsultArgs) -> Result<Self, CliError> {
        Ok(Self {
            restate: args.engine.restate(),
            isolation: args.isolation,
            allow_shared_kernel: args.allow_shared_kernel,
            parallel_moves: Some(args.parallel_moves),
            budget_micro_usd: args.budget,
            budget_tokens: args.budget_tokens,
            base_url: args.base_url.clone(),
            offline: files::whole(args.evidence.offline.as_deref())?,
            record: files::whole(args.replies.record.as_deref())?,
            replay: files::whole(args.replies.replay.as_deref())?,
            memo: files::whole(args.memo.as_deref())?,
            artifacts: files::whole(args.artifacts.as_deref())?,
            files: files::whole(args.subject()?.folder)?,
            news: match &args.news {
                Some(NewsArg::File(path)) => files::whole(Some(path))?.map(NewsArg::File),
                other => other.clone(),
            },
        })
    }

    /// The settings that stand for configuration keys.
    pub(in crate::commands) fn flags(
        &self,
        model: Option<&ModelName>,
    ) -> Result<toml::Table, CliError> {
        let base_url = self.base_url.as_deref();
        Flags::of_calls(self.budget_micro_usd, self.budget_tokens, base_url, model)
    }

    pub(super) fn recording(&self) -> Result<RecordingMode, CliError> {
        files::recording(self.record.as_deref(), self.replay.as_deref())
    }
}

impl Kept {
    /// What a run was started with.
    pub(in crate::commands) fn read(input: &Value) -> Result<Self, CliError> {
        local::read_input(input)
    }
}
