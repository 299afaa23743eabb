//! Contents of drafts by their hash, outside of the workspace, never changed once written.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;

use super::error::DraftError;
use super::{Point, Reached};

#[derive(Debug)]
pub(super) struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    pub(super) fn open(state: &Path) -> Result<Self, DraftError> {
        let folder = state.join("blobs");
        fs_err::create_dir_all(&folder).map_err(DraftError::io("the store cannot be made"))?;
        Ok(Self { folder })
    }

    /// Stores bytes durably before their hash is written anywhere.
    pub(super) fn put(&self, bytes: &[u8], reached: &Reached) -> Result<Sha256Hex, DraftError> {
        let sha = Sha256Hex::of(bytes);
        let path = self.path(sha);
        if self.get(sha).is_ok() {
            return Ok(sha);
        }
        let write = || -> io::Result<()> {
            let parent = path.parent().unwrap_or(&self.folder);
            fs_err::create_dir_all(parent)?;
            let staged = parent.join(format!(".{}-{}", sha, std::process::id()));
            let _ = fs_err::remove_file(&staged);
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o400).open(&staged)?;
            let written = reached(Point::Blob)
                .and_then(|()| file.write_all(bytes))
                .and_then(|()| file.sync_all())
                .and_then(|()| fs_err::rename(&staged, &path));
            if written.is_err() {
                let _ = fs_err::remove_file(&staged);
            }
            written?;
            fs_err::File::open(parent)?.sync_all()
        };
        write().map_err(DraftError::io("the content cannot be stored"))?;
        Ok(sha)
    }

    /// The bytes, if they are kept and still what they were.
    pub(super) fn get(&self, sha: Sha256Hex) -> Result<Vec<u8>, DraftError> {
        let bytes = fs_err::read(self.path(sha)).map_err(|_| DraftError::ContentGone(sha))?;
        if Sha256Hex::of(&bytes) == sha { Ok(bytes) } else { Err(DraftError::ContentGone(sha)) }
    }

    /// Removes everything that is not among `kept`.
    pub(super) fn sweep(&self, kept: &BTreeSet<Sha256Hex>) -> Result<u64, DraftError> {
        let sweep = || -> io::Result<u64> {
            let mut removed = 0;
            for folder in fs_err::read_dir(&self.folder)? {
                let folder = folder?.path();
                for file in fs_err::read_dir(&folder)? {
                    let file = file?;
                    let name = file.file_name();
                    let sha = name.to_str().and_then(Sha256Hex::parse);
                    if !sha.is_some_and(|sha| kept.contains(&sha)) {
                        fs_err::remove_file(file.path())?;
                        removed += 1;
                    }
                }
            }
            Ok(removed)
        };
        sweep().map_err(DraftError::io("stored contents cannot be removed"))
    }

    fn path(&self, sha: Sha256Hex) -> PathBuf {
        let digits = sha.to_string();
        self.folder.join(&digits[..2]).join(digits)
    }
}
