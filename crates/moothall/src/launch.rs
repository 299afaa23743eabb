//! Starts and resumes runs. Commands, the HTTP API and workers describe a run by a [`RunSpec`], and everything that it needs is opened
//! here, in one way for all of them.

pub(crate) mod cluster;
mod consult_request;
mod consult_resources;
pub(crate) mod estimate;
mod from_request;
mod prepared;
mod program_request;
mod program_resources;

use std::path::Path;

use moothall_core::consult::Consult;
use moothall_core::edit::EditWorkflow;
use moothall_core::model::ModelName;
use moothall_core::reflexion::{Expectation, Reflexion, ReflexionInput};
use moothall_core::structured::OutputCheck;
use moothall_core::{RunSettings, RunSpec, StoredSpec, Workflow};
use moothall_models::{Budget, RecordingMode, SchemaCheck};
use serde_json::Value;

pub(crate) use self::consult_request::{ConsultPlan, ConsultRequest};
pub(crate) use self::from_request::{ServerDefaults, parse_budget};
pub(crate) use self::prepared::{
    PreparedRun, RunParts, Unattended, WorkerRun, engine_failure, new_run,
};
pub(crate) use self::program_request::ProgramRequest;
use crate::context::{Context, Flags};
use crate::error::CliError;
use crate::files;

/// Debates that run at the same time where nothing else is asked for.
pub(crate) const PARALLEL_MOVES: u32 = 15;

/// The configuration that holds for a run: its settings override files and variables.
pub(crate) fn context(
    config: Option<&Path>,
    settings: &RunSettings,
    model: Option<&ModelName>,
) -> Result<Context, CliError> {
    let base_url = settings.base_url.as_deref();
    let flags =
        Flags::of_calls(settings.budget_micro_usd, settings.budget_tokens, base_url, model)?;
    Context::load(config, flags)
}

/// The spec of a stored run, with a budget that replaces its own where one is given.
pub(crate) fn stored_spec(spec: &StoredSpec, raise: Budget) -> Result<RunSpec, CliError> {
    let mut spec = read_spec(spec)?.clone();
    let settings = spec.settings_mut();
    settings.budget_micro_usd = raise.usd.or(settings.budget_micro_usd);
    settings.budget_tokens = raise.tokens.or(settings.budget_tokens);
    Ok(spec)
}

/// The spec of a stored run.
pub(crate) fn read_spec(spec: &StoredSpec) -> Result<&RunSpec, CliError> {
    spec.read().map_err(|unreadable| {
        CliError::failed(unreadable.to_string())
            .with_hint("another version of moothall may have started it")
    })
}

/// The budget of a run.
pub(crate) fn budget(settings: &RunSettings) -> Budget {
    Budget { usd: settings.budget_micro_usd, tokens: settings.budget_tokens }
}

/// Stores the budget that holds, wherever it was configured: the run is resumed with it.
pub(crate) fn set_budget(settings: &mut RunSettings, budget: Budget) {
    (settings.budget_micro_usd, settings.budget_tokens) = (budget.usd, budget.tokens);
}

/// Where model replies are recorded to or replayed from.
fn recording(settings: &RunSettings) -> Result<RecordingMode, CliError> {
    files::recording(settings.record.as_deref(), settings.replay.as_deref())
}

/// The workflow of a run at its beginning.
pub(crate) fn workflow(spec: &RunSpec) -> Result<Box<dyn Workflow + Send>, CliError> {
    let invalid = |error: &dyn std::error::Error| CliError::usage(error.to_string());
    Ok(match spec {
        RunSpec::Consult(spec) => {
            Box::new(Consult::new(spec.input.clone()).map_err(|error| invalid(&error))?)
        }
        RunSpec::Program(spec) => Box::new(program_workflow(spec.input.clone())?),
        RunSpec::Edit(spec) => {
            Box::new(EditWorkflow::new(spec.input.clone()).map_err(|error| invalid(&error))?)
        }
    })
}

fn program_workflow(input: ReflexionInput) -> Result<Reflexion, CliError> {
    let check: Box<dyn OutputCheck> = match &input.contract.expect {
        Some(Expectation::Schema { schema }) => {
            Box::new(SchemaCheck::new(schema).map_err(|error| {
                CliError::usage("what is expected cannot be used").with_source(error).with_hint(
                    "it must be a JSON schema; references to other documents are not followed",
                )
            })?)
        }
        Some(Expectation::Text { .. } | Expectation::Pattern { .. }) | None => {
            Box::new(|_: &Value| Vec::new())
        }
    };
    Reflexion::new(input, check).map_err(|error| CliError::usage(error.to_string()))
}
