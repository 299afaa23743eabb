//! `exec`, `doctor`, `sandbox`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::EngineChoice;

const EXEC_EXAMPLES: &str = "\
Examples:
  moothall exec hello.py
  moothall exec chart.py --image data --output out
  moothall exec total.py --input sales.csv -- --year 2026
  moothall exec hello.py --isolation microvm --json

The program runs in /workspace, finds its inputs in /inputs, and leaves files in /workspace/out.
The exit code is 0 where the program ends with 0, and 1 where it does not; --json tells which.";

#[derive(Debug, Args)]
#[command(after_help = EXEC_EXAMPLES)]
pub(crate) struct ExecArgs {
    /// The Python program
    pub(crate) program: PathBuf,
    /// Arguments of the program, after `--`
    #[arg(last = true)]
    pub(crate) args: Vec<String>,
    /// File that the program can read as /inputs/NAME; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<PathBuf>,
    /// Folder for the files that the program leaves in /workspace/out
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxFlags,
    /// Print one JSON object: how it ended, what it printed, and the sandbox it ran in
    #[arg(long)]
    pub(crate) json: bool,
}

/// What kind of sandbox, and what a program may use.
#[derive(Debug, Clone, Args)]
pub(crate) struct SandboxFlags {
    /// What runs the sandbox [default: from the configuration, else auto]
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) isolation: Option<EngineChoice>,
    /// Let `auto` choose a container on this machine's own kernel where there is nothing stronger
    #[arg(long)]
    pub(crate) allow_shared_kernel: bool,
    /// The image: `python` has the standard library, `data` has numpy, pandas and matplotlib too
    #[arg(long, value_name = "NAME", default_value = "python")]
    pub(crate) image: String,
    /// Seconds that the program may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// Mebibytes of memory that the program may use
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(32..=16_384))]
    pub(crate) memory: u64,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// The sandboxes that exist on this machine now, and whose they are
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Clean up what programs that were killed left of their sandboxes
    Reap {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
