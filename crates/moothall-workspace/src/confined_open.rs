//! Opens paths below an open directory without following links.
//!
//! On Linux the kernel resolves the whole path with restrictions (`openat2`). Other systems open
//! one component at a time, relative to the directory opened before.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Whether a path may cross into another file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountPolicy {
    Crossed,
    Refused,
}

/// Opens a path below `root`; `.` is `root` itself. A link anywhere returns `LOOP`, and a path that
/// leaves `root` returns `XDEV`.
#[cfg(target_os = "linux")]
pub fn open(
    root: impl AsFd,
    path: &str,
    flags: OFlags,
    mounts: MountPolicy,
) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let mut refuse =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if mounts == MountPolicy::Refused {
        refuse |= ResolveFlags::NO_XDEV;
    }
    rustix::fs::openat2(root, path, flags, Mode::empty(), refuse)
}

/// Opens a path below `root`; `.` is `root` itself.
#[cfg(not(target_os = "linux"))]
pub fn open(
    root: impl AsFd,
    path: &str,
    flags: OFlags,
    mounts: MountPolicy,
) -> Result<OwnedFd, Errno> {
    walk::open(root, path, flags, mounts)
}

/// The implementation without `openat2`. On Linux it only exists for comparison tests.
#[cfg(any(test, not(target_os = "linux")))]
mod walk {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
    use rustix::io::Errno;

    use super::MountPolicy;

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    /// Behaves like `openat2`. No component is followed: a directory replaced by a link in the meantime
    /// is refused, and an open directory cannot be replaced.
    pub(crate) fn open(
        root: impl AsFd,
        path: &str,
        flags: OFlags,
        mounts: MountPolicy,
    ) -> Result<OwnedFd, Errno> {
        if path == "." {
            return openat(&root, ".", flags, Mode::empty());
        }
        let device = fstat(&root)?.st_dev;
        let mut opened = openat(&root, ".", FOLDER, Mode::empty())?;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            opened = step(&opened, name, if names.peek().is_some() { FOLDER } else { flags })?;
            if mounts == MountPolicy::Refused && fstat(&opened)?.st_dev != device {
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
            // The error for a link differs between systems and flags.
            let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            let kind = found.map(|found| FileType::from_raw_mode(found.st_mode));
            if kind == Ok(FileType::Symlink) { Errno::LOOP } else { error }
        })
    }
}

#[cfg(test)]
#[path = "confined_open_tests.rs"]
mod tests;
