//! File access for the export, confined like that of the workspace: below an open directory and
//! without following links.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use moothall_core::drafts::VIEW;
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::shown;
use crate::error::{DraftError, FileFault};
use crate::workspace::{ConfinedWorkspace, fault};

const DRAFTS: &str = "_handoff/drafts";
const LOG: &str = "transition.ndjson";
/// Staging file. Only one process at a time writes it.
const STAGING_FILE: &str = ".moothall-view";
/// The line for git's exclude file.
const GITIGNORE_ENTRY: &str = "/_handoff/";
/// Only this much of the exclude file is read.
const MAX_IGNORED_BYTES: u64 = 1 << 20;

/// A file of the export.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HandoffEntry<'a> {
    /// In the directory `drafts`.
    Draft(&'a str),
    /// The transition log.
    Log,
}

impl HandoffEntry<'_> {
    fn shown(self) -> String {
        match self {
            Self::Draft(name) => shown(&format!("drafts/{name}")),
            Self::Log => shown(LOG),
        }
    }
}

/// The two directories of the export, held open.
#[derive(Debug)]
pub(crate) struct HandoffDirectory<'a> {
    workspace: &'a ConfinedWorkspace,
    top: OwnedFd,
    drafts: OwnedFd,
    /// Whether a directory was just created, so that nothing we wrote before exists.
    pub(crate) is_new: bool,
}

impl<'a> HandoffDirectory<'a> {
    /// Opens the directories and creates missing ones.
    pub(crate) fn open(workspace: &'a ConfinedWorkspace) -> Result<Self, DraftError> {
        let open_folder =
            |folder: &str| workspace.folder_at(folder).map_err(|error| file_error(folder, error));
        let mut is_new = false;
        let mut open_or_create = |above: Option<&OwnedFd>, folder: &str| {
            if let Some(opened) = open_folder(folder)? {
                return Ok(opened);
            }
            is_new = true;
            let name = folder.rsplit('/').next().unwrap_or(folder);
            let root = workspace.folder_at("").map_err(|error| file_error(folder, error))?;
            if let Some(above) = above.or(root.as_ref()) {
                match sys::mkdirat(above, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(file_error(folder, error)),
                }
            }
            open_folder(folder)?.ok_or_else(|| DraftError::file(folder, FileFault::Vanished))
        };
        let top = open_or_create(None, VIEW)?;
        let drafts = open_or_create(Some(&top), DRAFTS)?;
        Ok(Self { workspace, top, drafts, is_new })
    }

    /// Refuses a name that is already taken by a file we did not create.
    pub(crate) fn claim(&self, name: HandoffEntry<'_>) -> Result<(), DraftError> {
        let (folder, file) = self.locate(name);
        match sys::statat(folder, file, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Ok(_) => Err(DraftError::file(name.shown(), FileFault::NotOurs)),
            Err(error) => Err(file_error(&name.shown(), error)),
        }
    }

    /// Writes a file atomically. A link in its place is replaced, not followed.
    pub(crate) fn put(&self, name: HandoffEntry<'_>, bytes: &[u8]) -> Result<(), DraftError> {
        let (folder, file) = self.locate(name);
        // Exported drafts are read-only; we append to the log.
        let mode = match name {
            HandoffEntry::Draft(_) => 0o444,
            HandoffEntry::Log => 0o644,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let write = || -> Result<(), Errno> {
            match sys::unlinkat(folder, STAGING_FILE, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            let staged = sys::openat(folder, STAGING_FILE, flags, Mode::from_raw_mode(mode))?;
            let mut staged = File::from(staged);
            staged.write_all(bytes).map_err(|error| errno(&error))?;
            sys::renameat_with(folder, STAGING_FILE, folder, file, RenameFlags::empty())
        };
        write().map_err(|error| {
            let _ = sys::unlinkat(folder, STAGING_FILE, AtFlags::empty());
            file_error(&name.shown(), error)
        })
    }

    /// Appends to the log if its size is as we left it. Returns the new size.
    pub(crate) fn append(&self, before: u64, bytes: &[u8]) -> Result<Option<u64>, DraftError> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = sys::openat(&self.top, LOG, flags | OFlags::CLOEXEC, Mode::empty());
        // Anything else in its place is replaced by a new log.
        let Ok(opened) = opened else { return Ok(None) };
        let stat = sys::fstat(&opened).map_err(|error| file_error(LOG, error))?;
        let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !plain || stat.st_nlink != 1 || stat.st_size as u64 != before {
            return Ok(None);
        }
        let written = File::from(opened).write_all(bytes);
        written.map_err(|error| file_error(&shown(LOG), errno(&error)))?;
        Ok(Some(before + bytes.len() as u64))
    }

    pub(crate) fn remove(&self, name: HandoffEntry<'_>) -> Result<(), DraftError> {
        let (folder, file) = self.locate(name);
        match sys::unlinkat(folder, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(file_error(&name.shown(), error)),
        }
    }

    /// Removes the directories if they are empty.
    pub(crate) fn remove_if_empty(&self) {
        let _ = sys::unlinkat(&self.top, "drafts", AtFlags::REMOVEDIR);
        if let Ok(Some(root)) = self.workspace.folder_at("") {
            let _ = sys::unlinkat(&root, VIEW, AtFlags::REMOVEDIR);
        }
    }

    /// Adds the export to git's exclude file if the workspace is the root of a repository.
    pub(crate) fn hide_from_git(&self) -> Result<(), DraftError> {
        let file = ".git/info/exclude";
        let folder = match self.workspace.folder_at(".git/info") {
            Ok(Some(folder)) => folder,
            // Not a repository, a subdirectory of one, or a linked worktree.
            Ok(None) | Err(Errno::NOTDIR) => return Ok(()),
            Err(error) => return Err(file_error(file, error)),
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let safely = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = sys::openat(&folder, "exclude", flags | safely, Mode::from_raw_mode(0o644));
        let opened = opened.map_err(|error| file_error(file, error))?;
        let stat = sys::fstat(&opened).map_err(|error| file_error(file, error))?;
        let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !plain || stat.st_nlink != 1 {
            return Err(DraftError::file(
                file,
                FileFault::NotPlain("is not a regular file with a single link"),
            ));
        }
        let mut opened = File::from(opened);
        let mut text = Vec::new();
        let cannot = |error: std::io::Error| file_error(file, errno(&error));
        (&opened).take(MAX_IGNORED_BYTES).read_to_end(&mut text).map_err(cannot)?;
        if text.split(|byte| *byte == b'\n').any(|line| line == GITIGNORE_ENTRY.as_bytes()) {
            return Ok(());
        }
        let end = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" };
        opened.write_all(format!("{end}{GITIGNORE_ENTRY}\n").as_bytes()).map_err(cannot)
    }

    fn locate<'b>(&'b self, name: HandoffEntry<'b>) -> (&'b OwnedFd, &'b str) {
        match name {
            HandoffEntry::Draft(name) => (&self.drafts, name),
            HandoffEntry::Log => (&self.top, LOG),
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn file_error(path: &str, error: Errno) -> DraftError {
    match fault(error) {
        Some(fault) => DraftError::file(path, fault),
        None => DraftError::io("cannot write the draft export")(error.into()),
    }
}
