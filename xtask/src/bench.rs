//! `cargo xtask bench NAME`: measures a promise of SPECIFICATION.md, written there as `bench:NAME`.

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::shell;

/// One variant per benchmark; the variant's name is the NAME, here and in `bench/`.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// CPU and memory of a model call through the gateway, beside the bare HTTP client
    Gateway(Length),
}

#[derive(Debug, Args)]
pub(crate) struct Length {
    /// Fewer calls, and fails only when the promise is broken by a wide margin
    #[arg(long)]
    short: bool,
}

pub(crate) fn run(bench: &Bench) -> Result<()> {
    let (name, length) = match bench {
        Bench::Gateway(length) => ("gateway", length),
    };
    let mut command_line = vec![
        "cargo",
        "run",
        "--quiet",
        "--locked",
        "--profile",
        "measure",
        "-p",
        "moothall-bench",
        "--",
        name,
    ];
    if length.short {
        command_line.push("--short");
    }
    shell::run(&shell::root()?, &command_line)
}

/// The names that `bench:NAME` may use.
pub(crate) fn names() -> Vec<String> {
    Bench::augment_subcommands(clap::Command::new("bench"))
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect()
}
