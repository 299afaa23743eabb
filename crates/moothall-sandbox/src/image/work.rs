//! A folder for work in progress that nobody finds later: it goes when its owner does, and what a
//! killed owner left goes at the next start.

use std::path::{Path, PathBuf};

use crate::SandboxError;

const LOCK: &str = "lock";

/// A folder of one builder. A lock on a file in it says that its owner is alive; the kernel frees it.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    /// Held, not read.
    _lock: fs_err::File,
}

impl WorkFolder {
    /// Makes a new one below `parent`, after removing those that nobody owns any more.
    pub(super) fn new(parent: &Path) -> Result<Self, SandboxError> {
        Self::try_new(parent).map_err(SandboxError::host("there is no place to build images in"))
    }

    fn try_new(parent: &Path) -> std::io::Result<Self> {
        fs_err::create_dir_all(parent)?;
        // Held while a folder has no lock of its own yet, so that nobody takes it for abandoned.
        let everybody = lock_file(&parent.join(LOCK))?;
        everybody.file().lock()?;
        for entry in fs_err::read_dir(parent)? {
            let path = entry?.path();
            if path.is_dir() && is_abandoned(&path) {
                remove(&path);
            }
        }
        let path = parent.join(uuid::Uuid::now_v7().to_string());
        fs_err::create_dir(&path)?;
        let lock = lock_file(&path.join(LOCK))?;
        lock.file().lock()?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn lock_file(path: &Path) -> std::io::Result<fs_err::File> {
    fs_err::OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

fn is_abandoned(folder: &Path) -> bool {
    lock_file(&folder.join(LOCK)).is_ok_and(|lock| lock.file().try_lock().is_ok())
}

/// A program that was killed may write for a moment longer, so one try may not be enough. What stays
/// is removed by the next builder.
fn remove(folder: &Path) {
    for _ in 0..8 {
        match fs_err::remove_dir_all(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(25)),
        }
    }
    tracing::warn!(folder = %folder.display(), "a work folder cannot be removed");
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
