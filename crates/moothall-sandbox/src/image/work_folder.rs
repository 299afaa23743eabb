//! Temporary work folders. A folder is removed on drop; folders of killed processes are removed
//! when the next one is created.

use std::path::{Path, PathBuf};

use crate::SandboxError;

const LOCK: &str = "lock";

/// The work folder of one builder. A lock on a file in it marks it as in use; the kernel releases
/// the lock when the process dies.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
    _lock: fs_err::File,
}

impl WorkFolder {
    /// Creates a work folder in `parent` after removing abandoned ones.
    pub(crate) fn new(parent: &Path) -> Result<Self, SandboxError> {
        Self::try_new(parent).map_err(SandboxError::host("cannot create a work folder for images"))
    }

    fn try_new(parent: &Path) -> std::io::Result<Self> {
        fs_err::create_dir_all(parent)?;
        // Held until the new folder has its own lock, so that another process does not consider it
        // abandoned.
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

    pub(crate) fn path(&self) -> &Path {
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

/// Retries, because a killed program may still write for a moment. The next builder removes what is
/// left.
fn remove(folder: &Path) {
    for _ in 0..8 {
        match fs_err::remove_dir_all(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(25)),
        }
    }
    tracing::warn!(folder = %folder.display(), "cannot remove a work folder");
}

#[cfg(test)]
#[path = "work_folder_tests.rs"]
mod tests;
