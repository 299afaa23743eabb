//! `moothall cluster`: everything that many workers need, on one machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const CLUSTER_EXAMPLES: &str = "\
For trying it out: Restate, PostgreSQL and workers, reachable from this machine only. They go on
after the command has ended, and `up` brings back whatever of them died. Nothing is installed unless
`--install` says so: Restate's server comes by npm (about 250 MB, under the Business Source License
1.1, see the page about many workers), PostgreSQL by apt.

Examples:
  moothall cluster up --install
  moothall cluster up --nodes 3 --workers 4
  moothall cluster status
  moothall cluster down --purge";

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Bring up whatever is not up: Restate, PostgreSQL, workers
    Up(ClusterUpArgs),
    /// Show each part: whether it is up and well, and where
    Status(ClusterStatusArgs),
    /// Stop every part; runs stay, and go on after the next `up`
    Down(ClusterDownArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClusterPlace {
    /// Folder that holds the cluster [default: `cluster` in the data folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = CLUSTER_EXAMPLES)]
pub(crate) struct ClusterUpArgs {
    #[command(flatten)]
    pub(crate) place: ClusterPlace,
    /// Nodes of Restate: one, or three with two copies of everything [default: 1]
    #[arg(long, value_name = "N", value_parser = nodes)]
    pub(crate) nodes: Option<usize>,
    /// Workers [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: Option<u16>,
    /// Install what is missing: Restate's server by npm, PostgreSQL by apt, which needs root
    #[arg(long)]
    pub(crate) install: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterStatusArgs {
    #[command(flatten)]
    pub(crate) place: ClusterPlace,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterDownArgs {
    #[command(flatten)]
    pub(crate) place: ClusterPlace,
    /// Delete everything as well: runs, settings, logs
    #[arg(long)]
    pub(crate) purge: bool,
}

fn nodes(text: &str) -> Result<usize, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        _ => Err("it is 1 or 3".to_owned()),
    }
}
