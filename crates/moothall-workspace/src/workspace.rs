//! The files of a workspace, reached only below a folder that is held open.
//!
//! No name leads above the root, through a symbolic link, a link of `/proc` or to another file
//! system: see `confined_open`. What is opened is looked at before it is read: a regular file with one
//! name, of a size we take.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{RelPath, Step};
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags, RawMode, RenameFlags};
use rustix::io::Errno;

use super::error::{DraftError, FileFault};
use super::{Point, Reached};
use crate::confined_open::{self, Mounts};

/// How often two writers may get in each other's way before a file is kept under another name.
const TRIES: usize = 64;

/// A workspace. Renaming its folder does not lead us elsewhere: the folder itself is held.
#[derive(Debug)]
pub(super) struct Workspace {
    root: OwnedFd,
    max_bytes: usize,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadFile {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: RawMode,
}

impl ReadFile {
    pub(super) fn executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    fn sha256(&self) -> Sha256Hex {
        Sha256Hex::of(&self.bytes)
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Carried {
    Done,
    /// The file is not what it should be, and was left alone.
    Found(Option<Sha256Hex>),
}

/// What a look into a folder found under a name.
enum Found {
    Nothing,
    File(ReadFile),
    /// Not a file that we read; the reason is for people.
    Odd(FileFault),
}

/// A file of the tree that a check runs on.
pub(super) struct TreeFile {
    pub(super) bytes: Vec<u8>,
    pub(super) executable: bool,
}

impl Workspace {
    pub(super) fn open(root: &Path, max_bytes: usize) -> Result<Self, DraftError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = sys::open(root, flags, Mode::empty())
            .map_err(|error| DraftError::io("the workspace cannot be opened")(error.into()))?;
        Ok(Self { root, max_bytes })
    }

    /// The file, or nothing.
    pub(super) fn read(&self, path: &RelPath) -> Result<Option<ReadFile>, DraftError> {
        let (folder, name) = path.split();
        let Some(folder) = self.folder(path, folder)? else { return Ok(None) };
        match self.look(&folder, name)? {
            Found::Nothing => Ok(None),
            Found::File(file) => Ok(Some(file)),
            Found::Odd(fault) => Err(DraftError::file(path, fault)),
        }
    }

    /// A text of the workspace that need not be one that workers may name.
    pub(super) fn text_at(&self, folder: &str, name: &str) -> Result<Option<String>, DraftError> {
        let cannot = |error: Errno| DraftError::io("a folder cannot be opened")(error.into());
        let Some(folder) = self.folder_at(folder).map_err(cannot)? else { return Ok(None) };
        match self.look(&folder, name)? {
            Found::Nothing => Ok(None),
            Found::File(file) => Ok(Some(String::from_utf8_lossy(&file.bytes).into_owned())),
            Found::Odd(fault) => Err(DraftError::file(name, fault)),
        }
    }

    /// Names beside a path that some file system takes for the same.
    pub(super) fn twins(&self, path: &RelPath) -> Result<Vec<String>, DraftError> {
        let (folder, name) = path.split();
        let Some(folder) = self.folder(path, folder)? else { return Ok(Vec::new()) };
        let what = "a folder of the workspace cannot be listed";
        let entries =
            sys::Dir::read_from(&folder).map_err(|error| DraftError::io(what)(error.into()))?;
        let mut twins = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| DraftError::io(what)(error.into()))?;
            let other = entry.file_name().to_string_lossy();
            if RelPath::is_twin(name, &other) {
                twins.push(other.into_owned());
            }
        }
        twins.sort();
        Ok(twins)
    }

    /// Does one step if the file is what it should be. `content` is what `step.to` stands for.
    pub(super) fn carry_out(
        &self,
        step: &Step,
        content: &[u8],
        reached: &Reached,
    ) -> Result<Carried, DraftError> {
        let path = &step.path;
        let (folder, name) = path.split();
        let opened = match (step.from, step.to) {
            (None, Some(_)) => Some(self.folder_made(path, folder)?),
            _ => self.folder(path, folder)?,
        };
        let Some(folder) = opened else { return Ok(Carried::Found(None)) };
        let place =
            Place { workspace: self, folder: &folder, name, staged: &step.staged_as, reached };
        match (step.from, step.to) {
            (Some(from), Some(to)) => place.replace(path, from.sha256, to, content),
            (None, Some(to)) => place.create(if to.executable { 0o755 } else { 0o644 }, content),
            (Some(from), None) => place.delete(path, from.sha256),
            (None, None) => Ok(Carried::Done),
        }
    }

    /// What a crash left in the staging file of a step: removed if it is ours, kept under another
    /// name if it is somebody's.
    pub(super) fn salvage(
        &self,
        step: &Step,
        content: &[u8],
    ) -> Result<Option<(String, Sha256Hex)>, DraftError> {
        let (folder, name) = step.path.split();
        let Some(folder) = self.folder(&step.path, folder)? else { return Ok(None) };
        let place = Place {
            workspace: self,
            folder: &folder,
            name,
            staged: &step.staged_as,
            reached: &|_| Ok(()),
        };
        let ours = |sha: Sha256Hex| {
            [step.from, step.to].into_iter().flatten().any(|file| file.sha256 == sha)
        };
        match self.look(&folder, &step.staged_as)? {
            Found::Nothing => Ok(None),
            // A staging file that was not written to its end is the beginning of ours.
            Found::File(file) if ours(file.sha256()) || content.starts_with(&file.bytes) => {
                place.unlink()?;
                Ok(None)
            }
            Found::File(file) => place.keep(file.sha256()).map(Some),
            Found::Odd(_) => place.keep(Sha256Hex::of(b"")).map(Some),
        }
    }

    /// The bytes of a regular file for a check, which may have other names and be larger than what
    /// is drafted; nothing where it is no such file any more.
    pub(super) fn read_any(
        &self,
        path: &RelPath,
        max_bytes: usize,
    ) -> Result<Option<TreeFile>, DraftError> {
        let flags =
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = confined_open::open(&self.root, path.as_str(), flags, Mounts::Refused);
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
            .map_err(DraftError::io("a file of the workspace cannot be read"))?;
        Ok(Some(TreeFile { bytes, executable: stat.st_mode & 0o100 != 0 }))
    }

    fn folder(&self, path: &RelPath, folder: &str) -> Result<Option<OwnedFd>, DraftError> {
        self.folder_at(folder).map_err(|error| odd(path, error))
    }

    /// A folder below the root, which is the empty one; nothing where there is none.
    pub(super) fn folder_at(&self, folder: &str) -> Result<Option<OwnedFd>, Errno> {
        let at = if folder.is_empty() { "." } else { folder };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match confined_open::open(&self.root, at, flags, Mounts::Refused) {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`Self::folder`], and makes what is missing, one name at a time and never through a link.
    fn folder_made(&self, path: &RelPath, folder: &str) -> Result<OwnedFd, DraftError> {
        if let Some(folder) = self.folder(path, folder)? {
            return Ok(folder);
        }
        let mut so_far = String::new();
        for name in folder.split('/') {
            let above = self.folder(path, &so_far)?;
            let above = above.ok_or_else(|| DraftError::file(path, FileFault::Vanished))?;
            match sys::mkdirat(&above, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(odd(path, error)),
            }
            if !so_far.is_empty() {
                so_far.push('/');
            }
            so_far.push_str(name);
        }
        self.folder(path, folder)?.ok_or_else(|| DraftError::file(path, FileFault::Vanished))
    }

    fn look(&self, folder: &OwnedFd, name: &str) -> Result<Found, DraftError> {
        let flags =
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match confined_open::open(folder, name, flags, Mounts::Refused) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            Err(error) => return fault(error).map(Found::Odd).ok_or_else(|| unreadable(error)),
        };
        let stat = sys::fstat(&file).map_err(unreadable)?;
        let not_plain = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_nlink != 1 => "it has more than one name (hard link)",
            FileType::RegularFile if stat.st_mode & 0o6000 != 0 => "it runs as another user",
            FileType::RegularFile if stat.st_size as u64 > self.max_bytes as u64 => {
                return Ok(Found::Odd(FileFault::TooLarge));
            }
            FileType::RegularFile => "",
            FileType::Directory => "it is a folder",
            FileType::Symlink => "it is a symbolic link",
            FileType::Fifo => "it is a pipe",
            FileType::Socket => "it is a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "it is a device",
            FileType::Unknown => "nobody knows what it is",
        };
        if !not_plain.is_empty() {
            return Ok(Found::Odd(FileFault::NotPlain(not_plain)));
        }
        let mut bytes = Vec::new();
        File::from(file)
            .take(self.max_bytes as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(DraftError::io("a file of the workspace cannot be read"))?;
        if bytes.len() > self.max_bytes {
            return Ok(Found::Odd(FileFault::TooLarge));
        }
        Ok(Found::File(ReadFile { bytes, mode: stat.st_mode & 0o777 }))
    }
}

/// One name in one folder that is held open, and the staging file beside it.
struct Place<'a> {
    workspace: &'a Workspace,
    folder: &'a OwnedFd,
    name: &'a str,
    staged: &'a str,
    reached: &'a Reached,
}

impl Place<'_> {
    /// The file as the draft knew it, or what is there instead.
    fn expected(
        &self,
        path: &RelPath,
        from: Sha256Hex,
    ) -> Result<Result<ReadFile, Carried>, DraftError> {
        Ok(match self.workspace.look(self.folder, self.name)? {
            Found::Nothing => Err(Carried::Found(None)),
            Found::Odd(fault) => return Err(DraftError::file(path, fault)),
            Found::File(file) if file.sha256() != from => Err(Carried::Found(Some(file.sha256()))),
            Found::File(file) => Ok(file),
        })
    }

    fn replace(
        &self,
        path: &RelPath,
        from: Sha256Hex,
        to: moothall_core::drafts::FileState,
        content: &[u8],
    ) -> Result<Carried, DraftError> {
        let current = match self.expected(path, from)? {
            Ok(current) => current,
            Err(other) => return Ok(other),
        };
        // Who may read it may run it, as `chmod +x` does under the usual mask.
        let mode = match (current.executable(), to.executable) {
            (false, true) => current.mode | (current.mode & 0o444) >> 2,
            (true, false) => current.mode & !0o111,
            _ => current.mode,
        };
        self.stage(mode, content)?;
        self.at(Point::Staged)?;
        self.exchange()?;
        self.at(Point::Exchanged)?;
        let sha = |found: &Found| match found {
            Found::File(file) => Some(file.sha256()),
            Found::Nothing | Found::Odd(_) => None,
        };
        let out = self.workspace.look(self.folder, self.staged)?;
        if sha(&out) == Some(from) {
            self.unlink()?;
            self.at(Point::Unlinked)?;
            self.sync()?;
            return Ok(Carried::Done);
        }
        // Somebody saved between our look and the exchange: give it back. What comes out must be
        // ours; if it is a newer save, that one goes back instead.
        let mut foreign = sha(&out);
        for _ in 0..TRIES {
            self.exchange()?;
            let out = self.workspace.look(self.folder, self.staged)?;
            if sha(&out) == Some(to.sha256) {
                self.unlink()?;
                self.sync()?;
                return Ok(Carried::Found(foreign));
            }
            foreign = sha(&out);
        }
        self.keep(foreign.unwrap_or_else(|| Sha256Hex::of(b"")))?;
        Ok(Carried::Found(foreign))
    }

    fn create(&self, mode: RawMode, content: &[u8]) -> Result<Carried, DraftError> {
        self.stage(mode, content)?;
        self.at(Point::Staged)?;
        match self.rename(self.staged, self.name) {
            Ok(()) => {
                self.at(Point::Exchanged)?;
                self.sync()?;
                Ok(Carried::Done)
            }
            Err(Errno::EXIST) => {
                self.unlink()?;
                Ok(Carried::Found(match self.workspace.look(self.folder, self.name)? {
                    Found::File(file) => Some(file.sha256()),
                    Found::Nothing | Found::Odd(_) => None,
                }))
            }
            Err(error) => {
                let _ = self.unlink();
                Err(unwritable(error))
            }
        }
    }

    fn delete(&self, path: &RelPath, from: Sha256Hex) -> Result<Carried, DraftError> {
        let _current = match self.expected(path, from)? {
            Ok(current) => current,
            Err(other) => return Ok(other),
        };
        self.at(Point::Staged)?;
        self.rename(self.name, self.staged).map_err(unwritable)?;
        self.at(Point::Exchanged)?;
        match self.workspace.look(self.folder, self.staged)? {
            Found::File(file) if file.sha256() == from => {
                self.unlink()?;
                self.at(Point::Unlinked)?;
                self.sync()?;
                Ok(Carried::Done)
            }
            other => {
                let sha = match other {
                    Found::File(file) => Some(file.sha256()),
                    Found::Nothing | Found::Odd(_) => None,
                };
                if self.rename(self.staged, self.name).is_err() {
                    self.keep(sha.unwrap_or_else(|| Sha256Hex::of(b"")))?;
                }
                Ok(Carried::Found(sha))
            }
        }
    }

    fn at(&self, point: Point) -> Result<(), DraftError> {
        (self.reached)(point).map_err(DraftError::io("the workspace cannot be written"))
    }

    fn stage(&self, mode: RawMode, content: &[u8]) -> Result<(), DraftError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = sys::openat(self.folder, self.staged, flags, Mode::from_raw_mode(0o600))
            .map_err(unwritable)?;
        let mut file = File::from(file);
        let written = (self.reached)(Point::Staging)
            .and_then(|()| file.write_all(content))
            .and_then(|()| sys::fchmod(&file, Mode::from_raw_mode(mode)).map_err(io::Error::from))
            .and_then(|()| file.sync_all());
        written.map_err(|error| {
            let _ = self.unlink();
            DraftError::io("the workspace cannot be written")(error)
        })
    }

    fn exchange(&self) -> Result<(), DraftError> {
        let (folder, staged, name) = (self.folder, self.staged, self.name);
        sys::renameat_with(folder, staged, folder, name, RenameFlags::EXCHANGE).map_err(|error| {
            // The file went meanwhile, or this file system cannot exchange: nothing was changed.
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

    /// Keeps the staging file under a name that people see.
    fn keep(&self, sha: Sha256Hex) -> Result<(String, Sha256Hex), DraftError> {
        let digits = sha.to_string();
        let kept = format!("{}.moothall-saved-{}", self.name, &digits[..12]);
        match self.rename(self.staged, &kept) {
            Ok(()) => self.sync()?,
            // The same bytes were kept before.
            Err(Errno::EXIST) => self.unlink()?,
            Err(error) => return Err(unwritable(error)),
        }
        Ok((kept, sha))
    }
}

fn odd(path: &RelPath, error: Errno) -> DraftError {
    match fault(error) {
        Some(fault) => DraftError::file(path, fault),
        None => unreadable(error),
    }
}

pub(super) fn fault(error: Errno) -> Option<FileFault> {
    let what = match error {
        Errno::LOOP => "a symbolic link is in the way",
        Errno::XDEV => "another file system is in the way",
        Errno::NOTDIR => "a file is where a folder should be",
        Errno::NXIO | Errno::OPNOTSUPP => "it is a socket or a device",
        Errno::NAMETOOLONG => "its name is too long",
        _ => return None,
    };
    Some(FileFault::NotPlain(what))
}

fn unreadable(error: Errno) -> DraftError {
    DraftError::io("the workspace cannot be read")(error.into())
}

fn unwritable(error: Errno) -> DraftError {
    DraftError::io("the workspace cannot be written")(error.into())
}
