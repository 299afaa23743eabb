//! Child processes and terminal output, so that every task fails with the command line it ran.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the workspace that the working directory is in. Not the compiled-in path: clones that
/// share a target directory share this program.
pub(crate) fn root() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let root = here.ancestors().find(|folder| folder.join("xtask/Cargo.toml").is_file());
    Ok(root.context("this is not inside the workspace")?.to_path_buf())
}

/// Where builds go. Same answer as cargo's for the two ways this project sets it.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// Runs a command in the terminal; an exit code other than 0 is an error.
pub(crate) fn run(root: &Path, command_line: &[&str]) -> Result<()> {
    run_with(root, command_line, &[])
}

/// As [`run`], with these variables set.
pub(crate) fn run_with(
    root: &Path,
    command_line: &[&str],
    variables: &[(&str, &str)],
) -> Result<()> {
    let status = command(root, command_line)?
        .envs(variables.iter().copied())
        .status()
        .with_context(|| format!("cannot start `{}`", command_line.join(" ")))?;
    if !status.success() {
        bail!("`{}` ended with {status}", command_line.join(" "));
    }
    Ok(())
}

/// Runs tests that a filter of nextest selects, with a variable that says how long they are, and
/// shows what they print.
///
/// It names the whole workspace, as everything here does: `-p` would select other features of shared
/// dependencies and compile most of them again.
pub(crate) fn run_tests(root: &Path, variable: &str, size: &str, filter: &str) -> Result<()> {
    let nextest = ["cargo", "nextest", "run", "--workspace", "--locked", "--profile", "long"];
    let command_line = [&nextest[..], &["--no-capture", "-E", filter]].concat();
    run_with(root, &command_line, &[(variable, size)])
}

/// Builds programs of the workspace and returns the directory they are in. Like [`run_tests`], it
/// names the whole workspace.
pub(crate) fn build(root: &Path, profile: &str, programs: &[&str]) -> Result<PathBuf> {
    let mut command_line = vec!["cargo", "build", "--quiet", "--locked", "--workspace"];
    command_line.extend(["--profile", profile]);
    command_line.extend(programs.iter().flat_map(|name| ["--bin", name]));
    run(root, &command_line)?;
    Ok(target_dir(root).join(if profile == "dev" { "debug" } else { profile }))
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("`{}` is not UTF-8", path.display()))
}

/// Runs a command and returns what it printed; its error output is part of the error.
pub(crate) fn read(root: &Path, command_line: &[&str]) -> Result<String> {
    let shown = command_line.join(" ");
    let output = command(root, command_line)?
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` ended with {}: {}", output.status, stderr.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed no UTF-8"))
}

/// Whether a command starts and succeeds; used to tell a missing tool from a failing one.
pub(crate) fn works(root: &Path, command_line: &[&str]) -> bool {
    read(root, command_line).is_ok()
}

/// Fails where there is no nightly toolchain. It is used by `rustup run nightly cargo` instead of
/// `cargo +nightly`: inside `cargo xtask`, `cargo` may be the pinned one, which knows no `+`.
pub(crate) fn require_nightly(root: &Path) -> Result<()> {
    if !works(root, &["rustup", "run", "nightly", "cargo", "--version"]) {
        bail!(
            "the nightly toolchain is missing\nhint: run `rustup toolchain install nightly --profile minimal`"
        );
    }
    Ok(())
}

/// Prints a line of data to stdout. A closed pipe (`| head`) is no reason to fail.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a line about the work to stderr.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn command(root: &Path, command_line: &[&str]) -> Result<Command> {
    let (program, arguments) = command_line.split_first().context("empty command line")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    Ok(command)
}
