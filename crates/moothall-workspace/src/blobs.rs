//! Contents of drafts by their hash, outside of the workspace, never changed once written.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use moothall_core::Sha256Hex;

use super::error::DraftError;
use super::{Point, Reached};

#[derive(Debug)]
pub(super) struct Blobs {
    folder: PathBuf,
    /// The most bytes that may be stored.
    most: u64,
    /// Bytes that the last look at all of them left.
    left: AtomicU64,
    /// Bytes that were stored since.
    unswept: AtomicU64,
}

impl Blobs {
    pub(super) fn open(state: &Path, most: u64) -> Result<Self, DraftError> {
        let folder = state.join("blobs");
        fs_err::create_dir_all(&folder).map_err(DraftError::io("the store cannot be made"))?;
        // What other processes left is not known yet.
        Ok(Self { folder, most, left: AtomicU64::new(most), unswept: AtomicU64::new(0) })
    }

    /// Whether all of them must be looked at before so much more is stored: for want of room, or
    /// because other processes store as well and so much was not looked at for long.
    pub(super) fn wants_sweep(&self, more: u64) -> bool {
        let unswept = self.unswept.load(Ordering::Relaxed).saturating_add(more);
        unswept > self.most / 16
            || self.left.load(Ordering::Relaxed).saturating_add(unswept) > self.most
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
            let mut staged = tempfile::Builder::new()
                .permissions(Permissions::from_mode(0o400))
                .tempfile_in(parent)?;
            reached(Point::Blob)?;
            staged.write_all(bytes)?;
            staged.as_file().sync_all()?;
            staged.persist(&path)?;
            fs_err::File::open(parent)?.sync_all()
        };
        write().map_err(DraftError::io("the content cannot be stored"))?;
        self.unswept.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(sha)
    }

    /// The bytes, if they are kept and still what they were.
    pub(super) fn get(&self, sha: Sha256Hex) -> Result<Vec<u8>, DraftError> {
        let bytes = fs_err::read(self.path(sha)).map_err(|_| DraftError::ContentGone(sha))?;
        if Sha256Hex::of(&bytes) == sha { Ok(bytes) } else { Err(DraftError::ContentGone(sha)) }
    }

    /// Removes everything that is not among `kept`: how many went, and the bytes that are left.
    pub(super) fn sweep(&self, kept: &BTreeSet<Sha256Hex>) -> Result<(u64, u64), DraftError> {
        let sweep = || -> io::Result<(u64, u64)> {
            let (mut removed, mut left) = (0, 0);
            for folder in fs_err::read_dir(&self.folder)? {
                let folder = folder?.path();
                for file in fs_err::read_dir(&folder)? {
                    let file = file?;
                    let name = file.file_name();
                    let sha = name.to_str().and_then(Sha256Hex::parse);
                    if !sha.is_some_and(|sha| kept.contains(&sha)) {
                        fs_err::remove_file(file.path())?;
                        removed += 1;
                    } else {
                        left += file.metadata()?.len();
                    }
                }
            }
            Ok((removed, left))
        };
        let (removed, left) =
            sweep().map_err(DraftError::io("stored contents cannot be removed"))?;
        self.left.store(left, Ordering::Relaxed);
        self.unswept.store(0, Ordering::Relaxed);
        Ok((removed, left))
    }

    fn path(&self, sha: Sha256Hex) -> PathBuf {
        let digits = sha.to_string();
        self.folder.join(&digits[..2]).join(digits)
    }
}
