//! The initramfs, in two parts that the kernel reads one after the other: the image's modules, and the
//! agent of this build of the program. So an image does not change when the agent does.

use std::io::Write as _;

use cpio::NewcBuilder;
use cpio::newc::{ModeFileType, trailer};

use crate::{GuestBinary, SandboxError};

/// One entry of an archive. Owner, times and inode numbers are the same everywhere.
#[derive(Debug)]
pub(super) enum Entry<'a> {
    Folder(&'a str),
    File { path: &'a str, mode: u32, bytes: &'a [u8] },
}

/// The second part of the initramfs: the agent as `/init`. Append it to the bytes of
/// [`Image::modules`](super::Image::modules).
pub fn init_archive(guest: &GuestBinary) -> Result<Vec<u8>, SandboxError> {
    archive(&[Entry::File { path: "init", mode: 0o755, bytes: &guest.bytes }])
}

/// An archive in the form that the kernel unpacks. Its length is a multiple of four, as the kernel
/// wants it of everything but the last part.
pub(super) fn archive(entries: &[Entry<'_>]) -> Result<Vec<u8>, SandboxError> {
    let mut out = Vec::new();
    for (inode, entry) in (1..).zip(entries) {
        let (path, file_type, mode, bytes) = match *entry {
            Entry::Folder(path) => (path, ModeFileType::Directory, 0o755, &[][..]),
            Entry::File { path, mode, bytes } => (path, ModeFileType::Regular, mode, bytes),
        };
        let too_large = || SandboxError::Request(format!("`{path}` is too large for an initramfs"));
        let size = u32::try_from(bytes.len()).map_err(|_| too_large())?;
        let header = NewcBuilder::new(path).ino(inode).mode(mode).set_mode_file_type(file_type);
        let mut writer = header.write(&mut out, size);
        writer.write_all(bytes).map_err(SandboxError::host("the initramfs cannot be written"))?;
        writer.finish().map_err(SandboxError::host("the initramfs cannot be written"))?;
    }
    trailer(&mut out).map_err(SandboxError::host("the initramfs cannot be written"))?;
    out.resize(out.len().next_multiple_of(4), 0);
    Ok(out)
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
