//! `cargo xtask race`: applies drafts while directories and files of the workspace are swapped with
//! links and edited by users, and runs fifty processes that submit, approve and verify while some
//! are killed. The test suite runs short versions.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::shell;

#[derive(Debug, ClapArgs)]
pub(crate) struct RaceArgs {
    /// Set the duration of each race, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

pub(crate) fn run(args: &RaceArgs) -> Result<()> {
    let tests = "package(=moothall-workspace) & test(/^drafts_(race|stress)::/)";
    let seconds = args.seconds.to_string();
    shell::run_tests(&shell::root()?, "MOOTHALL_TEST_RACE_SECONDS", &seconds, tests)
}
