//! `cargo xtask guest`: builds the agent that runs inside sandboxes.
//!
//! It is one static file, because it is the first and sometimes the only program of a microVM. It has
//! a target folder of its own: its flags would otherwise make cargo build everything else anew.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

const NAME: &str = "moothall-guest";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// It is copied into every initramfs and embedded in the product.
const MOST_BYTES: usize = 3 << 20;

pub(crate) fn run() -> Result<()> {
    let root = shell::root()?;
    let folder = shell::target_dir(&root).join("guest");
    build(&root, &folder)?;
    let built = folder.join(TARGET).join("guest").join(NAME);
    let bytes = fs_err::read(&built)?;
    check_static(&bytes).with_context(|| format!("`{}` is of no use", built.display()))?;
    if bytes.len() > MOST_BYTES {
        bail!("the agent has {} bytes; {MOST_BYTES} are allowed", bytes.len());
    }
    let kept = folder.join(NAME);
    let stamp = folder.join("built");
    if fs_err::read(&kept).ok().as_ref() != Some(&bytes) {
        // Renamed into place: a build of the product that runs meanwhile sees the old or the new.
        let new = folder.join(format!("{NAME}.new"));
        fs_err::copy(&built, &new)?;
        fs_err::rename(&new, &kept)?;
        fs_err::write(&stamp, "")?;
    }
    // The product's build script watches this file, which exists even where no agent does. Where
    // cargo had nothing to do it stays as it is, and the product is not built anew.
    let changed = |path: &Path| fs_err::metadata(path).and_then(|data| data.modified()).ok();
    if changed(&stamp) < changed(&built) {
        fs_err::write(&stamp, "")?;
    }
    shell::say(&format!("{} ({} bytes)", kept.display(), bytes.len()));
    Ok(())
}

fn build(root: &Path, folder: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Paths of this machine do not belong into the file, and would give it another hash elsewhere.
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
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("building the agent ended with {status}");
    }
    Ok(())
}

/// Refuses a file that needs a loader or libraries: inside a microVM there are none.
fn check_static(elf: &[u8]) -> Result<()> {
    const POSITION_INDEPENDENT: usize = 3;
    const INTERPRETER: usize = 3;
    let number = |at: usize, bytes: usize| -> Result<usize> {
        let field = elf.get(at..at + bytes).context("it ends in its header")?;
        Ok(field.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        bail!("it is not an ELF file of 64 bits");
    }
    if number(16, 2)? != POSITION_INDEPENDENT {
        bail!("it is not position-independent");
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for header in 0..count {
        let at = header.checked_mul(size).and_then(|offset| table.checked_add(offset));
        if number(at.context("its header makes no sense")?, 4)? == INTERPRETER {
            bail!("it is linked dynamically");
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "guest_tests.rs"]
mod tests;
