//! Runs child processes and prints to the terminal. Errors include the command line.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the workspace that contains the working directory. Not the compiled-in path: clones
/// that share a target directory share this binary.
pub(crate) fn root() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let root = here.ancestors().find(|folder| folder.join("xtask/Cargo.toml").is_file());
    Ok(root.context("the current directory is not inside the workspace")?.to_path_buf())
}

/// The target directory. Matches cargo for the two ways in which this project sets it.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// Runs a command in the terminal. An exit code other than 0 is an error.
pub(crate) fn run(root: &Path, command_line: &[&str]) -> Result<()> {
    run_with(root, command_line, &[])
}

/// Like [`run`], with additional environment variables.
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

/// Runs the tests that a nextest filter selects and shows their output. The environment variable
/// sets how long they run.
///
/// Always selects the whole workspace, like every command here: `-p` would select other features of
/// shared dependencies and recompile most of them.
pub(crate) fn run_tests(root: &Path, variable: &str, size: &str, filter: &str) -> Result<()> {
    let nextest = ["cargo", "nextest", "run", "--workspace", "--locked", "--profile", "long"];
    let command_line = [&nextest[..], &["--no-capture", "-E", filter]].concat();
    run_with(root, &command_line, &[(variable, size)])
}

/// Builds binaries of the workspace and returns their directory. Like [`run_tests`], it selects the
/// whole workspace.
pub(crate) fn build(root: &Path, profile: &str, programs: &[&str]) -> Result<PathBuf> {
    let mut command_line = vec!["cargo", "build", "--quiet", "--locked", "--workspace"];
    command_line.extend(["--profile", profile]);
    command_line.extend(programs.iter().flat_map(|name| ["--bin", name]));
    run(root, &command_line)?;
    Ok(target_dir(root).join(if profile == "dev" { "debug" } else { profile }))
}

/// Converts a path to a command-line argument.
pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("`{}` is not UTF-8", path.display()))
}

/// Runs a command and returns its stdout. On failure the error contains its stderr.
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
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed invalid UTF-8"))
}

/// Whether a command starts and succeeds. Tells a missing tool from a failing one.
pub(crate) fn works(root: &Path, command_line: &[&str]) -> bool {
    read(root, command_line).is_ok()
}

/// Fails if the nightly toolchain is missing. Callers use `rustup run nightly cargo` and not `cargo
/// +nightly`: inside `cargo xtask`, `cargo` may be the pinned toolchain's binary, which does not
/// support `+`.
pub(crate) fn require_nightly(root: &Path) -> Result<()> {
    if !works(root, &["rustup", "run", "nightly", "cargo", "--version"]) {
        bail!(
            "the nightly toolchain is missing\nhint: run `rustup toolchain install nightly --profile minimal`"
        );
    }
    Ok(())
}

/// Prints a line of output to stdout. A closed pipe (`| head`) is not an error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a progress or error line to stderr.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn command(root: &Path, command_line: &[&str]) -> Result<Command> {
    let (program, arguments) = command_line.split_first().context("empty command line")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    Ok(command)
}
