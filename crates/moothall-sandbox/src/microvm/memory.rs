//! Memory that is handed to a virtual machine as a file: a guest's RAM, its kernel, its state.
//!
//! It lives in files without a name, which vanish with the last process that has them open. Once
//! sealed, nobody can change them any more, not even a QEMU that was taken over: that is what lets
//! all clones share one template. (QEMU 7.2 opens its memory for writing even where it only copies,
//! so a template cannot be a file that is read-only by its mode.)

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{MemfdFlags, SealFlags, SeekFrom, fcntl_add_seals, memfd_create, seek, sendfile};
use rustix::io::Errno;

/// A file without a name, of that length, all zeros.
pub(super) fn blank(name: &str, bytes: u64) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know that a file of memory need not be executable.
    let file = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags)?,
        other => other?,
    };
    rustix::fs::ftruncate(&file, bytes)?;
    Ok(file)
}

/// A sealed file without a name that holds these pieces, one after the other.
pub(super) fn sealed(name: &str, pieces: &[&[u8]]) -> io::Result<OwnedFd> {
    let mut file = File::from(blank(name, 0)?);
    for piece in pieces {
        file.write_all(piece)?;
    }
    let file = OwnedFd::from(file);
    seal(&file)?;
    Ok(file)
}

/// Nobody can change it from here on. Fails while someone has it mapped for writing.
pub(super) fn seal(file: &OwnedFd) -> io::Result<()> {
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    Ok(fcntl_add_seals(file, all)?)
}

/// The same file once more, with a position of its own, for reading.
pub(super) fn reopened(file: &OwnedFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(fs_err::File::open(path)?.into_parts().0.into())
}

/// Copies what is in a file and leaves holes where it has holes. Both have `bytes` afterwards.
pub(super) fn copy_with_holes(from: impl AsFd, to: impl AsFd, bytes: u64) -> io::Result<()> {
    rustix::fs::ftruncate(&to, bytes)?;
    let mut at = 0;
    while at < bytes {
        let start = match seek(&from, SeekFrom::Data(at)) {
            // Nothing but holes from here on.
            Err(Errno::NXIO) => break,
            other => other?.min(bytes),
        };
        let end = seek(&from, SeekFrom::Hole(start))?.min(bytes);
        seek(&to, SeekFrom::Start(start))?;
        let mut offset = start;
        while offset < end {
            let rest = usize::try_from(end - offset).unwrap_or(usize::MAX);
            if sendfile(&to, &from, Some(&mut offset), rest)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        at = end;
    }
    Ok(())
}

/// The bytes of a file that is expected to be no larger than this.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs_err::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("{} is too large", path.display())));
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
