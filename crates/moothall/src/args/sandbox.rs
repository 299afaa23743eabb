//! Arguments of `exec`, `doctor` and `sandbox`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::EngineChoice;

const EXEC_EXAMPLES: &str = "\
Examples:
  moothall exec hello.py
  moothall exec chart.py --image data --output out
  moothall exec total.py --input sales.csv -- --year 2026
  moothall exec hello.py --isolation microvm --json

The program runs in /workspace, reads its inputs from /inputs, and writes files to /workspace/out.
The exit code is 0 if the program exits with 0, and 1 otherwise; --json includes the program's own.";

#[derive(Debug, Args)]
#[command(after_help = EXEC_EXAMPLES)]
pub(crate) struct ExecArgs {
    /// Python program to run
    pub(crate) program: PathBuf,
    /// Arguments of the program, after `--`
    #[arg(last = true)]
    pub(crate) args: Vec<String>,
    /// Give the program this file as /inputs/NAME (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<PathBuf>,
    /// Write the files from /workspace/out to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxFlags,
    /// Print one JSON object: how the program ended, its output, and the sandbox used
    #[arg(long)]
    pub(crate) json: bool,
}

/// Sandbox selection and resource limits.
#[derive(Debug, Clone, Args)]
pub(crate) struct SandboxFlags {
    /// Use this sandbox engine [default: from the configuration, else auto]
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) isolation: Option<EngineChoice>,
    /// Allow `auto` to choose a container on the host kernel if nothing stronger works
    #[arg(long)]
    pub(crate) allow_shared_kernel: bool,
    /// Use this image: `python` has the standard library, `data` adds numpy, pandas and matplotlib
    #[arg(long, value_name = "NAME", default_value = "python")]
    pub(crate) image: String,
    /// Stop the program after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// Limit the memory of the program, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(32..=16_384))]
    pub(crate) memory: u64,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("use KEY=VALUE, such as `move=m3`")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// List the sandboxes on this machine and their owners
    List {
        /// List only sandboxes with this label, such as `ticker=HLXI` or `move=m3` (repeatable)
        #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
        label: Vec<(String, String)>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Clean up sandboxes left by killed processes
    Reap {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
