//! `moothall resume`: a run goes on, whatever kind of trial it is.

use moothall_core::RunSpec;
use moothall_engine::EngineError;
use moothall_store::RunRow;

use super::{consult, edit, run as program, runtime};
use crate::args::{Global, ResumeArgs};
use crate::error::{CliError, Exit};
use crate::launch;
use crate::local::{self, Local, open_and_find};

/// What programs that ask over HTTP are told where somebody else has a run.
pub(super) const RUN_BUSY: &str = "run-busy";

/// A run that is about to go on, and where it is kept.
pub(super) struct Found {
    pub(super) runtime: tokio::runtime::Runtime,
    pub(super) local: Local,
    pub(super) row: RunRow,
}

pub(super) fn run(global: &Global, args: &ResumeArgs) -> anyhow::Result<Exit> {
    // Only the folders are needed to find the run; what it was started with says the rest.
    let loaded = crate::config::load(global.config.as_deref(), toml::Table::new())?;
    let runtime = runtime()?;
    let (local, row) = runtime.block_on(open_and_find(&loaded, &args.run))?;
    refuse_if_over(&row)?;
    let spec = launch::stored_spec(&row.spec, args.raised_budget())?;
    let found = Found { runtime, local, row };
    match &spec {
        RunSpec::Program(spec) => program::go_on(global, args, &found, spec),
        RunSpec::Consult(spec) => consult::go_on(global, args, &found, spec),
        RunSpec::Edit(spec) => edit::go_on(global, args, &found, spec),
    }
}

pub(super) fn refuse_if_over(row: &RunRow) -> Result<(), CliError> {
    if row.state.is_terminal() {
        let id = local::short(&row.run_id);
        return Err(CliError::usage(format!("run {} is {} already", row.run_id, row.state))
            .with_hint(format!("see `moothall show {id}`")));
    }
    Ok(())
}

/// Why the right to drive a run cannot be had.
pub(super) fn unlocked(error: EngineError) -> CliError {
    match error {
        EngineError::Busy(run_id) => {
            let id = local::short(&run_id).to_owned();
            CliError::failed(format!("another process drives run {run_id}"))
                .with_hint(format!("follow it: `moothall events {id} --follow`"))
                .with_code(RUN_BUSY)
        }
        error => CliError::failed("the run cannot be driven").with_source(error),
    }
}
