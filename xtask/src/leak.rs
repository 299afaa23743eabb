//! `cargo xtask leak`: executions on all sandbox engines by processes that are killed at random
//! moments, after which nothing may be left on the host. The tests do a short one.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::shell;

const TEST: &str = "real_leak::executions_and_killed_owners_leave_nothing_behind";

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
    shell::run(&root, &["cargo", "xtask", "guest"])?;
    let size = format!("MOOTHALL_TEST_LEAK={} {} {}", args.executions, args.kills, args.seed);
    shell::run_tests(&root, "moothall-sandbox", &size, &["--exact", TEST])
}
