//! Who drives a run, and who may ask a provider: locks on files, which the kernel frees when their
//! holder dies.

use std::fs::File;
use std::io;
use std::path::Path;

use moothall_core::{RunId, Sha256Hex};
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
        match lock(folder, run_id.as_str()).map_err(EngineError::Lock)? {
            Some(file) => Ok(Self { _file: file }),
            None => Err(EngineError::Busy(run_id.clone())),
        }
    }

    /// Whether somebody drives the run at the moment.
    pub fn is_held(folder: &Path, run_id: &RunId) -> bool {
        matches!(Self::take(folder, run_id), Err(EngineError::Busy(_)))
    }
}

/// One of the slots of a lane that the processes of one machine share. Dropping it, or dying, gives
/// it up.
#[derive(Debug)]
pub struct SlotLock {
    _file: File,
}

impl SlotLock {
    /// Takes one of so many slots; nothing where all are taken.
    pub fn take(folder: &Path, lane: &str, width: u32) -> Result<Option<Self>, EngineError> {
        // What a lane is called may be no name of a file.
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

/// Locks a file of this name; nothing where somebody else has it.
fn lock(folder: &Path, name: &str) -> io::Result<Option<File>> {
    fs_err::create_dir_all(folder)?;
    // The file stays: deleting it would let two processes lock two files of one name.
    let file = fs_err::File::create(folder.join(format!("{name}.lock")))?.into_parts().0;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
