//! Arguments of `demo`.

use std::path::PathBuf;

use clap::Args;

const DEMO_EXAMPLES: &str = "\
The tour takes about two minutes and needs no API key and no network. It runs real commands and
prints each one. Everything is written below one directory, which is removed at the end.

Keys: Enter runs a step, `s` skips it, `q` ends the tour. Ctrl-C ends it at once.

Examples:
  moothall demo
  moothall demo --yes
  moothall demo --dir tour --keep";

#[derive(Debug, Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Run every step without questions, with a smaller consultation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Do not slow down the demo model
    #[arg(long)]
    pub(crate) fast: bool,
    /// Write files to this directory, which must be new or empty [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Keep the files at the end
    #[arg(long)]
    pub(crate) keep: bool,
}
