//! Content-addressed store for draft contents, outside of the workspace. Contents are immutable.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use moothall_core::Sha256Hex;

use super::error::DraftError;
use super::{FailPoint, Reached};

#[derive(Debug)]
pub(crate) struct BlobStore {
    folder: PathBuf,
    /// Storage limit in bytes.
    max_bytes: u64,
    /// Bytes in use after the last sweep.
    left: AtomicU64,
    /// Bytes stored since the last sweep.
    bytes_since_sweep: AtomicU64,
}

impl BlobStore {
    pub(crate) fn open(state: &Path, max_bytes: u64) -> Result<Self, DraftError> {
        let folder = state.join("blobs");
        fs_err::create_dir_all(&folder).map_err(DraftError::io("cannot create the store"))?;
        // Usage by other processes is unknown until the first sweep.
        Ok(Self {
            folder,
            max_bytes,
            left: AtomicU64::new(max_bytes),
            bytes_since_sweep: AtomicU64::new(0),
        })
    }

    /// Whether a sweep is due before `more` bytes are stored: because the limit would be exceeded,
    /// or because much was stored since the last sweep and other processes may have stored contents
    /// too.
    pub(crate) fn wants_sweep(&self, more: u64) -> bool {
        let bytes_since_sweep = self.bytes_since_sweep.load(Ordering::Relaxed).saturating_add(more);
        bytes_since_sweep > self.max_bytes / 16
            || self.left.load(Ordering::Relaxed).saturating_add(bytes_since_sweep) > self.max_bytes
    }

    /// Stores bytes durably, before their hash is written anywhere.
    pub(crate) fn put(&self, bytes: &[u8], reached: &Reached) -> Result<Sha256Hex, DraftError> {
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
            reached(FailPoint::Blob)?;
            staged.write_all(bytes)?;
            staged.as_file().sync_all()?;
            staged.persist(&path)?;
            fs_err::File::open(parent)?.sync_all()
        };
        write().map_err(DraftError::io("cannot store the content"))?;
        self.bytes_since_sweep.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(sha)
    }

    /// Returns the bytes if they are stored and intact.
    pub(crate) fn get(&self, sha: Sha256Hex) -> Result<Vec<u8>, DraftError> {
        let bytes = fs_err::read(self.path(sha)).map_err(|_| DraftError::ContentGone(sha))?;
        if Sha256Hex::of(&bytes) == sha { Ok(bytes) } else { Err(DraftError::ContentGone(sha)) }
    }

    /// Removes every content not in `kept`. Returns the number removed and the bytes left.
    pub(crate) fn sweep(&self, kept: &BTreeSet<Sha256Hex>) -> Result<(u64, u64), DraftError> {
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
        let (removed, left) = sweep().map_err(DraftError::io("cannot remove stored contents"))?;
        self.left.store(left, Ordering::Relaxed);
        self.bytes_since_sweep.store(0, Ordering::Relaxed);
        Ok((removed, left))
    }

    fn path(&self, sha: Sha256Hex) -> PathBuf {
        let digits = sha.to_string();
        self.folder.join(&digits[..2]).join(digits)
    }
}
