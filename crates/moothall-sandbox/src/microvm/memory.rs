//! Anonymous memory files for a virtual machine: guest RAM, kernel and state.
//!
//! They disappear with the last process that has them open. Once sealed they cannot be changed, not
//! even by a compromised QEMU, so all clones can share one template. (QEMU 7.2 opens its memory for
//! writing even when it only copies, so file permissions cannot protect a template.)

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{MemfdFlags, SealFlags, SeekFrom, fcntl_add_seals, memfd_create, seek, sendfile};
use rustix::io::Errno;

/// Creates a zero-filled memory file of the given size.
pub(crate) fn blank(name: &str, bytes: u64) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // `NOEXEC_SEAL` exists since Linux 6.3.
    let file = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags)?,
        other => other?,
    };
    rustix::fs::ftruncate(&file, bytes)?;
    Ok(file)
}

/// Creates a sealed memory file with the concatenated pieces.
pub(crate) fn sealed(name: &str, pieces: &[&[u8]]) -> io::Result<OwnedFd> {
    let mut file = File::from(blank(name, 0)?);
    for piece in pieces {
        file.write_all(piece)?;
    }
    let file = OwnedFd::from(file);
    seal(&file)?;
    Ok(file)
}

/// Makes the file immutable. Fails while it is mapped for writing.
pub(crate) fn seal(file: &OwnedFd) -> io::Result<()> {
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    Ok(fcntl_add_seals(file, all)?)
}

/// Opens the same file again for reading, with its own position.
pub(crate) fn reopened(file: &OwnedFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(fs_err::File::open(path)?.into_parts().0.into())
}

/// Copies a sparse file and keeps its holes. Both files have `bytes` bytes afterwards.
pub(crate) fn copy_with_holes(from: impl AsFd, to: impl AsFd, bytes: u64) -> io::Result<()> {
    rustix::fs::ftruncate(&to, bytes)?;
    let mut at = 0;
    while at < bytes {
        let start = match seek(&from, SeekFrom::Data(at)) {
            // Only holes remain.
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

/// Reads a file of at most `most` bytes.
pub(crate) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
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
