//! Arguments of `cluster`: a Restate cluster with all its parts on one machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const CLUSTER_EXAMPLES: &str = "\
For evaluation only: Restate, PostgreSQL and workers, reachable only from this machine. They keep
running after the command exits, and `up` restarts any that have died. Nothing is installed without
`--install`: Restate's server comes from npm (about 250 MB, under the Business Source License 1.1,
see the documentation page on workers), PostgreSQL from apt.

Examples:
  moothall cluster up --install
  moothall cluster up --nodes 3 --workers 4
  moothall cluster status
  moothall cluster down --purge";

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Start every part that is not running: Restate, PostgreSQL, workers
    Up(ClusterUpArgs),
    /// Show the state, health and address of each part
    Status(ClusterStatusArgs),
    /// Stop every part; runs are kept and continue after the next `up`
    Down(ClusterDownArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClusterDirFlags {
    /// Use this directory for the cluster [default: `cluster` in the data directory]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = CLUSTER_EXAMPLES)]
pub(crate) struct ClusterUpArgs {
    #[command(flatten)]
    pub(crate) place: ClusterDirFlags,
    /// Set the number of Restate nodes: 1, or 3 with two copies of all data [default: 1]
    #[arg(long, value_name = "N", value_parser = nodes)]
    pub(crate) nodes: Option<usize>,
    /// Set the number of workers [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: Option<u16>,
    /// Install missing programs: Restate's server from npm, PostgreSQL from apt (needs root)
    #[arg(long)]
    pub(crate) install: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterStatusArgs {
    #[command(flatten)]
    pub(crate) place: ClusterDirFlags,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterDownArgs {
    #[command(flatten)]
    pub(crate) place: ClusterDirFlags,
    /// Also delete all data: runs, settings, logs
    #[arg(long)]
    pub(crate) purge: bool,
}

fn nodes(text: &str) -> Result<usize, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        _ => Err("must be 1 or 3".to_owned()),
    }
}
