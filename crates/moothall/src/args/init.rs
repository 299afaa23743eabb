//! Arguments of `init`.

use clap::Args;

const INIT_EXAMPLES: &str = "\
The last step is one short call to the model, if its API key is set or its server needs none. It
shows latency, tokens and cost. A call that costs money is made only after a confirmation or with
--yes.

Examples:
  moothall init
  moothall init --yes --no-demo --no-call";

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub(crate) struct InitArgs {
    /// Accept every default without prompting
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Do not call the model at the end
    #[arg(long)]
    pub(crate) no_call: bool,
    /// Do not offer the demo
    #[arg(long)]
    pub(crate) no_demo: bool,
}
