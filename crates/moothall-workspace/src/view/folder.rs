//! The files of the view, reached as those of the workspace are: below the folder that is held, and
//! through no link.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use moothall_core::drafts::VIEW;
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::shown;
use crate::error::{DraftError, FileFault};
use crate::workspace::{Workspace, fault};

const DRAFTS: &str = "_handoff/drafts";
const LOG: &str = "transition.ndjson";
/// Nobody reads it; one process at a time writes it.
const STAGED: &str = ".moothall-view";
/// The line that keeps the view out of commits.
const IGNORED: &str = "/_handoff/";
/// The longest list of ignored files that is looked through.
const MAX_IGNORED_BYTES: u64 = 1 << 20;

/// A file of the view.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'a> {
    /// Among the drafts.
    Draft(&'a str),
    /// The log of transitions.
    Log,
}

impl Name<'_> {
    fn shown(self) -> String {
        match self {
            Self::Draft(name) => shown(&format!("drafts/{name}")),
            Self::Log => shown(LOG),
        }
    }
}

/// Both folders of the view, held open.
#[derive(Debug)]
pub(super) struct ViewFolder<'a> {
    workspace: &'a Workspace,
    top: OwnedFd,
    drafts: OwnedFd,
    /// Nothing that we wrote before is there.
    pub(super) is_new: bool,
}

impl<'a> ViewFolder<'a> {
    /// Opens the folders, and makes what is missing.
    pub(super) fn open(workspace: &'a Workspace) -> Result<Self, DraftError> {
        let there = |folder: &str| workspace.folder_at(folder).map_err(|error| odd(folder, error));
        let mut is_new = false;
        let mut made = |above: Option<&OwnedFd>, folder: &str| {
            if let Some(opened) = there(folder)? {
                return Ok(opened);
            }
            is_new = true;
            let name = folder.rsplit('/').next().unwrap_or(folder);
            let root = workspace.folder_at("").map_err(|error| odd(folder, error))?;
            if let Some(above) = above.or(root.as_ref()) {
                match sys::mkdirat(above, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(odd(folder, error)),
                }
            }
            there(folder)?.ok_or_else(|| DraftError::file(folder, FileFault::Vanished))
        };
        let top = made(None, VIEW)?;
        let drafts = made(Some(&top), DRAFTS)?;
        Ok(Self { workspace, top, drafts, is_new })
    }

    /// Refuses a name that somebody else's file has.
    pub(super) fn claim(&self, name: Name<'_>) -> Result<(), DraftError> {
        let (folder, file) = self.place(name);
        match sys::statat(folder, file, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Ok(_) => Err(DraftError::file(name.shown(), FileFault::NotOurs)),
            Err(error) => Err(odd(&name.shown(), error)),
        }
    }

    /// Puts a file in its place, whole. A link that stands there is replaced, and not followed.
    pub(super) fn put(&self, name: Name<'_>, bytes: &[u8]) -> Result<(), DraftError> {
        let (folder, file) = self.place(name);
        // Others may read it, and nobody is invited to write it; the log is appended to by us.
        let mode = match name {
            Name::Draft(_) => 0o444,
            Name::Log => 0o644,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let write = || -> Result<(), Errno> {
            match sys::unlinkat(folder, STAGED, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            let staged = sys::openat(folder, STAGED, flags, Mode::from_raw_mode(mode))?;
            let mut staged = File::from(staged);
            staged.write_all(bytes).map_err(|error| errno(&error))?;
            sys::renameat_with(folder, STAGED, folder, file, RenameFlags::empty())
        };
        write().map_err(|error| {
            let _ = sys::unlinkat(folder, STAGED, AtFlags::empty());
            odd(&name.shown(), error)
        })
    }

    /// Appends to the log if it is as long as we left it; says how long it is then.
    pub(super) fn append(&self, before: u64, bytes: &[u8]) -> Result<Option<u64>, DraftError> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = sys::openat(&self.top, LOG, flags | OFlags::CLOEXEC, Mode::empty());
        // Whatever stands there instead gives way to one that is made anew.
        let Ok(opened) = opened else { return Ok(None) };
        let stat = sys::fstat(&opened).map_err(|error| odd(LOG, error))?;
        let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !plain || stat.st_nlink != 1 || stat.st_size as u64 != before {
            return Ok(None);
        }
        let written = File::from(opened).write_all(bytes);
        written.map_err(|error| odd(&shown(LOG), errno(&error)))?;
        Ok(Some(before + bytes.len() as u64))
    }

    pub(super) fn remove(&self, name: Name<'_>) -> Result<(), DraftError> {
        let (folder, file) = self.place(name);
        match sys::unlinkat(folder, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(odd(&name.shown(), error)),
        }
    }

    /// Lets the folders go, unless somebody keeps something there.
    pub(super) fn remove_if_empty(&self) {
        let _ = sys::unlinkat(&self.top, "drafts", AtFlags::REMOVEDIR);
        if let Ok(Some(root)) = self.workspace.folder_at("") {
            let _ = sys::unlinkat(&root, VIEW, AtFlags::REMOVEDIR);
        }
    }

    /// Adds the view to what git leaves out of commits, where the workspace is the root of a
    /// repository.
    pub(super) fn hide_from_git(&self) -> Result<(), DraftError> {
        let file = ".git/info/exclude";
        let folder = match self.workspace.folder_at(".git/info") {
            Ok(Some(folder)) => folder,
            // No repository, one whose root is further up, or a second working tree of one.
            Ok(None) | Err(Errno::NOTDIR) => return Ok(()),
            Err(error) => return Err(odd(file, error)),
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let safely = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = sys::openat(&folder, "exclude", flags | safely, Mode::from_raw_mode(0o644));
        let opened = opened.map_err(|error| odd(file, error))?;
        let stat = sys::fstat(&opened).map_err(|error| odd(file, error))?;
        let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !plain || stat.st_nlink != 1 {
            return Err(DraftError::file(file, FileFault::NotPlain("it is no plain file")));
        }
        let mut opened = File::from(opened);
        let mut text = Vec::new();
        let cannot = |error: std::io::Error| odd(file, errno(&error));
        (&opened).take(MAX_IGNORED_BYTES).read_to_end(&mut text).map_err(cannot)?;
        if text.split(|byte| *byte == b'\n').any(|line| line == IGNORED.as_bytes()) {
            return Ok(());
        }
        let end = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" };
        opened.write_all(format!("{end}{IGNORED}\n").as_bytes()).map_err(cannot)
    }

    fn place<'b>(&'b self, name: Name<'b>) -> (&'b OwnedFd, &'b str) {
        match name {
            Name::Draft(name) => (&self.drafts, name),
            Name::Log => (&self.top, LOG),
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn odd(path: &str, error: Errno) -> DraftError {
    match fault(error) {
        Some(fault) => DraftError::file(path, fault),
        None => DraftError::io("the view of drafts cannot be written")(error.into()),
    }
}
