//! Arguments of `backup` and `restore`.

use std::path::PathBuf;

use clap::Args;

const BACKUP_EXAMPLES: &str = "\
Examples:
  moothall backup all.tar
  tar --list --verbose --file all.tar

Keep the file private: it contains the signing keys of audit logs and all prompts and answers.
Runs in PostgreSQL are not included.";

#[derive(Debug, Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub(crate) struct BackupArgs {
    /// File to create; an existing file is not overwritten
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
    /// Backup file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Restore into this data directory [default: the one in use]
    #[arg(long, value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,
    /// Move existing runs and drafts aside, to a name with a timestamp
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
