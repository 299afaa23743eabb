//! `cargo xtask bench NAME`: measures a promise of SPECIFICATION.md, written there as `bench:NAME`.

use anyhow::Result;
use clap::Subcommand;

/// One variant per benchmark, one module each; the variant's name is the NAME.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {}

pub(crate) fn run(bench: &Bench) -> Result<()> {
    match *bench {}
}

/// The names that `bench:NAME` may use.
pub(crate) fn names() -> Vec<String> {
    Bench::augment_subcommands(clap::Command::new("bench"))
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect()
}
