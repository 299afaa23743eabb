//! The directory of a tour: sample files, and the data of the commands that run in it.

use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;
use tempfile::TempDir;

use crate::error::CliError;

/// A program as a model could write it, which also tries what a sandbox must prevent.
pub(crate) const PROGRAM: &str = include_str!("primes.py");
/// A file that an agent edits, and two answers of the agent.
const WORKSPACE_FILE: &str = include_str!("app.py");
const BAD_ANSWER: &str = include_str!("answer-1.md");
const GOOD_ANSWER: &str = include_str!("answer-2.md");

/// Replaced in the bad answer by a text in the format of a credential, which must not be in a
/// repository.
const CREDENTIAL_MARK: &str = "CREDENTIAL";

/// The names of the files, as commands use them.
pub(crate) const MEMO: &str = "memo.md";
pub(crate) const MEMO_PAGE: &str = "memo.html";
pub(crate) const CHANGED_MEMO: &str = "memo-changed.md";
pub(crate) const RECEIPT: &str = "receipt.jsonl";
pub(crate) const CHANGED_RECEIPT: &str = "receipt-changed.jsonl";
pub(crate) const PROGRAM_FILE: &str = "primes.py";
pub(crate) const WORKSPACE: &str = "workspace";
pub(crate) const EDITED_FILE: &str = "workspace/app.py";
pub(crate) const ANSWERS: [&str; 2] = ["answer-1.md", "answer-2.md"];

#[derive(Debug)]
pub(crate) struct DemoFolder {
    path: PathBuf,
    cleanup: FolderCleanup,
}

/// What happens to the directory when the tour ends.
#[derive(Debug)]
enum FolderCleanup {
    Keep,
    /// Removed when dropped.
    Temporary(#[expect(dead_code, reason = "held for its destructor")] TempDir),
    /// The user's directory: its content is removed, and the directory if the tour created it.
    Named {
        created: bool,
    },
}

impl DemoFolder {
    /// Creates the directory with its sample files. A named directory must be new or empty, because
    /// its content is removed.
    pub(crate) fn create(named: Option<&Path>, keep: bool) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| {
            CliError::failed("cannot create the directory of the demo")
                .with_source(error)
                .with_hint("pass a directory that you may write to: `--dir DIR`")
        };
        let (path, cleanup) = match named {
            None => {
                let created = tempfile::Builder::new().prefix("moothall-demo-").tempdir();
                let folder = created.map_err(failed)?;
                let path = folder.path().to_owned();
                match keep {
                    true => (folder.keep(), FolderCleanup::Keep),
                    false => (path, FolderCleanup::Temporary(folder)),
                }
            }
            Some(named) => {
                let created = !named.exists();
                fs_err::create_dir_all(named).map_err(failed)?;
                if fs_err::read_dir(named).map_err(failed)?.next().is_some() {
                    return Err(CliError::usage(format!("{} is not empty", named.display()))
                        .with_hint("pass a new or empty directory with `--dir`"));
                }
                let cleanup = match keep {
                    true => FolderCleanup::Keep,
                    false => FolderCleanup::Named { created },
                };
                (std::path::absolute(named).map_err(failed)?, cleanup)
            }
        };
        let folder = Self { path, cleanup };
        folder.write_samples().map_err(failed)?;
        Ok(folder)
    }

    fn write_samples(&self) -> std::io::Result<()> {
        fs_err::create_dir_all(self.file(WORKSPACE))?;
        fs_err::create_dir_all(self.config())?;
        fs_err::write(self.file(PROGRAM_FILE), PROGRAM)?;
        fs_err::write(self.file(EDITED_FILE), WORKSPACE_FILE)?;
        let digits: String =
            Sha256Hex::of(b"not a credential").to_string().chars().take(36).collect();
        let bad = BAD_ANSWER.replace(CREDENTIAL_MARK, &format!("ghp_{digits}"));
        fs_err::write(self.file(ANSWERS[0]), bad)?;
        fs_err::write(self.file(ANSWERS[1]), GOOD_ANSWER)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Runs, drafts and caches of the commands.
    pub(crate) fn data(&self) -> PathBuf {
        self.file("data")
    }

    /// An empty configuration directory, so that the tour does not depend on the user's settings.
    pub(crate) fn config(&self) -> PathBuf {
        self.file("config")
    }

    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.cleanup, FolderCleanup::Keep)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name).is_file()
    }

    pub(crate) fn read(&self, name: &str) -> Result<String, CliError> {
        fs_err::read_to_string(self.file(name))
            .map_err(|error| CliError::failed("cannot read a file of the demo").with_source(error))
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), CliError> {
        fs_err::write(self.file(name), text)
            .map_err(|error| CliError::failed("cannot write a file of the demo").with_source(error))
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        let FolderCleanup::Named { created } = self.cleanup else { return };
        for entry in fs_err::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ =
                if is_folder { fs_err::remove_dir_all(path) } else { fs_err::remove_file(path) };
        }
        if created {
            let _ = fs_err::remove_dir(&self.path);
        }
    }
}
