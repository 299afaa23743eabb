//! Arguments of `backup` and `restore`.

use std::path::PathBuf;

use clap::Args;

const BACKUP_EXAMPLES: &str = "\
Examples:
  moothall backup all.tar
  tar --list --verbose --file all.tar

Keep the file private: it holds the signing keys of audit journals and all prompts and answers.
Runs in PostgreSQL are not in it.";

#[derive(Debug, Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub(crate) struct BackupArgs {
    /// The file to make; one that exists is not replaced
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const RESTORE_EXAMPLES: &str = "\
Examples:
  moothall restore all.tar
  moothall restore all.tar --into /tmp/look && MOOTHALL_DATA_DIR=/tmp/look moothall runs";

#[derive(Debug, Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// The backup
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Data folder to restore into [default: the one in use]
    #[arg(long, value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,
    /// Move existing runs and drafts aside, under a name with the time
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
