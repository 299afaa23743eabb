//! `cargo xtask bench NAME`: measures a promise of SPECIFICATION.md, written there as `bench:NAME`.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};

use crate::shell;

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
    /// Fewer calls, and fails only when the promise is broken by a wide margin
    #[arg(long)]
    short: bool,
}

pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Consult(length) => consult(length),
        Bench::Engine(length) => engine(length),
        Bench::Gate(length) => measure("gate", length, &[]),
        Bench::Gateway(length) => measure("gateway", length, &[]),
        Bench::Load(length) => load(length),
        Bench::Sandbox(length) => sandbox(length),
        Bench::Scale(length) => scale(length),
        Bench::Store(length) => store(length),
        Bench::Secrets => secrets(),
    }
}

fn measure(name: &str, length: &Length, more: &[&str]) -> Result<()> {
    let mut command_line = vec![
        "cargo",
        "run",
        "--quiet",
        "--locked",
        "--profile",
        "measure",
        "-p",
        "moothall-bench",
        "--",
        name,
    ];
    if length.short {
        command_line.push("--short");
    }
    command_line.extend(more);
    shell::run(&shell::root()?, &command_line)
}

/// The peer is made once, beside the build.
fn consult(length: &Length) -> Result<()> {
    let root = shell::root()?;
    shell::run(&root, &["cargo", "xtask", "guest"])?;
    let folder = shell::target_dir(&root).join("langgraph");
    let python = folder.join("bin/python");
    let path = python.to_str().context("the target folder's name is not text")?;
    let wanted = root.join("bench/langgraph/requirements.txt");
    let made = folder.join("requirements.txt");
    if fs_err::read(&wanted)? != fs_err::read(&made).unwrap_or_default() {
        let target = folder.to_str().context("the target folder's name is not text")?;
        shell::run(&root, &["python3", "-m", "venv", "--clear", target])?;
        let packages = wanted.to_str().context("the folder's name is not text")?;
        shell::run(&root, &[path, "-m", "pip", "install", "--quiet", "-r", packages])?;
        fs_err::copy(&wanted, &made)?;
    }
    measure("consult", length, &["--python", path])
}

fn load(length: &Length) -> Result<()> {
    with_product("load", length, &[])
}

/// The plot of the book is made by a whole run only.
fn scale(length: &Length) -> Result<()> {
    let root = shell::root()?;
    install_servers(&root)?;
    match length.short {
        true => with_product("scale", length, &[]),
        false => with_product("scale", length, &["--plot", "docs/src/scaling.svg"]),
    }
}

fn engine(length: &Length) -> Result<()> {
    install_servers(&shell::root()?)?;
    measure("engine", length, &[])
}

fn store(length: &Length) -> Result<()> {
    shell::run(&shell::root()?, &["bash", "tools/postgres/up.sh", "--install-only"])?;
    measure("store", length, &[])
}

fn install_servers(root: &Path) -> Result<()> {
    shell::run(root, &["bash", "tools/postgres/up.sh", "--install-only"])?;
    shell::run(root, &["bash", "tools/restate/up.sh", "--install-only"])
}

/// It starts the product as a user does. A short run takes the builds that the tests use.
fn with_product(name: &str, length: &Length, more: &[&str]) -> Result<()> {
    let root = shell::root()?;
    let (profile, folder) = if length.short { ("dev", "debug") } else { ("measure", "measure") };
    let packages = ["-p", "moothall", "-p", "moothall-bench"];
    let build = [&["cargo", "build", "--quiet", "--locked", "--profile", profile], &packages[..]];
    shell::run(&root, &build.concat())?;
    let made = shell::target_dir(&root).join(folder);
    let (bench, program) = (made.join("moothall-bench"), made.join("moothall"));
    let path = |path: &Path| -> Result<String> {
        Ok(path.to_str().context("the target folder's name is not text")?.to_owned())
    };
    let (bench, program) = (path(&bench)?, path(&program)?);
    let mut command_line = vec![bench.as_str(), name, "--program", program.as_str()];
    if length.short {
        command_line.push("--short");
    }
    command_line.extend(more);
    shell::run(&root, &command_line)
}

/// It also starts the product as a user does. A short run takes the build that the tests use: an
/// optimised one takes minutes to make.
fn sandbox(length: &Length) -> Result<()> {
    let root = shell::root()?;
    shell::run(&root, &["cargo", "xtask", "guest"])?;
    let (profile, folder) = if length.short { ("dev", "debug") } else { ("measure", "measure") };
    let build = ["cargo", "build", "--quiet", "--locked", "--profile", profile, "-p", "moothall"];
    shell::run(&root, &build)?;
    let product = shell::target_dir(&root).join(folder).join("moothall");
    let product = product.to_str().context("the target folder's name is not text")?;
    measure("sandbox", length, &["--moothall", product])
}

/// The other scanners want a newer compiler than ours: `bench/secrets` is a workspace of its own.
fn secrets() -> Result<()> {
    let root = shell::root()?;
    shell::require_nightly(&root)?;
    let folder = shell::target_dir(&root).join("secrets");
    let folder = folder.to_str().context("the target folder's name is not text")?;
    let cargo = ["rustup", "run", "nightly", "cargo", "run", "--quiet", "--locked"];
    let place = ["--manifest-path", "bench/secrets/Cargo.toml", "--target-dir", folder];
    shell::run(&root, &[&cargo[..], &place].concat())
}

/// The names that `bench:NAME` may use.
pub(crate) fn names() -> Vec<String> {
    Bench::augment_subcommands(clap::Command::new("bench"))
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect()
}
