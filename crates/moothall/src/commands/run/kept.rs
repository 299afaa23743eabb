//! What a run is started with, kept so that it can go on in another process.

use std::path::PathBuf;

use moothall_core::MicroUsd;
use moothall_core::reflexion::ReflexionInput;
use moothall_models::{Budget, RecordingMode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::RunArgs;
use crate::commands::files;
use crate::config::EngineChoice;
use crate::context::Flags;
use crate::error::CliError;
use crate::local;

/// The input of a run. Keys are not in it: they are where they are when the run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::commands) struct Kept {
    pub(in crate::commands) reflexion: ReflexionInput,
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
    pub(super) isolation: Option<EngineChoice>,
    #[serde(default)]
    pub(super) allow_shared_kernel: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) budget_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) budget_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) record: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replay: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<PathBuf>,
}

impl Settings {
    /// Paths are kept as whole ones: a run may go on in another folder.
    pub(super) fn from_args(args: &RunArgs) -> Result<Self, CliError> {
        Ok(Self {
            restate: args.engine.restate(),
            isolation: args.sandbox.isolation,
            allow_shared_kernel: args.sandbox.allow_shared_kernel,
            budget_micro_usd: args.budget,
            budget_tokens: args.budget_tokens,
            base_url: args.base_url.clone(),
            record: files::whole(args.replies.record.as_deref())?,
            replay: files::whole(args.replies.replay.as_deref())?,
            output: files::whole(args.output.as_deref())?,
        })
    }

    /// The settings that stand for configuration keys.
    pub(in crate::commands) fn flags(
        &self,
        model: Option<&moothall_core::model::ModelName>,
    ) -> Result<toml::Table, CliError> {
        let base_url = self.base_url.as_deref();
        Flags::of_calls(self.budget_micro_usd, self.budget_tokens, base_url, model)
    }

    pub(super) fn budget(&self) -> Budget {
        Budget { usd: self.budget_micro_usd, tokens: self.budget_tokens }
    }

    /// Puts the budget that holds into what is kept, wherever it was configured.
    pub(super) fn set_budget(&mut self, budget: Budget) {
        self.budget_micro_usd = budget.usd;
        self.budget_tokens = budget.tokens;
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
