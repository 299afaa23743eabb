//! `cargo xtask chaos`: consultations whose process is killed with SIGKILL at random moments, or whose
//! cluster is: workers, nodes of Restate, PostgreSQL. Every one must end as if nobody had touched it.
//! The tests do a short one.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::{guest, shell};

/// The tests, and the variable that says how long each is: kills and a seed.
const IN_PROCESS: (&str, &str) =
    ("chaos::consultations_killed_anywhere_end_like_one_that_was_not", "MOOTHALL_TEST_CHAOS");
const IN_MICROVMS: (&str, &str) = (
    "real_chaos::consultations_in_microvms_killed_anywhere_end_like_one_that_was_not",
    "MOOTHALL_TEST_CHAOS_MICROVM",
);
const ON_A_CLUSTER: (&str, &str) = (
    "real_restate::blows::consultations_whose_cluster_is_beaten_end_like_one_that_was_left_alone",
    "MOOTHALL_TEST_CHAOS_RESTATE",
);

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Kills of consultations whose debates run in the program's own process
    #[arg(long, default_value_t = 90)]
    kills: u32,
    /// Kills of consultations whose debates run in microVMs
    #[arg(long, default_value_t = 10)]
    microvm: u32,
    /// Blows to a cluster: its workers, its nodes and its database are killed, stopped for seconds or
    /// asked to end
    #[arg(long, default_value_t = 54)]
    cluster: u32,
    /// Nodes of Restate in that cluster
    #[arg(long, default_value_t = 3)]
    nodes: u32,
    /// Decides at which moments
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root()?;
    if args.microvm > 0 {
        guest::run()?;
    }
    let seed = args.seed;
    let all = [
        (IN_PROCESS, args.kills, seed.to_string()),
        (IN_MICROVMS, args.microvm, seed.to_string()),
        (ON_A_CLUSTER, args.cluster, format!("{seed} {}", args.nodes)),
    ];
    for ((test, variable), kills, more) in all {
        if kills == 0 {
            continue;
        }
        let test = format!("package(=moothall) & test(={test})");
        shell::run_tests(&root, variable, &format!("{kills} {more}"), &test)?;
    }
    Ok(())
}
