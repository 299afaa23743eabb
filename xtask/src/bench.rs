//! `cargo xtask bench NAME`: runs the benchmark that SPECIFICATION.md refers to as `bench:NAME`.

use std::path::Path;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::guest;
use crate::shell::{self, text};

/// One variant per benchmark. The variant's name is NAME, here and in `bench/`.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure wall time, CPU and storage of a consultation, compared with LangGraph
    Consult(BenchSize),
    /// Measure wall time and CPU of debates on Restate, compared with Restate's bare SDK
    Engine(BenchSize),
    /// Measure latency of the gate and of draft writes, compared with `git diff` and a plain write
    Gate(BenchSize),
    /// Measure CPU and memory of a model call through the gateway, compared with the bare HTTP
    /// client
    Gateway(BenchSize),
    /// Load the server with many viewers of one run and many concurrent runs
    Load(BenchSize),
    /// Measure sandbox latency, compared with the bare engines doing the same work
    Sandbox(BenchSize),
    /// Measure time, memory and storage of many concurrent consultations on two workers
    Scale(BenchSize),
    /// Measure commits per second of a PostgreSQL store, compared with SQLite
    Store(BenchSize),
    /// Count the credentials that the gate finds in a generated corpus, compared with two published
    /// scanners
    Secrets,
}

#[derive(Debug, Args)]
pub(crate) struct BenchSize {
    /// Run the smallest case with the debug build that the tests use, and check no threshold
    #[arg(long)]
    smoke: bool,
}

pub(crate) fn run(bench: &BenchCommand) -> Result<()> {
    let root = shell::root()?;
    match bench {
        BenchCommand::Consult(length) => {
            let python = install_peer(&root)?;
            measure(&root, "consult", length, &["--python", &python])
        }
        BenchCommand::Engine(length) => {
            install_servers(&root)?;
            measure(&root, "engine", length, &[])
        }
        BenchCommand::Gate(length) => measure(&root, "gate", length, &[]),
        BenchCommand::Gateway(length) => measure(&root, "gateway", length, &[]),
        BenchCommand::Load(length) => measure(&root, "load", length, &["--program", PRODUCT]),
        BenchCommand::Sandbox(length) => {
            measure(&root, "sandbox", length, &["--moothall", PRODUCT])
        }
        BenchCommand::Scale(length) => {
            install_servers(&root)?;
            // Only a full run updates the plot in the book.
            let plot = ["--program", PRODUCT, "--plot", "docs/src/scaling.svg"];
            measure(&root, "scale", length, if length.smoke { &plot[..2] } else { &plot })
        }
        BenchCommand::Store(length) => {
            shell::run(&root, &["bash", "tools/postgres/up.sh", "--install-only"])?;
            measure(&root, "store", length, &[])
        }
        BenchCommand::Secrets => secrets(&root),
    }
}

/// Placeholder for the path of the `moothall` binary in a benchmark's arguments.
const PRODUCT: &str = "PRODUCT";

/// Runs one benchmark. Always builds both the benchmarks and the `moothall` binary, because all
/// benchmarks share one build.
fn measure(root: &Path, name: &str, length: &BenchSize, more: &[&str]) -> Result<()> {
    guest::run()?;
    let profile = if length.smoke { "dev" } else { "measure" };
    let target_dir = shell::build(root, profile, &["moothall", "moothall-bench"])?;
    let [bench, product] = [target_dir.join("moothall-bench"), target_dir.join("moothall")];
    let (bench, product) = (text(&bench)?, text(&product)?);
    let mut command_line = vec![bench, name];
    if length.smoke {
        command_line.push("--smoke");
    }
    command_line.extend(more.iter().map(|word| if *word == PRODUCT { product } else { word }));
    shell::run(root, &command_line)
}

/// Creates the Python environment of LangGraph in the target directory if it is missing or
/// outdated, and returns its interpreter.
fn install_peer(root: &Path) -> Result<String> {
    let folder = shell::target_dir(root).join("langgraph");
    let python = folder.join("bin/python");
    let python = text(&python)?;
    let requirements = root.join("bench/langgraph/requirements.txt");
    let installed = folder.join("requirements.txt");
    if fs_err::read(&requirements)? != fs_err::read(&installed).unwrap_or_default() {
        shell::run(root, &["python3", "-m", "venv", "--clear", text(&folder)?])?;
        shell::run(root, &[python, "-m", "pip", "install", "--quiet", "-r", text(&requirements)?])?;
        fs_err::copy(&requirements, &installed)?;
    }
    Ok(python.to_owned())
}

fn install_servers(root: &Path) -> Result<()> {
    shell::run(root, &["bash", "tools/postgres/up.sh", "--install-only"])?;
    shell::run(root, &["bash", "tools/restate/up.sh", "--install-only"])
}

/// The other scanners need a newer compiler than this workspace, so `bench/secrets` is a separate
/// workspace.
fn secrets(root: &Path) -> Result<()> {
    shell::require_nightly(root)?;
    let folder = shell::target_dir(root).join("secrets");
    let cargo = ["rustup", "run", "nightly", "cargo", "run", "--quiet", "--locked"];
    let paths = ["--manifest-path", "bench/secrets/Cargo.toml", "--target-dir", text(&folder)?];
    shell::run(root, &[&cargo[..], &paths].concat())
}

/// The names that are valid in `bench:NAME`.
pub(crate) fn names() -> Vec<String> {
    BenchCommand::augment_subcommands(clap::Command::new("bench"))
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect()
}
