//! The initramfs, in two parts that the kernel unpacks in order: the image's modules and the agent.
//! Because the agent is separate, an image does not change when the agent does.

use std::io::Write as _;

use cpio::NewcBuilder;
use cpio::newc::{ModeFileType, trailer};

use crate::{GuestBinary, SandboxError};

/// One archive entry. Owners, times and inode numbers are fixed so that archives are reproducible.
#[derive(Debug)]
pub(crate) enum ArchiveEntry<'a> {
    Folder(&'a str),
    File { path: &'a str, mode: u32, bytes: &'a [u8] },
}

/// The second part of the initramfs, with the agent as `/init`. Append it to the bytes of
/// [`SandboxImage::modules`](super::SandboxImage::modules).
pub fn init_archive(guest: &GuestBinary) -> Result<Vec<u8>, SandboxError> {
    archive(&[ArchiveEntry::File { path: "init", mode: 0o755, bytes: &guest.bytes }])
}

/// Writes a cpio archive. Its length is a multiple of four, which the kernel requires of every part
/// but the last.
pub(crate) fn archive(entries: &[ArchiveEntry<'_>]) -> Result<Vec<u8>, SandboxError> {
    let mut out = Vec::new();
    for (inode, entry) in (1..).zip(entries) {
        let (path, file_type, mode, bytes) = match *entry {
            ArchiveEntry::Folder(path) => (path, ModeFileType::Directory, 0o755, &[][..]),
            ArchiveEntry::File { path, mode, bytes } => (path, ModeFileType::Regular, mode, bytes),
        };
        let too_large = || SandboxError::Request(format!("`{path}` is too large for an initramfs"));
        let size = u32::try_from(bytes.len()).map_err(|_| too_large())?;
        let header = NewcBuilder::new(path).ino(inode).mode(mode).set_mode_file_type(file_type);
        let mut writer = header.write(&mut out, size);
        writer.write_all(bytes).map_err(SandboxError::host("cannot write the initramfs"))?;
        writer.finish().map_err(SandboxError::host("cannot write the initramfs"))?;
    }
    trailer(&mut out).map_err(SandboxError::host("cannot write the initramfs"))?;
    out.resize(out.len().next_multiple_of(4), 0);
    Ok(out)
}

#[cfg(test)]
#[path = "initramfs_tests.rs"]
mod tests;
