//! `cargo xtask bench NAME`: measures a promise of SPECIFICATION.md, written there as `bench:NAME`.

use std::path::Path;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::guest;
use crate::shell::{self, text};

/// One variant per benchmark; the variant's name is the NAME, here and in `bench/`.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Wall time, CPU and storage of a consultation, beside LangGraph
    Consult(Length),
    /// Wall time and CPU of debates on Restate, beside Restate's bare SDK
    Engine(Length),
    /// Latency of the gate and of writing drafts, beside `git diff` and a plain write
    Gate(Length),
    /// CPU and memory of a model call through the gateway, beside the bare HTTP client
    Gateway(Length),
    /// Many viewers of one run, and many runs at once, on the server
    Load(Length),
    /// Latency of sandboxes, beside the bare engines doing the same
    Sandbox(Length),
    /// Many consultations at once on two workers: time, memory and storage
    Scale(Length),
    /// Commits a second of a store in PostgreSQL, beside SQLite
    Store(Length),
    /// Credentials that the gate finds in a generated corpus, beside two published scanners
    Secrets,
}

#[derive(Debug, Args)]
pub(crate) struct Length {
    /// Run the smallest case from the debug build that the tests use, and check no threshold
    #[arg(long)]
    smoke: bool,
}

pub(crate) fn run(bench: &Bench) -> Result<()> {
    let root = shell::root()?;
    match bench {
        Bench::Consult(length) => {
            let python = install_peer(&root)?;
            measure(&root, "consult", length, &["--python", &python])
        }
        Bench::Engine(length) => {
            install_servers(&root)?;
            measure(&root, "engine", length, &[])
        }
        Bench::Gate(length) => measure(&root, "gate", length, &[]),
        Bench::Gateway(length) => measure(&root, "gateway", length, &[]),
        Bench::Load(length) => measure(&root, "load", length, &["--program", PRODUCT]),
        Bench::Sandbox(length) => measure(&root, "sandbox", length, &["--moothall", PRODUCT]),
        Bench::Scale(length) => {
            install_servers(&root)?;
            // The plot of the book is made by a whole run only.
            let plot = ["--program", PRODUCT, "--plot", "docs/src/scaling.svg"];
            measure(&root, "scale", length, if length.smoke { &plot[..2] } else { &plot })
        }
        Bench::Store(length) => {
            shell::run(&root, &["bash", "tools/postgres/up.sh", "--install-only"])?;
            measure(&root, "store", length, &[])
        }
        Bench::Secrets => secrets(&root),
    }
}

/// Placeholder for the path of the product in the arguments of a benchmark.
const PRODUCT: &str = "PRODUCT";

/// Builds the benchmarks and the product they start, always both, because all benchmarks share one
/// build; then runs one.
fn measure(root: &Path, name: &str, length: &Length, more: &[&str]) -> Result<()> {
    guest::run()?;
    let profile = if length.smoke { "dev" } else { "measure" };
    let made = shell::build(root, profile, &["moothall", "moothall-bench"])?;
    let [bench, product] = [made.join("moothall-bench"), made.join("moothall")];
    let (bench, product) = (text(&bench)?, text(&product)?);
    let mut command_line = vec![bench, name];
    if length.smoke {
        command_line.push("--smoke");
    }
    command_line.extend(more.iter().map(|word| if *word == PRODUCT { product } else { word }));
    shell::run(root, &command_line)
}

/// Makes the Python environment of the peer beside the build, once, and returns its interpreter.
fn install_peer(root: &Path) -> Result<String> {
    let folder = shell::target_dir(root).join("langgraph");
    let python = folder.join("bin/python");
    let python = text(&python)?;
    let wanted = root.join("bench/langgraph/requirements.txt");
    let made = folder.join("requirements.txt");
    if fs_err::read(&wanted)? != fs_err::read(&made).unwrap_or_default() {
        shell::run(root, &["python3", "-m", "venv", "--clear", text(&folder)?])?;
        shell::run(root, &[python, "-m", "pip", "install", "--quiet", "-r", text(&wanted)?])?;
        fs_err::copy(&wanted, &made)?;
    }
    Ok(python.to_owned())
}

fn install_servers(root: &Path) -> Result<()> {
    shell::run(root, &["bash", "tools/postgres/up.sh", "--install-only"])?;
    shell::run(root, &["bash", "tools/restate/up.sh", "--install-only"])
}

/// The other scanners need a newer compiler than ours, so `bench/secrets` is a separate workspace.
fn secrets(root: &Path) -> Result<()> {
    shell::require_nightly(root)?;
    let folder = shell::target_dir(root).join("secrets");
    let cargo = ["rustup", "run", "nightly", "cargo", "run", "--quiet", "--locked"];
    let place = ["--manifest-path", "bench/secrets/Cargo.toml", "--target-dir", text(&folder)?];
    shell::run(root, &[&cargo[..], &place].concat())
}

/// The names that `bench:NAME` may use.
pub(crate) fn names() -> Vec<String> {
    Bench::augment_subcommands(clap::Command::new("bench"))
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect()
}
