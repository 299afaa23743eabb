//! Starts and resumes runs. Commands, the HTTP API and workers all describe a run by a [`RunSpec`],
//! and its resources are opened here.

pub(crate) mod cluster;
mod consult_request;
mod consult_resources;
mod debate_isolation;
pub(crate) mod estimate;
mod fork_request;
mod http_request;
mod prepared_run;
mod program_request;
mod program_resources;
mod request_files;
mod run_files;
pub(crate) mod run_speed;

use std::path::Path;

use moothall_core::model::ModelName;
use moothall_core::{RunSettings, RunSpec, StoredSpec, Workflow};
use moothall_engine::{InvalidRunSpec, workflow_of};
use moothall_models::{Budget, RecordingMode};

pub(crate) use self::consult_request::{ConsultPlan, ConsultRequest};
pub(crate) use self::fork_request::ConsultForkRequest;
pub(crate) use self::http_request::{ServerDefaults, parse_budget};
pub(crate) use self::prepared_run::{
    BackgroundRun, PreparedRun, RunParts, WorkerRun, engine_failure, new_run,
    unreadable_consultation,
};
pub(crate) use self::program_request::ProgramRequest;
pub(crate) use self::run_files::RunFiles;
use crate::context::{CommandContext, ConfigFlags};
use crate::error::CliError;
use crate::files;

/// Default number of concurrent debates.
pub(crate) const PARALLEL_MOVES: u32 = 15;

/// The configuration of a run: its settings override files and variables.
pub(crate) fn context(
    config: Option<&Path>,
    settings: &RunSettings,
    model: Option<&ModelName>,
) -> Result<CommandContext, CliError> {
    let base_url = settings.base_url.as_deref();
    let flags =
        ConfigFlags::of_calls(settings.budget_micro_usd, settings.budget_tokens, base_url, model)?;
    CommandContext::load(config, flags)
}

/// The longest answer that all of these models can give.
pub(crate) fn max_output(cards: &[moothall_models::catalog::ModelCard]) -> u32 {
    cards.iter().filter_map(|card| card.max_output).min().unwrap_or(u32::MAX)
}

/// The spec of a stored run. The given budget replaces the stored one.
pub(crate) fn stored_spec(spec: &StoredSpec, raise: Budget) -> Result<RunSpec, CliError> {
    let mut spec = read_spec(spec)?.clone();
    let settings = spec.settings_mut();
    settings.budget_micro_usd = raise.usd.or(settings.budget_micro_usd);
    settings.budget_tokens = raise.tokens.or(settings.budget_tokens);
    Ok(spec)
}

pub(crate) fn read_spec(spec: &StoredSpec) -> Result<&RunSpec, CliError> {
    spec.read().map_err(|unreadable| {
        CliError::failed(unreadable.to_string())
            .with_hint("if another version of moothall started the run, use that version")
    })
}

pub(crate) fn budget(settings: &RunSettings) -> Budget {
    Budget { usd: settings.budget_micro_usd, tokens: settings.budget_tokens }
}

/// Stores the effective budget, so the run is resumed with it.
pub(crate) fn set_budget(settings: &mut RunSettings, budget: Budget) {
    (settings.budget_micro_usd, settings.budget_tokens) = (budget.usd, budget.tokens);
}

fn recording(settings: &RunSettings) -> Result<RecordingMode, CliError> {
    files::recording(settings.record.as_deref(), settings.replay.as_deref())
}

/// The initial workflow of a run.
pub(crate) fn workflow(spec: &RunSpec) -> Result<Box<dyn Workflow + Send>, CliError> {
    workflow_of(spec).map_err(|error| match error {
        InvalidRunSpec::Schema(error) => {
            CliError::usage("invalid JSON schema for the expected output")
                .with_source(error)
                .with_hint("references to other documents are not supported")
        }
        error => CliError::usage(error.to_string()),
    })
}
