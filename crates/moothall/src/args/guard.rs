//! Arguments of `guard`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::drafts::WorkspaceFlags;

const GUARD_EXAMPLES: &str = "\
The agent works on a private copy of the workspace: it sees the copy, a private home directory, and
programs, and connects only to model providers. When it ends, the gate judges its changes as one
change set. Accepted files are applied; the others wait for review (`moothall review`) or stay in
the copy. Ctrl-C stops the agent and keeps the copy.

Examples:
  moothall guard --env ANTHROPIC_API_KEY -- claude -p 'fix the tests' --permission-mode acceptEdits
  moothall guard --env OPENAI_API_KEY -- \\
    codex exec --dangerously-bypass-approvals-and-sandbox 'fix the tests' </dev/null
  moothall guard --check 'make test' -- ./my-agent.sh
  moothall guard status
  moothall guard diff
  moothall guard resume
  moothall guard discard";

#[derive(Debug, Args)]
#[command(
    after_help = GUARD_EXAMPLES,
    args_conflicts_with_subcommands = true,
    override_usage = "moothall guard [OPTIONS] -- <AGENT>...\n       moothall guard <COMMAND>"
)]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GuardCommand>,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlags,
    #[command(flatten)]
    pub(crate) flags: GuardFlags,
    /// Agent and its arguments
    #[arg(last = true, value_name = "AGENT")]
    pub(crate) agent: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Show the guarded runs of the workspace, or the result of one
    Status {
        /// Run to show [default: the newest]
        run: Option<String>,
        /// List all runs
        #[arg(long, conflicts_with = "run")]
        all: bool,
    },
    /// Print what the copy of a run changes in the workspace
    Diff {
        /// Run to show [default: the newest]
        run: Option<String>,
    },
    /// Start an agent in the copy of a run again, with the same or other arguments
    Resume {
        /// Run to resume [default: the newest]
        run: Option<String>,
        #[command(flatten)]
        flags: GuardFlags,
        /// Agent and its arguments [default: those of the run]
        #[arg(last = true, value_name = "AGENT")]
        agent: Vec<OsString>,
    },
    /// Judge the copy of a run without starting an agent
    Submit {
        /// Run to judge [default: the newest]
        run: Option<String>,
        /// Run this command on the resulting files before any is applied; if it fails, all of them
        /// wait for review. May be repeated
        #[arg(long, value_name = "COMMAND")]
        check: Vec<String>,
    },
    /// Delete the copy of a run; its drafts stay
    Discard {
        /// Run to discard [default: the newest]
        run: Option<String>,
    },
}

/// What the agent may do.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GuardFlags {
    /// Stop the agent after this time, such as 30m; its changes are judged [default: 2h]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Run this command on the resulting files before any is applied; if it fails, all of them wait
    /// for review. May be repeated
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: Vec<String>,
    /// Pass an environment variable to the agent; without a value, the one of this process. May be
    /// repeated
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Let the agent read this file or directory. May be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,
    /// Copy this file or directory of your home directory into the private one, such as `.claude`.
    /// May be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) copy_home: Vec<PathBuf>,
    /// Let the agent connect to this host over HTTPS, in addition to model providers: `host`,
    /// `host:port` or `*.domain`. May be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Let the agent connect to this port of this machine, such as that of a local model server. May
    /// be repeated
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) allow_loopback: Vec<u16>,
    /// Let the agent connect to nothing
    #[arg(long, conflicts_with_all = ["allow_host", "allow_loopback"])]
    pub(crate) offline: bool,
    /// Limit the memory of the agent and its programs, in MiB; needs cgroups, which only root can
    /// create
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(64..=1 << 30))]
    pub(crate) memory: Option<u64>,
    /// Limit the processes and threads of the agent [default: 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(8..=1 << 20))]
    pub(crate) processes: Option<u64>,
    /// Make a full copy instead of an overlay, for file systems that do not support overlays
    #[arg(long)]
    pub(crate) full_copy: bool,
    /// Keep the copy and the private home directory after everything was applied
    #[arg(long)]
    pub(crate) keep: bool,
}
