//! Child processes and terminal output, so that every task fails with the command line it ran.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The workspace's root folder.
///
/// `cargo run` tells where it found the manifest; the compiled-in path is for a binary started by
/// hand.
pub(crate) fn root() -> Result<PathBuf> {
    let manifest = std::env::var("CARGO_MANIFEST_DIR")
        .unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let root = Path::new(&manifest).parent().context("xtask's folder has no parent")?;
    Ok(root.to_path_buf())
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

/// Runs tests of a package's `it` in the terminal, with a variable that says how long they are.
pub(crate) fn run_tests(root: &Path, package: &str, size: &str, filter: &[&str]) -> Result<()> {
    let mut command_line = vec!["env", size, "cargo", "test", "--quiet", "--locked", "-p", package];
    command_line.extend(["--test", "it", "--", "--nocapture"]);
    command_line.extend(filter);
    run(root, &command_line)
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
