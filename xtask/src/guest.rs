//! `cargo xtask guest`: builds the agent that runs inside sandboxes.
//!
//! The agent is one static file, because it is the first and sometimes the only program in a
//! microVM. It has a separate target directory: its compiler flags would otherwise cause a rebuild
//! of everything else.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::shell;

const NAME: &str = "moothall-guest";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The crates of the agent, as in the product's build script.
const SOURCES: [&str; 5] = [
    "crates/moothall-guest",
    "crates/moothall-core",
    "crates/moothall-evidence",
    "crates/moothall-gate",
    "crates/moothall-types",
];

/// The agent is copied into every initramfs and embedded in the `moothall` binary.
const MAX_BYTES: usize = 9 << 19;

pub(crate) fn run() -> Result<()> {
    let root = shell::root()?;
    let folder = shell::target_dir(&root).join("guest");
    build(&root, &folder)?;
    let built = folder.join(TARGET).join("guest").join(NAME);
    let bytes = fs_err::read(&built)?;
    check_static(&bytes)
        .with_context(|| format!("`{}` is not a usable guest agent", built.display()))?;
    if bytes.len() > MAX_BYTES {
        bail!("guest agent is too large: {} bytes (limit: {MAX_BYTES})", bytes.len());
    }
    let binary = folder.join(NAME);
    let stamp = folder.join("built");
    if fs_err::read(&binary).ok().as_ref() != Some(&bytes) {
        // Renamed into place: a concurrent build of the product sees either the old or the new
        // file.
        let new = folder.join(format!("{NAME}.new"));
        fs_err::copy(&built, &new)?;
        fs_err::rename(&new, &binary)?;
        fs_err::write(&stamp, "")?;
    }
    // The product's build script watches this file, which exists even without an agent. If cargo
    // had nothing to do, the file is not touched and the product is not rebuilt. A changed file
    // that is not part of the agent, such as a template, makes the agent look old.
    let sources = SOURCES.into_iter().filter_map(|name| newest_below(&root.join(name)));
    if changed(&stamp) < changed(&built).max(sources.max()) {
        fs_err::write(&stamp, "")?;
    }
    shell::say(&format!("{} ({} bytes)", binary.display(), bytes.len()));
    Ok(())
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs_err::metadata(path).and_then(|data| data.modified()).ok()
}

/// When the newest file in a directory was changed.
fn newest_below(path: &Path) -> Option<SystemTime> {
    let Ok(entries) = fs_err::read_dir(path) else { return changed(path) };
    entries.flatten().filter_map(|entry| newest_below(&entry.path())).max()
}

fn build(root: &Path, folder: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Paths of the build machine do not belong in the binary: they would make its hash depend on
    // the machine.
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("--remap-path-prefix={}=/moothall", root.display()),
    ];
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    if let Ok(home) = home {
        flags.push(format!("--remap-path-prefix={home}=/cargo"));
    }
    let status = Command::new(cargo)
        .args(["build", "--package", NAME, "--bin", NAME])
        .args(["--profile", "guest", "--target", TARGET, "--target-dir"])
        .arg(folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env_remove("RUSTFLAGS")
        // A wrapper that checks instead of building, such as clippy's driver, optimizes less.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("guest agent build failed: {status}");
    }
    Ok(())
}

/// Rejects a binary that needs a dynamic loader or libraries: a microVM has neither.
fn check_static(elf: &[u8]) -> Result<()> {
    const POSITION_INDEPENDENT: usize = 3;
    const INTERPRETER: usize = 3;
    let number = |at: usize, bytes: usize| -> Result<usize> {
        let field = elf.get(at..at + bytes).context("truncated ELF header")?;
        Ok(field.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        bail!("not a 64-bit ELF file");
    }
    if number(16, 2)? != POSITION_INDEPENDENT {
        bail!("not position-independent");
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for header in 0..count {
        let at = header.checked_mul(size).and_then(|offset| table.checked_add(offset));
        if number(at.context("invalid ELF header")?, 4)? == INTERPRETER {
            bail!("dynamically linked");
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "guest_tests.rs"]
mod tests;
