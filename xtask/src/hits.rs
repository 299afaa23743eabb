//! `cargo xtask hits`: the share of a long debate's prompts that the local model reads from its cache.
//! The tests do a short one.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::shell;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Rounds of the debate
    #[arg(long, default_value_t = 10)]
    rounds: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let test = "test(=local_model::reads_most_of_a_debates_prompts_from_its_cache)";
    let rounds = args.rounds.to_string();
    shell::run_tests(&shell::root()?, "MOOTHALL_TEST_DEBATE_ROUNDS", &rounds, test)
}
