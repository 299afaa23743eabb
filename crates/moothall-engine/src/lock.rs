//! File locks for driving a run and for calling a provider. The kernel releases them when the
//! holder dies.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use moothall_core::{RunId, Sha256Hex};
use rustix::fs::{FlockOperation, flock};

use crate::error::EngineError;

/// The exclusive right to drive one run. Released on drop or when the process dies.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock, or returns [`EngineError::Busy`] if another process holds it.
    pub fn take(folder: &Path, run_id: &RunId) -> Result<Self, EngineError> {
        match lock(folder, run_id.as_str()).map_err(EngineError::Lock)? {
            Some(file) => Ok(Self { _file: file }),
            None => Err(EngineError::Busy(run_id.clone())),
        }
    }

    /// Whether a process is driving the run.
    pub fn is_held(folder: &Path, run_id: &RunId) -> bool {
        let Ok(file) = fs_err::File::open(lock_path(folder, run_id.as_str())) else { return false };
        // A shared lock: two processes that look at the same time must not take each other for
        // drivers.
        let look = flock(file.file(), FlockOperation::NonBlockingLockShared);
        matches!(look, Err(rustix::io::Errno::WOULDBLOCK))
    }
}

/// One slot of a model limiter that all processes on this machine share. Released on drop or when
/// the process dies.
#[derive(Debug)]
pub struct SlotLock {
    _file: File,
}

impl SlotLock {
    /// Takes one of `width` slots; `None` if all are taken.
    pub fn take(folder: &Path, lane: &str, width: u32) -> Result<Option<Self>, EngineError> {
        // The name may not be a valid file name, so use its hash.
        let lane = Sha256Hex::of(lane.as_bytes());
        for slot in 1..=width {
            let file = lock(folder, &format!("{lane}-{slot}")).map_err(EngineError::Lock)?;
            if let Some(file) = file {
                return Ok(Some(Self { _file: file }));
            }
        }
        Ok(None)
    }
}

fn lock_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.lock"))
}

/// Locks the file with this name; `None` if another process holds it.
fn lock(folder: &Path, name: &str) -> io::Result<Option<File>> {
    fs_err::create_dir_all(folder)?;
    // The file is never deleted: otherwise two processes could lock two files with the same name.
    let file = fs_err::File::create(lock_path(folder, name))?.into_parts().0;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
