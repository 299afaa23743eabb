//! Arguments of `edit`.

use std::path::PathBuf;

use clap::Args;
use moothall_core::edit::{EditInput, MAX_ATTEMPTS};

use super::{CallFlags, HandoffFlags, ModelFlags};

const EDIT_EXAMPLES: &str = "\
The model reads files and proposes changes as drafts; it never writes to the directory. The gate
checks drafts against the directory's policy (see: moothall policy). Rejected drafts go back to the
model with the reasons. Drafts that the gate escalates wait for review (see: moothall review); with
--wait the model gets the reviewer's decision.

Examples:
  moothall edit \"add --version to watchdog.py\" --path project --model demo
  moothall edit \"rename the flag --colour to --color\" --file src/args.rs
  moothall edit \"update the Makefile\" --wait 600 --json";

#[derive(Debug, Args)]
#[command(after_help = EDIT_EXAMPLES)]
pub(crate) struct EditCommandArgs {
    /// Change to make; reads standard input if omitted or `-`
    pub(crate) task: Option<String>,
    /// Edit files in this directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Edit this file, relative to the directory (repeatable) [default: the model chooses]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Vec<String>,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    /// Limit the number of proposals
    #[arg(long, value_name = "N", default_value_t = EditInput::DEFAULT_ATTEMPTS, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ATTEMPTS)))]
    pub(crate) attempts: u32,
    /// Wait this many seconds for a reviewer if review is needed
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=604_800))]
    pub(crate) wait: u64,
    /// Create the drafts as this worker
    #[arg(long, value_name = "NAME", default_value = "edit")]
    pub(crate) worker: String,
    #[command(flatten)]
    pub(crate) view: HandoffFlags,
    #[command(flatten)]
    pub(crate) calls: CallFlags,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}
