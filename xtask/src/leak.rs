//! `cargo xtask leak`: runs programs on all sandbox engines from processes that are killed at
//! random moments. Afterwards nothing may remain on the host. The test suite runs a short version.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::{guest, shell};

const TEST: &str = "test(=real_leak::executions_and_killed_owners_leave_nothing_behind)";

#[derive(Debug, ClapArgs)]
pub(crate) struct LeakArgs {
    /// Set the total number of executions
    #[arg(long, default_value_t = 500)]
    executions: u32,
    /// Set how often the process that owns the sandboxes is killed
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// Set the random seed for the programs and the times of the kills
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &LeakArgs) -> Result<()> {
    let root = shell::root()?;
    guest::run()?;
    let size = format!("{} {} {}", args.executions, args.kills, args.seed);
    shell::run_tests(&root, "MOOTHALL_TEST_LEAK", &size, TEST)
}
