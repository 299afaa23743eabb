//! Who drives a run: a lock on a file, which the kernel frees when its holder dies.

use std::fs::File;
use std::path::Path;

use moothall_core::RunId;
use rustix::fs::{FlockOperation, flock};

use crate::error::EngineError;

/// The right to drive one run. Dropping it, or dying, gives it up.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock, or says that somebody else has it.
    pub fn take(folder: &Path, run_id: &RunId) -> Result<Self, EngineError> {
        fs_err::create_dir_all(folder).map_err(EngineError::Lock)?;
        // The file stays: deleting it would let two processes lock two files of one name.
        let path = folder.join(format!("{run_id}.lock"));
        let file = fs_err::File::create(path).map_err(EngineError::Lock)?.into_parts().0;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(EngineError::Busy(run_id.clone())),
            Err(error) => Err(EngineError::Lock(error.into())),
        }
    }

    /// Whether somebody drives the run at the moment.
    pub fn is_held(folder: &Path, run_id: &RunId) -> bool {
        matches!(Self::take(folder, run_id), Err(EngineError::Busy(_)))
    }
}
