//! `cargo xtask race`: folders and files of a workspace that change places with links, and people
//! who save, while drafts are applied. The tests do a short one.

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
    let seconds = format!("MOOTHALL_TEST_RACE_SECONDS={}", args.seconds);
    shell::run_tests(&shell::root()?, "moothall-engine", &seconds, &["drafts_race::"])
}
