//! `moothall resume`: a run goes on, whatever kind of trial it is.

use moothall_core::RunSpec;

use super::found_run::{Found, refuse_if_over};
use super::{consult, edit, run as program, runtime};
use crate::args::{Global, ResumeArgs};
use crate::error::Exit;
use crate::launch;
use crate::local::open_and_find;

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
