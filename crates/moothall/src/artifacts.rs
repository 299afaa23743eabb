//! Files on their way into a sandbox and out of it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use moothall_core::sandbox::{FileRef, GuestPath};
use moothall_core::text;
use serde::Serialize;

use crate::error::CliError;
use crate::terminal::{self, YELLOW};

/// The most bytes of one input.
const MAX_INPUT_BYTES: u64 = 16 << 20;

/// Reads the files that a program is given. Their names are their names in the sandbox.
pub(crate) fn read_inputs(paths: &[PathBuf]) -> Result<BTreeMap<GuestPath, Vec<u8>>, CliError> {
    let mut inputs = BTreeMap::new();
    for path in paths {
        let shown = path.display();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name: GuestPath = name.parse().map_err(|_| {
            CliError::usage(format!("the name of {shown} cannot be used in a sandbox"))
                .with_hint("give a file whose name is plain text")
        })?;
        let unreadable = || CliError::usage(format!("the input {shown} cannot be read"));
        let file = fs_err::File::open(path).map_err(|error| unreadable().with_source(error))?;
        let mut bytes = Vec::new();
        file.take(MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable().with_source(error))?;
        if bytes.len() as u64 > MAX_INPUT_BYTES {
            return Err(CliError::usage(format!(
                "the input {shown} is larger than {} MiB",
                MAX_INPUT_BYTES >> 20
            )));
        }
        if inputs.insert(name.clone(), bytes).is_some() {
            return Err(CliError::usage(format!("two inputs are called `{name}`"))
                .with_hint("rename one of them: they share one folder in the sandbox"));
        }
    }
    Ok(inputs)
}

/// The files by their content, as a request names them.
pub(crate) fn references(files: &BTreeMap<GuestPath, Vec<u8>>) -> BTreeMap<GuestPath, FileRef> {
    files.iter().map(|(path, bytes)| (path.clone(), FileRef::of(bytes))).collect()
}

/// The files of a program that were written, and those that were not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenFiles {
    pub(crate) written: Vec<PathBuf>,
    pub(crate) left_out: Vec<SkippedFile>,
}

/// A file that was not written because of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SkippedFile {
    pub(crate) path: GuestPath,
    pub(crate) reason: &'static str,
}

impl WrittenFiles {
    pub(crate) fn extend(&mut self, more: Self) {
        self.written.extend(more.written);
        self.left_out.extend(more.left_out);
    }

    /// Names every file that was not written on standard error.
    pub(crate) fn note_left_out(&self) {
        for SkippedFile { path, reason } in &self.left_out {
            let path: String = path.as_str().escape_debug().collect();
            terminal::note(&format!("{YELLOW}not written: `{path}`: {reason}{YELLOW:#}\n"));
        }
    }
}

/// Why a file of a program is not written: tools act upon hidden files (`.git`, `.env`), take a
/// leading `-` for an option, and a reader does not see what is invisible.
fn refused_name(path: &GuestPath) -> Option<&'static str> {
    let any = |is_odd: fn(&str) -> bool| path.parts().any(is_odd);
    if any(|part| part.starts_with('.')) {
        Some("hidden files are not written")
    } else if any(|part| part.starts_with('-')) {
        Some("a name that begins with `-` looks like an option")
    } else if any(|part| part.chars().any(text::is_unseen)) {
        Some("its name has invisible characters")
    } else {
        None
    }
}

/// Writes what a program left behind below a folder. Names were chosen by the program: they cannot
/// leave the folder, a link that stands in the way is not followed, and nothing that exists is
/// replaced. Files with odd names are left out, and all others are written.
pub(crate) fn write(
    folder: &Path,
    files: &BTreeMap<GuestPath, Vec<u8>>,
) -> Result<WrittenFiles, CliError> {
    let unwritable = |error: std::io::Error| {
        CliError::failed("a file of the program cannot be written").with_source(error)
    };
    let mut done = WrittenFiles::default();
    for (path, bytes) in files {
        if let Some(reason) = refused_name(path) {
            done.left_out.push(SkippedFile { path: path.clone(), reason });
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
                        "{} is a link, and files of a program are not written through links",
                        target.display()
                    )));
                }
                Err(_) if is_folder => fs_err::create_dir(&target).map_err(unwritable)?,
                _ => {}
            }
        }
        let mut file = fs_err::File::create_new(&target).map_err(|error| {
            let refused = unwritable(error);
            match target.exists() {
                true => refused.with_hint("choose an empty folder, or remove the file first"),
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
