//! Recorded SEC responses, read from a directory or from the program itself, so that tests and the
//! demo need no network.

pub(crate) mod benchmark;
mod bundled;
mod layout;

use std::path::{Path, PathBuf};

use moothall_core::text::sanitize_line;
use moothall_sources::edgar::RecordedResponses;

pub(crate) use self::bundled::TICKER as BUNDLED_TICKER;
use crate::error::CliError;

const MAX_FILE_BYTES: u64 = 64 << 20;

/// The location of recorded responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FilingRecording {
    /// A canonical directory.
    Folder(PathBuf),
    /// Built into the program.
    Bundled,
    /// The companies of the benchmark, made by the program.
    Benchmark,
}

impl FilingRecording {
    /// A recording in the user's directory.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, CliError> {
        let canonical = folder.canonicalize().map_err(|error| {
            let message = format!("cannot read the recording `{}`", folder.display());
            CliError::usage(message).with_source(error)
        })?;
        if !canonical.join("companyfacts").is_dir() {
            let shown = folder.display();
            return Err(CliError::usage(format!("{shown} is not a recording of filings")).with_hint(
                "expected companyfacts/ and submissions/ with files such as CIK0000320193.json, and reference/company_tickers.json",
            ));
        }
        Ok(Self::Folder(canonical))
    }

    /// The name shown in reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Folder(folder) => folder
                .file_name()
                .map_or_else(|| "/".to_owned(), |name| sanitize_line(&name.to_string_lossy())),
            Self::Bundled => BUNDLED_TICKER.to_owned(),
            Self::Benchmark => benchmark::set().name.to_owned(),
        }
    }
}

impl RecordedResponses for FilingRecording {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let file = layout::recording_path(path)?;
        match self {
            Self::Folder(root) => read_inside(root, &file),
            Self::Bundled => bundled::read(&file).map(<[u8]>::to_vec),
            Self::Benchmark => benchmark::read(&file),
        }
    }
}

/// Reads a file inside `root`; symbolic links that lead outside are treated as missing.
fn read_inside(root: &Path, file: &str) -> Option<Vec<u8>> {
    let path = fs_err::canonicalize(root.join(file)).ok()?;
    let known = fs_err::metadata(&path).ok()?;
    let fits = path.starts_with(root) && known.is_file() && known.len() <= MAX_FILE_BYTES;
    fits.then(|| fs_err::read(path).ok()).flatten()
}

#[cfg(test)]
#[path = "filing_recording_tests.rs"]
mod tests;
