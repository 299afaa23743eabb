//! Reads a committee from a directory: `committee.toml`, and the user's own texts in `prompts/*.md`
//! and `memo/*.md`.
//!
//! The directory may come from another person: links are not followed, and sizes are limited.

use std::path::{Path, PathBuf};

use moothall_core::TextKind;
use moothall_core::consult::{Committee, board};

use super::committee_file;
use crate::config::ConfigProblem;
use crate::error::CliError;
use crate::files;

/// The committee file in a directory.
pub(crate) const COMMITTEE_FILE: &str = "committee.toml";

/// Larger files are not read; the limit of a text is lower.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Reads a directory. All mistakes in its files are returned together.
///
/// Errors: a file cannot be read.
pub(crate) fn read(folder: &Path) -> Result<Result<Committee, Vec<ConfigProblem>>, CliError> {
    let path = folder.join(COMMITTEE_FILE);
    if !path.is_file() {
        let shown = folder.display();
        return Err(CliError::usage(format!("`{shown}` has no file `{COMMITTEE_FILE}`"))
            .with_hint(format!(
                "create one with `moothall committee new {shown}/{COMMITTEE_FILE}`"
            )));
    }
    let (mut committee, mut problems) = match committee_file::read(&path)? {
        Ok(committee) => (committee, Vec::new()),
        // The texts can still be checked.
        Err(problems) => (board(), problems),
    };
    for kind in TextKind::ALL {
        for path in text_files(&folder.join(kind.folder()))? {
            problems.extend(read_text(&mut committee, kind, &path)?);
        }
    }
    if !problems.is_empty() {
        return Ok(Err(problems));
    }
    let shown = folder.display().to_string();
    let checked =
        committee.validate().map_err(|error| vec![committee_file::problem(&shown, &error)]);
    Ok(checked.map(|()| committee))
}

/// The files of a directory, sorted; none if it does not exist. Hidden files are left out.
fn text_files(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::usage("cannot read the committee directory").with_source(error)
    };
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn read_text(
    committee: &mut Committee,
    kind: TextKind,
    path: &Path,
) -> Result<Option<ConfigProblem>, CliError> {
    let called = path.display().to_string();
    let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".md"));
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let (Some(name), true) = (name, is_file) else {
        let problem = ConfigProblem::new(format!("{called}: not a text file `NAME.md`"));
        let hint = "move it elsewhere; `moothall prompts list` prints all names";
        return Ok(Some(problem.with_hint(hint)));
    };
    let unreadable = || CliError::usage("cannot read a text of the committee");
    let text = files::read_text(path, &called, MAX_FILE_BYTES, unreadable)?;
    Ok(add_text(committee, kind, name, &text, &called).err())
}

/// Checks a text and adds it to a committee. `called` precedes the line number of a mistake.
pub(crate) fn add_text(
    committee: &mut Committee,
    kind: TextKind,
    name: &str,
    text: &str,
    called: &str,
) -> Result<(), ConfigProblem> {
    let texts = match kind {
        TextKind::Prompt => &mut committee.prompts,
        TextKind::Memo => &mut committee.memo,
    };
    if texts.get(name).is_some() {
        let message = format!("{called}: `{COMMITTEE_FILE}` has this text, too");
        return Err(ConfigProblem::new(message).with_hint("delete one of them"));
    }
    texts.add(kind, name, text).map_err(|fault| {
        ConfigProblem::new(format!("{called}:{}: {fault}", fault.line))
            .with_hint(fault.problem.hint())
    })
}

#[cfg(test)]
#[path = "committee_folder_tests.rs"]
mod tests;
