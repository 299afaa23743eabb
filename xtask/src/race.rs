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
    let test = ["cargo", "test", "--quiet", "--locked", "-p", "moothall-engine", "--test", "it"];
    let mut command_line = vec!["env", &seconds];
    command_line.extend(test);
    command_line.extend(["--", "drafts_race::", "--nocapture"]);
    shell::run(&shell::root()?, &command_line)
}
