//! Reads input files for a sandbox, and writes the files that a sandboxed program created.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use moothall_core::sandbox::{FileRef, GuestPath};
use moothall_core::text;
use serde::Serialize;

use crate::error::CliError;
use crate::terminal::{self, YELLOW};

/// Size limit of one input file.
const MAX_INPUT_BYTES: u64 = 16 << 20;

pub(crate) const FILE_NAME_HINT: &str =
    "rename the file: a name has at most 255 bytes of UTF-8, without control characters and `\\`";

/// Reads the input files of a program. They keep their file names in the sandbox.
pub(crate) fn read_inputs(paths: &[PathBuf]) -> Result<BTreeMap<GuestPath, Vec<u8>>, CliError> {
    let mut inputs = BTreeMap::new();
    for path in paths {
        let shown = path.display();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name: GuestPath = name.parse().map_err(|_| {
            CliError::usage(format!("the file name of {shown} cannot be used in a sandbox"))
                .with_hint(FILE_NAME_HINT)
        })?;
        let unreadable = || CliError::usage(format!("cannot read input {shown}"));
        let file = fs_err::File::open(path).map_err(|error| unreadable().with_source(error))?;
        let mut bytes = Vec::new();
        file.take(MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable().with_source(error))?;
        if bytes.len() as u64 > MAX_INPUT_BYTES {
            return Err(CliError::usage(format!(
                "input {shown} is larger than {} MiB",
                MAX_INPUT_BYTES >> 20
            )));
        }
        if inputs.insert(name.clone(), bytes).is_some() {
            return Err(CliError::usage(format!("two inputs have the name `{name}`"))
                .with_hint("rename one of them: they share one directory in the sandbox"));
        }
    }
    Ok(inputs)
}

/// References the files by content hash, as requests do.
pub(crate) fn references(files: &BTreeMap<GuestPath, Vec<u8>>) -> BTreeMap<GuestPath, FileRef> {
    files.iter().map(|(path, bytes)| (path.clone(), FileRef::of(bytes))).collect()
}

/// The files of a program that were written or skipped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenFiles {
    pub(crate) written: Vec<PathBuf>,
    pub(crate) skipped: Vec<SkippedFile>,
}

/// A file that was not written because its name is unsafe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SkippedFile {
    pub(crate) path: GuestPath,
    pub(crate) reason: &'static str,
}

impl WrittenFiles {
    pub(crate) fn extend(&mut self, more: Self) {
        self.written.extend(more.written);
        self.skipped.extend(more.skipped);
    }

    /// Lists the skipped files on standard error.
    pub(crate) fn report_skipped(&self) {
        for SkippedFile { path, reason } in &self.skipped {
            let path: String = path.as_str().escape_debug().collect();
            terminal::note(&format!("{YELLOW}skipped `{path}`: {reason}{YELLOW:#}\n"));
        }
    }
}

/// Returns why a file must not be written: tools act on hidden files (`.git`, `.env`), parse a
/// leading `-` as an option, and readers cannot see invisible characters.
fn unsafe_name_reason(path: &GuestPath) -> Option<&'static str> {
    let any = |is_odd: fn(&str) -> bool| path.parts().any(is_odd);
    if any(|part| part.starts_with('.')) {
        Some("hidden files are not written")
    } else if any(|part| part.starts_with('-')) {
        Some("the name starts with `-` and looks like an option")
    } else if any(|part| part.chars().any(text::is_unseen)) {
        Some("the name contains invisible characters")
    } else {
        None
    }
}

/// Writes the files of a program below `folder`. The program chose the names, so they cannot leave
/// the folder, symbolic links are not followed, and existing files are not overwritten. Files with
/// unsafe names are skipped.
pub(crate) fn write(
    folder: &Path,
    files: &BTreeMap<GuestPath, Vec<u8>>,
) -> Result<WrittenFiles, CliError> {
    let unwritable = |error: std::io::Error| {
        CliError::failed("cannot write a file of the program").with_source(error)
    };
    let mut done = WrittenFiles::default();
    for (path, bytes) in files {
        if let Some(reason) = unsafe_name_reason(path) {
            done.skipped.push(SkippedFile { path: path.clone(), reason });
            continue;
        }
        let mut target = folder.to_owned();
        fs_err::create_dir_all(&target).map_err(unwritable)?;
        let parts: Vec<&str> = path.parts().collect();
        for (at, part) in parts.iter().enumerate() {
            target.push(part);
            let is_folder = at + 1 < parts.len();
            match target.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    return Err(CliError::failed(format!(
                        "{} is a symbolic link; files of a program are not written through links",
                        target.display()
                    ))
                    .with_hint("choose an empty directory, or remove the link first"));
                }
                Err(_) if is_folder => fs_err::create_dir(&target).map_err(unwritable)?,
                _ => {}
            }
        }
        let mut file = fs_err::File::create_new(&target).map_err(|error| {
            let refused = unwritable(error);
            match target.exists() {
                true => refused.with_hint("choose an empty directory, or remove the file first"),
                false => refused,
            }
        })?;
        file.write_all(bytes).map_err(unwritable)?;
        done.written.push(target);
    }
    Ok(done)
}

#[cfg(test)]
#[path = "artifacts_tests.rs"]
mod tests;
