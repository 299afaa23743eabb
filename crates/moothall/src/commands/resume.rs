//! `moothall resume`: continues a run of any kind.

use moothall_core::RunSpec;

use super::resumable_run::{ResumableRun, refuse_if_ended};
use super::{consult, edit, run as program, runtime};
use crate::args::{GlobalArgs, ResumeArgs};
use crate::error::CliExit;
use crate::launch;
use crate::run_store::open_and_find;

pub(crate) fn run(global: &GlobalArgs, args: &ResumeArgs) -> anyhow::Result<CliExit> {
    // The configuration is needed only to find the run; the stored spec contains the rest.
    let loaded = crate::config::load(global.config.as_deref(), toml::Table::new())?;
    let runtime = runtime()?;
    let (local, row) = runtime.block_on(open_and_find(&loaded, &args.run))?;
    refuse_if_ended(&row)?;
    let spec = launch::stored_spec(&row.spec, args.raised_budget())?;
    let found = ResumableRun { runtime, local, row };
    match &spec {
        RunSpec::Program(spec) => program::resume(global, args, &found, spec),
        RunSpec::Consult(spec) => consult::resume(global, args, &found, spec),
        RunSpec::Edit(spec) => edit::resume(global, args, &found, spec),
    }
}
