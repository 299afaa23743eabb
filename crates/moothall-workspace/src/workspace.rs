//! Access to workspace files, confined to an open directory.
//!
//! No path can leave the root, follow a symbolic or `/proc` link, or cross into another file
//! system: see `confined_open`. An opened file is checked before it is read: it must be a regular
//! file with a single link, within the size limit.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{FileStep, RelPath};
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags, RawMode, RenameFlags};
use rustix::io::Errno;

use super::error::{DraftError, FileFault};
use super::{FailPoint, Reached};
use crate::confined_open::{self, MountPolicy};

/// After this many collisions with another writer, a file is saved under another name.
const MAX_COLLISIONS: usize = 64;

/// A workspace. The root is held open, so renaming it does not redirect us.
#[derive(Debug)]
pub(crate) struct ConfinedWorkspace {
    root: OwnedFd,
    max_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspaceFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: RawMode,
}

impl WorkspaceFile {
    pub(crate) fn executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    fn sha256(&self) -> Sha256Hex {
        Sha256Hex::of(&self.bytes)
    }
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    Done,
    /// The file differs from the expected one and was not changed.
    Found(Option<Sha256Hex>),
}

/// What exists under a name in a directory.
enum LookupResult {
    Nothing,
    File(WorkspaceFile),
    /// Something we do not read, with the reason.
    Invalid(FileFault),
}

/// A file of the tree that a check runs on.
pub(crate) struct TreeFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}

impl ConfinedWorkspace {
    pub(crate) fn open(root: &Path, max_bytes: usize) -> Result<Self, DraftError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = sys::open(root, flags, Mode::empty())
            .map_err(|error| DraftError::io("cannot open the workspace")(error.into()))?;
        Ok(Self { root, max_bytes })
    }

    /// Reads a file, or returns `None` if it does not exist.
    pub(crate) fn read(&self, path: &RelPath) -> Result<Option<WorkspaceFile>, DraftError> {
        let (folder, name) = path.split();
        let Some(folder) = self.folder(path, folder)? else { return Ok(None) };
        match self.lookup(&folder, name)? {
            LookupResult::Nothing => Ok(None),
            LookupResult::File(file) => Ok(Some(file)),
            LookupResult::Invalid(fault) => Err(DraftError::file(path, fault)),
        }
    }

    /// Reads a text file at a path that workers may not be allowed to name.
    pub(crate) fn text_at(&self, folder: &str, name: &str) -> Result<Option<String>, DraftError> {
        let cannot = |error: Errno| DraftError::io("cannot open a directory")(error.into());
        let Some(folder) = self.folder_at(folder).map_err(cannot)? else { return Ok(None) };
        match self.lookup(&folder, name)? {
            LookupResult::Nothing => Ok(None),
            LookupResult::File(file) => Ok(Some(String::from_utf8_lossy(&file.bytes).into_owned())),
            LookupResult::Invalid(fault) => Err(DraftError::file(name, fault)),
        }
    }

    /// Names in the same directory that some file systems treat as equal.
    pub(crate) fn twins(&self, path: &RelPath) -> Result<Vec<String>, DraftError> {
        let (folder, name) = path.split();
        let Some(folder) = self.folder(path, folder)? else { return Ok(Vec::new()) };
        let what = "cannot list a directory of the workspace";
        let entries =
            sys::Dir::read_from(&folder).map_err(|error| DraftError::io(what)(error.into()))?;
        let mut twins = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| DraftError::io(what)(error.into()))?;
            let other = entry.file_name().to_string_lossy();
            if RelPath::is_colliding_name(name, &other) {
                twins.push(other.into_owned());
            }
        }
        twins.sort();
        Ok(twins)
    }

    /// Carries out one step if the file is as expected. `content` is the content of `step.to`.
    pub(crate) fn carry_out(
        &self,
        step: &FileStep,
        content: &[u8],
        reached: &Reached,
    ) -> Result<StepOutcome, DraftError> {
        let path = &step.path;
        let (folder, name) = path.split();
        let opened = match (step.from, step.to) {
            (None, Some(_)) => Some(self.folder_made(path, folder)?),
            _ => self.folder(path, folder)?,
        };
        let Some(folder) = opened else { return Ok(StepOutcome::Found(None)) };
        let target =
            StepTarget { workspace: self, folder: &folder, name, staged: &step.staged_as, reached };
        match (step.from, step.to) {
            (Some(from), Some(to)) => target.replace(path, from.sha256, to, content),
            (None, Some(to)) => target.create(if to.executable { 0o755 } else { 0o644 }, content),
            (Some(from), None) => target.delete(path, from.sha256),
            (None, None) => Ok(StepOutcome::Done),
        }
    }

    /// Handles the staging file that a crash left behind: removes it if it is ours, or saves it
    /// under another name if it is not.
    pub(crate) fn salvage(
        &self,
        step: &FileStep,
        content: &[u8],
    ) -> Result<Option<(String, Sha256Hex)>, DraftError> {
        let (folder, name) = step.path.split();
        let Some(folder) = self.folder(&step.path, folder)? else { return Ok(None) };
        let target = StepTarget {
            workspace: self,
            folder: &folder,
            name,
            staged: &step.staged_as,
            reached: &|_| Ok(()),
        };
        let is_ours = |sha: Sha256Hex| {
            [step.from, step.to].into_iter().flatten().any(|file| file.sha256 == sha)
        };
        match self.lookup(&folder, &step.staged_as)? {
            LookupResult::Nothing => Ok(None),
            // An incompletely written staging file is a prefix of our content.
            LookupResult::File(file)
                if is_ours(file.sha256()) || content.starts_with(&file.bytes) =>
            {
                target.unlink()?;
                Ok(None)
            }
            LookupResult::File(file) => target.keep(file.sha256()).map(Some),
            LookupResult::Invalid(_) => target.keep(Sha256Hex::of(b"")).map(Some),
        }
    }

    /// Reads a regular file for a check. It may have several links and be larger than a draft.
    /// `None` if it is no longer a regular file.
    pub(crate) fn read_any(
        &self,
        path: &RelPath,
        max_bytes: usize,
    ) -> Result<Option<TreeFile>, DraftError> {
        let flags =
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = confined_open::open(&self.root, path.as_str(), flags, MountPolicy::Refused);
        let file = match opened {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::XDEV | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        let stat = sys::fstat(&file).map_err(unreadable)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        File::from(file)
            .take(max_bytes as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(DraftError::io("cannot read a workspace file"))?;
        Ok(Some(TreeFile { bytes, executable: stat.st_mode & 0o100 != 0 }))
    }

    fn folder(&self, path: &RelPath, folder: &str) -> Result<Option<OwnedFd>, DraftError> {
        self.folder_at(folder).map_err(|error| file_error(path, error))
    }

    /// Opens a directory below the root (the empty string), or returns `None` if it does not exist.
    pub(crate) fn folder_at(&self, folder: &str) -> Result<Option<OwnedFd>, Errno> {
        let at = if folder.is_empty() { "." } else { folder };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match confined_open::open(&self.root, at, flags, MountPolicy::Refused) {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Like [`Self::folder`], but creates missing directories, one at a time and never through a
    /// link.
    fn folder_made(&self, path: &RelPath, folder: &str) -> Result<OwnedFd, DraftError> {
        if let Some(folder) = self.folder(path, folder)? {
            return Ok(folder);
        }
        let mut parent = String::new();
        for name in folder.split('/') {
            let above = self.folder(path, &parent)?;
            let above = above.ok_or_else(|| DraftError::file(path, FileFault::Vanished))?;
            match sys::mkdirat(&above, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(file_error(path, error)),
            }
            if !parent.is_empty() {
                parent.push('/');
            }
            parent.push_str(name);
        }
        self.folder(path, folder)?.ok_or_else(|| DraftError::file(path, FileFault::Vanished))
    }

    fn lookup(&self, folder: &OwnedFd, name: &str) -> Result<LookupResult, DraftError> {
        let flags =
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match confined_open::open(folder, name, flags, MountPolicy::Refused) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(LookupResult::Nothing),
            Err(error) => {
                return fault(error).map(LookupResult::Invalid).ok_or_else(|| unreadable(error));
            }
        };
        let stat = sys::fstat(&file).map_err(unreadable)?;
        let not_plain = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_nlink != 1 => "has more than one hard link",
            FileType::RegularFile if stat.st_mode & 0o6000 != 0 => {
                "has the setuid or setgid bit set"
            }
            FileType::RegularFile if stat.st_size as u64 > self.max_bytes as u64 => {
                return Ok(LookupResult::Invalid(FileFault::TooLarge));
            }
            FileType::RegularFile => "",
            FileType::Directory => "is a directory",
            FileType::Symlink => "is a symbolic link",
            FileType::Fifo => "is a pipe",
            FileType::Socket => "is a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "is a device",
            FileType::Unknown => "has an unknown file type",
        };
        if !not_plain.is_empty() {
            return Ok(LookupResult::Invalid(FileFault::NotPlain(not_plain)));
        }
        let mut bytes = Vec::new();
        File::from(file)
            .take(self.max_bytes as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(DraftError::io("cannot read a workspace file"))?;
        if bytes.len() > self.max_bytes {
            return Ok(LookupResult::Invalid(FileFault::TooLarge));
        }
        Ok(LookupResult::File(WorkspaceFile { bytes, mode: stat.st_mode & 0o777 }))
    }
}

/// A name in an open directory, and the staging file next to it.
struct StepTarget<'a> {
    workspace: &'a ConfinedWorkspace,
    folder: &'a OwnedFd,
    name: &'a str,
    staged: &'a str,
    reached: &'a Reached,
}

impl StepTarget<'_> {
    /// Returns the file if it has the expected content, otherwise what was found.
    fn expected(
        &self,
        path: &RelPath,
        from: Sha256Hex,
    ) -> Result<Result<WorkspaceFile, StepOutcome>, DraftError> {
        Ok(match self.workspace.lookup(self.folder, self.name)? {
            LookupResult::Nothing => Err(StepOutcome::Found(None)),
            LookupResult::Invalid(fault) => return Err(DraftError::file(path, fault)),
            LookupResult::File(file) if file.sha256() != from => {
                Err(StepOutcome::Found(Some(file.sha256())))
            }
            LookupResult::File(file) => Ok(file),
        })
    }

    fn replace(
        &self,
        path: &RelPath,
        from: Sha256Hex,
        to: moothall_core::drafts::FileState,
        content: &[u8],
    ) -> Result<StepOutcome, DraftError> {
        let current = match self.expected(path, from)? {
            Ok(current) => current,
            Err(other) => return Ok(other),
        };
        // Everyone who may read the file may execute it, as with `chmod +x` and the usual umask.
        let mode = match (current.executable(), to.executable) {
            (false, true) => current.mode | (current.mode & 0o444) >> 2,
            (true, false) => current.mode & !0o111,
            _ => current.mode,
        };
        self.stage(mode, content)?;
        self.at(FailPoint::Staged)?;
        self.exchange()?;
        self.at(FailPoint::Exchanged)?;
        let sha = |found: &LookupResult| match found {
            LookupResult::File(file) => Some(file.sha256()),
            LookupResult::Nothing | LookupResult::Invalid(_) => None,
        };
        let out = self.workspace.lookup(self.folder, self.staged)?;
        if sha(&out) == Some(from) {
            self.unlink()?;
            self.at(FailPoint::Unlinked)?;
            self.sync()?;
            return Ok(StepOutcome::Done);
        }
        // Someone saved the file between our check and the exchange: put it back. The file that
        // comes out must be ours; if it is a newer save, put that one back instead.
        let mut foreign = sha(&out);
        for _ in 0..MAX_COLLISIONS {
            self.exchange()?;
            let out = self.workspace.lookup(self.folder, self.staged)?;
            if sha(&out) == Some(to.sha256) {
                self.unlink()?;
                self.sync()?;
                return Ok(StepOutcome::Found(foreign));
            }
            foreign = sha(&out);
        }
        self.keep(foreign.unwrap_or_else(|| Sha256Hex::of(b"")))?;
        Ok(StepOutcome::Found(foreign))
    }

    fn create(&self, mode: RawMode, content: &[u8]) -> Result<StepOutcome, DraftError> {
        self.stage(mode, content)?;
        self.at(FailPoint::Staged)?;
        match self.rename(self.staged, self.name) {
            Ok(()) => {
                self.at(FailPoint::Exchanged)?;
                self.sync()?;
                Ok(StepOutcome::Done)
            }
            Err(Errno::EXIST) => {
                self.unlink()?;
                Ok(StepOutcome::Found(match self.workspace.lookup(self.folder, self.name)? {
                    LookupResult::File(file) => Some(file.sha256()),
                    LookupResult::Nothing | LookupResult::Invalid(_) => None,
                }))
            }
            Err(error) => {
                let _ = self.unlink();
                Err(unwritable(error))
            }
        }
    }

    fn delete(&self, path: &RelPath, from: Sha256Hex) -> Result<StepOutcome, DraftError> {
        let _current = match self.expected(path, from)? {
            Ok(current) => current,
            Err(other) => return Ok(other),
        };
        self.at(FailPoint::Staged)?;
        self.rename(self.name, self.staged).map_err(unwritable)?;
        self.at(FailPoint::Exchanged)?;
        match self.workspace.lookup(self.folder, self.staged)? {
            LookupResult::File(file) if file.sha256() == from => {
                self.unlink()?;
                self.at(FailPoint::Unlinked)?;
                self.sync()?;
                Ok(StepOutcome::Done)
            }
            other => {
                let sha = match other {
                    LookupResult::File(file) => Some(file.sha256()),
                    LookupResult::Nothing | LookupResult::Invalid(_) => None,
                };
                if self.rename(self.staged, self.name).is_err() {
                    self.keep(sha.unwrap_or_else(|| Sha256Hex::of(b"")))?;
                }
                Ok(StepOutcome::Found(sha))
            }
        }
    }

    fn at(&self, point: FailPoint) -> Result<(), DraftError> {
        (self.reached)(point).map_err(DraftError::io("cannot write to the workspace"))
    }

    fn stage(&self, mode: RawMode, content: &[u8]) -> Result<(), DraftError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = sys::openat(self.folder, self.staged, flags, Mode::from_raw_mode(0o600))
            .map_err(unwritable)?;
        let mut file = File::from(file);
        let written = (self.reached)(FailPoint::Staging)
            .and_then(|()| file.write_all(content))
            .and_then(|()| sys::fchmod(&file, Mode::from_raw_mode(mode)).map_err(io::Error::from))
            .and_then(|()| file.sync_all());
        written.map_err(|error| {
            let _ = self.unlink();
            DraftError::io("cannot write to the workspace")(error)
        })
    }

    fn exchange(&self) -> Result<(), DraftError> {
        let (folder, staged, name) = (self.folder, self.staged, self.name);
        sys::renameat_with(folder, staged, folder, name, RenameFlags::EXCHANGE).map_err(|error| {
            // The file disappeared, or the file system does not support exchange. Nothing was
            // changed.
            let _ = self.unlink();
            unwritable(error)
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        sys::renameat_with(self.folder, from, self.folder, to, RenameFlags::NOREPLACE)
    }

    fn unlink(&self) -> Result<(), DraftError> {
        match sys::unlinkat(self.folder, self.staged, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(unwritable(error)),
        }
    }

    fn sync(&self) -> Result<(), DraftError> {
        sys::fsync(self.folder.as_fd()).map_err(unwritable)
    }

    /// Saves the staging file under a visible name.
    fn keep(&self, sha: Sha256Hex) -> Result<(String, Sha256Hex), DraftError> {
        let digits = sha.to_string();
        let kept = format!("{}.moothall-saved-{}", self.name, &digits[..12]);
        match self.rename(self.staged, &kept) {
            Ok(()) => self.sync()?,
            // The same content was saved before.
            Err(Errno::EXIST) => self.unlink()?,
            Err(error) => return Err(unwritable(error)),
        }
        Ok((kept, sha))
    }
}

fn file_error(path: &RelPath, error: Errno) -> DraftError {
    match fault(error) {
        Some(fault) => DraftError::file(path, fault),
        None => unreadable(error),
    }
}

pub(crate) fn fault(error: Errno) -> Option<FileFault> {
    let what = match error {
        Errno::LOOP => "path contains a symbolic link",
        Errno::XDEV => "path leads to another file system",
        Errno::NOTDIR => "a parent of the path is not a directory",
        Errno::NXIO | Errno::OPNOTSUPP => "is a socket or a device",
        Errno::NAMETOOLONG => "name is too long",
        _ => return None,
    };
    Some(FileFault::NotPlain(what))
}

fn unreadable(error: Errno) -> DraftError {
    DraftError::io("cannot read the workspace")(error.into())
}

fn unwritable(error: Errno) -> DraftError {
    DraftError::io("cannot write to the workspace")(error.into())
}
