//! `cargo xtask chaos`: consultations whose process is killed with SIGKILL at random moments. Every one
//! must end as if nobody had touched it. The tests do a short one.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::shell;

/// The tests, and the variable that says how long each is: kills and a seed.
const IN_PROCESS: (&str, &str) =
    ("chaos::consultations_killed_anywhere_end_like_one_that_was_not", "MOOTHALL_TEST_CHAOS");
const IN_MICROVMS: (&str, &str) = (
    "real_chaos::consultations_in_microvms_killed_anywhere_end_like_one_that_was_not",
    "MOOTHALL_TEST_CHAOS_MICROVM",
);

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Kills of consultations whose debates run in the program's own process
    #[arg(long, default_value_t = 90)]
    kills: u32,
    /// Kills of consultations whose debates run in microVMs
    #[arg(long, default_value_t = 10)]
    microvm: u32,
    /// Decides at which moments
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root()?;
    if args.microvm > 0 {
        shell::run(&root, &["cargo", "xtask", "guest"])?;
    }
    for ((test, variable), kills) in [(IN_PROCESS, args.kills), (IN_MICROVMS, args.microvm)] {
        if kills == 0 {
            continue;
        }
        let size = format!("{variable}={kills} {}", args.seed);
        shell::run_tests(&root, "moothall", &size, &["--exact", test])?;
    }
    Ok(())
}
