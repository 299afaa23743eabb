//! `moothall committee`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum CommitteeCommand {
    /// Print a committee: who sits on it, what they look for, and how moves are scored
    Show {
        /// The name of a built-in committee (`board`) or a committee file [default: board]
        #[arg(value_name = "NAME|FILE")]
        committee: Option<String>,
        /// Print JSON instead of the file with its comments
        #[arg(long)]
        json: bool,
    },
    /// Say whether a committee file can be used, and what is wrong with it where it cannot
    Check {
        /// The file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a commented copy of the built-in committee to a new file, to be edited
    New {
        /// The file; it must not exist
        file: PathBuf,
    },
}
