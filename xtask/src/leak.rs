//! `cargo xtask leak`: executions on all sandbox engines by processes that are killed at random
//! moments, after which nothing may be left on the host. The tests do a short one.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::{guest, shell};

const TEST: &str = "test(=real_leak::executions_and_killed_owners_leave_nothing_behind)";

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Executions in all
    #[arg(long, default_value_t = 500)]
    executions: u32,
    /// How often the process that has the sandboxes is killed
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// Decides what is run and when it is killed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root()?;
    guest::run()?;
    let size = format!("{} {} {}", args.executions, args.kills, args.seed);
    shell::run_tests(&root, "MOOTHALL_TEST_LEAK", &size, TEST)
}
