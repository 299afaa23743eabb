//! `cargo xtask chaos`: kills processes with SIGKILL at random moments during consultations: the
//! `moothall` process itself, or the workers, Restate nodes and PostgreSQL of a cluster. Every
//! consultation must produce the same result as an undisturbed one. The test suite runs a short
//! version.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::{guest, shell};

/// The tests, each with the environment variable that sets its number of kills and its seed.
const IN_PROCESS: (&str, &str) =
    ("chaos::consultations_killed_anywhere_end_like_one_that_was_not", "MOOTHALL_TEST_CHAOS");
const WITH_A_PANEL: (&str, &str) = (
    "chaos::consultations_with_a_panel_killed_anywhere_end_with_the_same_tiers",
    "MOOTHALL_TEST_CHAOS",
);
const IN_MICROVMS: (&str, &str) = (
    "real_chaos::consultations_in_microvms_killed_anywhere_end_like_one_that_was_not",
    "MOOTHALL_TEST_CHAOS_MICROVM",
);
const ON_A_CLUSTER: (&str, &str) = (
    "real_restate::faults::consultations_on_a_cluster_with_faults_end_like_an_undisturbed_one",
    "MOOTHALL_TEST_CHAOS_RESTATE",
);

#[derive(Debug, ClapArgs)]
pub(crate) struct ChaosArgs {
    /// Set the number of kills of consultations whose debates run in the same process
    #[arg(long, default_value_t = 90)]
    kills: u32,
    /// Set the number of kills of consultations that a panel judges, in the same process
    #[arg(long, default_value_t = 30)]
    panel: u32,
    /// Set the number of kills of consultations whose debates run in microVMs
    #[arg(long, default_value_t = 10)]
    microvm: u32,
    /// Set the number of faults in a cluster: workers, nodes and the database are killed, stopped
    /// for seconds or terminated
    #[arg(long, default_value_t = 54)]
    cluster: u32,
    /// Set the number of Restate nodes in that cluster
    #[arg(long, default_value_t = 3)]
    nodes: u32,
    /// Set the random seed for the times of the kills
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &ChaosArgs) -> Result<()> {
    let root = shell::root()?;
    if args.microvm > 0 {
        guest::run()?;
    }
    let seed = args.seed;
    let all = [
        (IN_PROCESS, args.kills, seed.to_string()),
        (WITH_A_PANEL, args.panel, seed.to_string()),
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
