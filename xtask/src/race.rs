//! `cargo xtask race`: folders and files of a workspace that change places with links, and people
//! who save, while drafts are applied; and fifty processes that submit, approve and verify while some
//! are killed. The tests do short ones.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::shell;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Seconds for each of the races
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let tests = "package(=moothall-workspace) & test(/^drafts_(race|stress)::/)";
    let seconds = args.seconds.to_string();
    shell::run_tests(&shell::root()?, "MOOTHALL_TEST_RACE_SECONDS", &seconds, tests)
}
