//! Arguments of `init`.

use clap::Args;

const INIT_EXAMPLES: &str = "\
Examples:
  moothall init
  moothall init --yes --no-demo";

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub(crate) struct InitArgs {
    /// Accept every default without prompting
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Do not offer the demo at the end
    #[arg(long)]
    pub(crate) no_demo: bool,
}
