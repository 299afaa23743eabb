//! Arguments of `prompts`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PromptsCommand {
    /// List the prompts and memo sections that a committee can replace, with their placeholders
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a built-in prompt or memo section
    Show {
        /// Name from `moothall prompts list`, such as `prompts/analyst.md` or `analyst`
        name: String,
    },
    /// Write the built-in committee, prompts and memo sections to a new directory
    Export {
        /// Directory to create; existing files are not overwritten
        dir: PathBuf,
    },
    /// Check a committee directory and report its problems
    Check {
        /// Directory with `committee.toml`, `prompts/*.md` and `memo/*.md`
        dir: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
