//! Arguments of `committee`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum CommitteeCommand {
    /// Print a committee: its members, their instructions, and how moves are scored
    Show {
        /// Built-in committee (`board`), committee file or directory [default: board]
        #[arg(value_name = "NAME|PATH")]
        committee: Option<String>,
        /// Print JSON instead of the commented file
        #[arg(long)]
        json: bool,
    },
    /// Check a committee and report its problems
    Check {
        /// Committee file or directory
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a commented copy of the built-in committee to a new file
    New {
        /// File to create; it must not exist
        file: PathBuf,
    },
}
