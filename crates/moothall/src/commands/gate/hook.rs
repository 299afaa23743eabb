//! `moothall gate install`: a git hook that judges every commit.
//!
//! An existing hook is kept: it is renamed, and the new hook runs it first. `--remove` renames it
//! back, byte for byte, and refuses to remove a hook that was edited afterwards.

use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use moothall_workspace::GitRepository;

use crate::display;
use crate::error::{CliError, CliExit};
use crate::terminal;

const HOOK: &str = "pre-commit";
/// The name of the hook that was there before.
const KEPT: &str = "pre-commit.before-moothall";

/// Works without Moothall in `PATH` at the time of the commit: the commit is then refused, because
/// a missing gate must not let everything pass.
const SCRIPT: &str = r#"#!/bin/sh
# Installed by `moothall gate install`; `moothall gate install --remove` removes it.
# Judges the staged files. Commit without it with `git commit --no-verify`.
here=$(dirname "$0")
if [ -x "$here/pre-commit.before-moothall" ]; then
    "$here/pre-commit.before-moothall" "$@" || exit
fi
if ! command -v moothall >/dev/null; then
    echo "moothall is not in PATH, so the commit cannot be judged" >&2
    exit 1
fi
exec moothall gate --staged
"#;

pub(crate) fn run(repository: &GitRepository, remove: bool) -> anyhow::Result<CliExit> {
    let directory = repository.hooks_directory().map_err(super::failed)?;
    let message = match remove {
        true => remove_hook(&directory)?,
        false => install_hook(&directory)?,
    };
    terminal::print(&format!("{message}\n"))?;
    Ok(CliExit::Fine)
}

fn shown(path: &Path) -> String {
    display::line(&path.display().to_string())
}

fn unwritable(error: std::io::Error) -> CliError {
    CliError::new(CliExit::Failed, "cannot change the hooks").with_source(error)
}

/// The text of a hook, if it exists. Anything but a file is refused.
fn hook_text(path: &Path) -> Result<Option<Vec<u8>>, CliError> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unwritable(error)),
        Ok(found) if found.is_file() => fs_err::read(path).map(Some).map_err(unwritable),
        Ok(_) => Err(CliError::usage(format!("`{}` is not a regular file", shown(path)))
            .with_hint("add `moothall gate --staged` to the program that it links to")),
    }
}

fn install_hook(directory: &Path) -> Result<String, CliError> {
    let (hook, kept) = (directory.join(HOOK), directory.join(KEPT));
    let existing = hook_text(&hook)?;
    if existing.as_deref() == Some(SCRIPT.as_bytes()) {
        return Ok(format!("already installed: {}", shown(&hook)));
    }
    if hook_text(&kept)?.is_some() {
        return Err(CliError::usage(format!("`{}` already exists", shown(&kept)))
            .with_hint("compare the two hooks, and remove one"));
    }
    fs_err::create_dir_all(directory).map_err(unwritable)?;
    // Written first: no moment is without a hook.
    let staged = directory.join("pre-commit.moothall-new");
    write_script(&staged).map_err(unwritable)?;
    if existing.is_some() {
        fs_err::rename(&hook, &kept).map_err(unwritable)?;
    }
    fs_err::rename(&staged, &hook).map_err(unwritable)?;
    let before = match existing {
        Some(_) => format!("\nthe existing hook runs first; it is now {}", shown(&kept)),
        None => String::new(),
    };
    Ok(format!("installed: {}{before}", shown(&hook)))
}

fn write_script(path: &Path) -> std::io::Result<()> {
    let mut file = fs_err::OpenOptions::new();
    file.write(true).create(true).truncate(true).options_mut().mode(0o755);
    let mut file = file.open(path)?;
    file.write_all(SCRIPT.as_bytes())?;
    file.set_permissions(std::fs::Permissions::from_mode(0o755))
}

fn remove_hook(directory: &Path) -> Result<String, CliError> {
    let (hook, kept) = (directory.join(HOOK), directory.join(KEPT));
    match hook_text(&hook)? {
        Some(text) if text == SCRIPT.as_bytes() => {}
        None => return Ok(format!("not installed: {}", shown(&hook))),
        Some(_) => {
            return Err(CliError::usage(format!(
                "`{}` was not written by this version of Moothall, or it was edited",
                shown(&hook)
            ))
            .with_hint("remove the line with `moothall gate` yourself"));
        }
    }
    match hook_text(&kept)? {
        Some(_) => {
            fs_err::rename(&kept, &hook).map_err(unwritable)?;
            Ok(format!("removed; the previous hook is back: {}", shown(&hook)))
        }
        None => {
            fs_err::remove_file(&hook).map_err(unwritable)?;
            Ok(format!("removed: {}", shown(&hook)))
        }
    }
}
