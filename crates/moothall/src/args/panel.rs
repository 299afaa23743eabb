//! Arguments of `panel`.

use clap::Args;

const PANEL_EXAMPLES: &str = "\
Every run with a panel plants cases whose order is known. A model that catches fewer than 80 % of
them is not a reliable judge; `moothall committee check` warns about it.

Examples:
  moothall panel
  moothall panel --json";

#[derive(Debug, Args)]
#[command(after_help = PANEL_EXAMPLES)]
pub(crate) struct PanelArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
