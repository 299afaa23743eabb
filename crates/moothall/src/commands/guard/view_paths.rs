//! Finds the agent's program and the directories outside of the system that it needs.

use std::ffi::OsStr;
use std::io::{BufRead as _, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::CliError;

/// Longest first line of a script that is read.
const MAX_LINE_BYTES: u64 = 256;

/// The agent's program, and what it may read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AgentProgram {
    pub(crate) program: PathBuf,
    pub(crate) read: Vec<PathBuf>,
}

/// Finds a program as a shell would. A program in the workspace is not resolved: the agent starts
/// the version in its copy.
pub(crate) fn find_agent(
    name: &OsStr,
    search: &OsStr,
    workspace: &Path,
    home: &Path,
) -> Result<AgentProgram, CliError> {
    let folders: Vec<PathBuf> =
        std::env::split_paths(search).filter(|folder| folder.is_absolute()).collect();
    let shown = name.to_string_lossy();
    let program = match Path::new(name).components().count() > 1 {
        true => real_folder(&workspace.join(name)),
        false => folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path)),
    };
    let program = program.filter(|path| is_program(path)).ok_or_else(|| {
        CliError::usage(format!("cannot find the agent `{shown}`"))
            .with_hint("install it, or pass its path: `moothall guard -- ./agent.sh`")
    })?;
    let mut read: Vec<PathBuf> =
        folders.into_iter().filter(|folder| is_shareable(folder, home)).collect();
    if !program.starts_with(workspace) {
        read.push(program.clone());
        read.extend(installation(&program, home));
        if let Some(interpreter) = interpreter(&program)
            && let Some(found) = std::env::split_paths(search)
                .map(|folder| folder.join(&interpreter))
                .find(|path| is_program(path))
        {
            read.extend(installation(&found, home));
        }
    }
    let mut read: Vec<PathBuf> = read.into_iter().filter(|path| path.exists()).collect();
    read.sort();
    read.dedup();
    Ok(AgentProgram { program, read })
}

/// The path of a file, with the directory it is really in.
fn real_folder(path: &Path) -> Option<PathBuf> {
    Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether a directory can be shown without showing the whole home directory or system.
fn is_shareable(folder: &Path, home: &Path) -> bool {
    !home.starts_with(folder) && folder.components().count() > 2
}

/// What belongs to a program: the packages of a `node_modules`, the prefix of a `bin` directory, or
/// its file.
fn installation(program: &Path, home: &Path) -> Vec<PathBuf> {
    let Ok(real) = fs::canonicalize(program) else { return Vec::new() };
    let packages = real.ancestors().filter(|path| path.ends_with("node_modules")).last();
    let prefix = real
        .parent()
        .filter(|folder| folder.ends_with("bin"))
        .and_then(Path::parent)
        // `~/.local` and `~/.cargo` contain more than programs.
        .filter(|prefix| prefix.parent() != Some(home) && is_shareable(prefix, home));
    match packages.or(prefix) {
        Some(folder) => vec![folder.to_owned(), real.clone()],
        None => vec![real],
    }
}

/// The interpreter of a script with `#!/usr/bin/env NAME` or `#!/path/NAME`.
fn interpreter(program: &Path) -> Option<String> {
    let file = fs::File::open(program).ok()?;
    let mut line = Vec::new();
    std::io::BufReader::new(file.take(MAX_LINE_BYTES)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let first = Path::new(words.next()?).file_name()?.to_str()?.to_owned();
    match first.as_str() {
        "env" => words.find(|word| !word.starts_with('-')).map(str::to_owned),
        _ => Some(first),
    }
}

#[cfg(test)]
#[path = "view_paths_tests.rs"]
mod tests;
