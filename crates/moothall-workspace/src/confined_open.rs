//! Opens what is below a folder that is held open, and never through a link.
//!
//! Linux resolves the whole name at once and is told what to refuse (`openat2`). Other systems are
//! led one name at a time, each opened in the folder that was opened before it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Whether another file system may lie on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounts {
    Crossed,
    Refused,
}

/// Opens a name below `root`; `.` is the folder itself. A link anywhere is `LOOP`, and whatever
/// leads out of the folder `XDEV`.
#[cfg(target_os = "linux")]
pub fn open(root: impl AsFd, path: &str, flags: OFlags, mounts: Mounts) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let mut refuse =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if mounts == Mounts::Refused {
        refuse |= ResolveFlags::NO_XDEV;
    }
    rustix::fs::openat2(root, path, flags, Mode::empty(), refuse)
}

/// Opens a name below `root`; `.` is the folder itself.
#[cfg(not(target_os = "linux"))]
pub fn open(root: impl AsFd, path: &str, flags: OFlags, mounts: Mounts) -> Result<OwnedFd, Errno> {
    walk::open(root, path, flags, mounts)
}

/// The way without `openat2`. Linux has it only to be compared with the kernel's.
#[cfg(any(test, not(target_os = "linux")))]
mod walk {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
    use rustix::io::Errno;

    use super::Mounts;

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    /// As the kernel's way. No name is followed: a folder that somebody swaps for a link meanwhile
    /// is refused, and one that was opened stays what it was.
    pub(super) fn open(
        root: impl AsFd,
        path: &str,
        flags: OFlags,
        mounts: Mounts,
    ) -> Result<OwnedFd, Errno> {
        if path == "." {
            return openat(&root, ".", flags, Mode::empty());
        }
        let device = fstat(&root)?.st_dev;
        let mut opened = openat(&root, ".", FOLDER, Mode::empty())?;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            opened = step(&opened, name, if names.peek().is_some() { FOLDER } else { flags })?;
            if mounts == Mounts::Refused && fstat(&opened)?.st_dev != device {
                return Err(Errno::XDEV);
            }
        }
        Ok(opened)
    }

    fn step(folder: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        if matches!(name, "" | "." | "..") {
            return Err(Errno::XDEV);
        }
        openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| {
            // What a link is called differs between systems and flags.
            let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            let kind = found.map(|found| FileType::from_raw_mode(found.st_mode));
            if kind == Ok(FileType::Symlink) { Errno::LOOP } else { error }
        })
    }
}

#[cfg(test)]
#[path = "confined_open_tests.rs"]
mod tests;
