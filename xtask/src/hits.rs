//! `cargo xtask hits`: measures how much of a long debate's prompts the local model reads from its
//! cache. The test suite runs a short version.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::shell;

#[derive(Debug, ClapArgs)]
pub(crate) struct HitsArgs {
    /// Set the number of debate rounds
    #[arg(long, default_value_t = 10)]
    rounds: u32,
}

pub(crate) fn run(args: &HitsArgs) -> Result<()> {
    let test = "test(=local_model::reads_most_of_a_debates_prompts_from_its_cache)";
    let rounds = args.rounds.to_string();
    shell::run_tests(&shell::root()?, "MOOTHALL_TEST_DEBATE_ROUNDS", &rounds, test)
}
