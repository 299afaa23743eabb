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

/// The input of a run. Keys are not in it: they are where they are when the run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    pub(super) reflexion: ReflexionInput,
    pub(super) settings: Settings,
}

/// What the flags of the command said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) isolation: Option<EngineChoice>,
    #[serde(default)]
    pub(super) allow_shared_kernel: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) budget_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) budget_tokens: Option<u64>,
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
        let whole = |path: &Option<PathBuf>| {
            path.as_deref()
                .map(std::path::absolute)
                .transpose()
                .map_err(|error| CliError::usage("a folder has no whole path").with_source(error))
        };
        Ok(Self {
            isolation: args.sandbox.isolation,
            allow_shared_kernel: args.sandbox.allow_shared_kernel,
            budget_micro_usd: args.budget,
            budget_tokens: args.budget_tokens,
            base_url: args.base_url.clone(),
            record: whole(&args.record)?,
            replay: whole(&args.replay)?,
            output: whole(&args.output)?,
        })
    }

    /// The settings that stand for configuration keys.
    pub(super) fn flags(
        &self,
        model: Option<&moothall_core::model::ModelName>,
    ) -> Result<toml::Table, CliError> {
        let mut flags = Flags::default();
        if let Some(usd) = self.budget_micro_usd {
            flags.set(&["budget", "usd"], usd.decimal());
        }
        if let Some(tokens) = self.budget_tokens {
            let tokens = i64::try_from(tokens)
                .map_err(|_| CliError::usage("--budget-tokens is too large"))?;
            flags.set(&["budget", "tokens"], tokens);
        }
        if let Some(base_url) = &self.base_url {
            flags.set_base_url(model, "--model", base_url)?;
        }
        Ok(flags.into_table())
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
    pub(super) fn read(input: &Value) -> Result<Self, CliError> {
        Self::deserialize(input).map_err(|error| {
            CliError::failed("what the run was started with cannot be understood")
                .with_source(error)
                .with_hint("another version of moothall may have started it")
        })
    }
}
