//! Arguments of `diff`.

use clap::Args;

const DIFF_EXAMPLES: &str = "\
Example:
  moothall diff 019a85c0-2f6e 01a1df13-fab7";

#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub(crate) struct DiffArgs {
    /// Earlier consultation: run id or unique prefix
    #[arg(value_name = "BEFORE")]
    pub(crate) before: String,
    /// Later consultation: run id or unique prefix
    #[arg(value_name = "AFTER")]
    pub(crate) after: String,
    /// Compare consultations about different companies
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
