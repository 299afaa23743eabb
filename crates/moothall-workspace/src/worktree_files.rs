//! Compares the files of a working tree with a commit, without git.
//!
//! Git would run filters and a file system monitor, and skip files that the index marks as
//! unchanged. Here every tracked file is hashed, links are never followed, and untracked files
//! that git does not ignore are included.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ignore::WalkBuilder;
use moothall_core::gate::{EntryContent, EntryKind};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::git_repository::{GitError, GitRepository, ObjectId, TrackedEntry};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A file on disk, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskFile {
    pub(crate) kind: EntryKind,
}

/// Reads files below a directory without following links.
#[derive(Debug)]
pub(crate) struct WorktreeFiles {
    root: OwnedFd,
    /// The directory of the last file. Files are read in the order of their paths.
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl WorktreeFiles {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: rustix::fs::open(root, flags, Mode::empty())?, last: None })
    }

    /// Opens the directory of a path, one component at a time.
    fn directory(&mut self, path: &[u8]) -> Result<&OwnedFd, Errno> {
        if path.is_empty() {
            return Ok(&self.root);
        }
        let is_open = self.last.as_ref().is_some_and(|(known, _)| known == path);
        if !is_open {
            let mut opened: Option<OwnedFd> = None;
            for name in path.split(|byte| *byte == b'/') {
                if matches!(name, b"" | b"." | b"..") {
                    return Err(Errno::NOENT);
                }
                let parent = opened.as_ref().unwrap_or(&self.root);
                opened = Some(rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?);
            }
            self.last = opened.map(|directory| (path.to_vec(), directory));
        }
        self.last.as_ref().map(|(_, directory)| directory).ok_or(Errno::NOENT)
    }

    fn parent<'a>(&mut self, path: &'a [u8]) -> Result<(&OwnedFd, &'a [u8]), Errno> {
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (directory, name) = match slash {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&[][..], path),
        };
        Ok((self.directory(directory)?, name))
    }

    /// What is at a path. `None` if there is nothing, or a directory.
    pub(crate) fn file(&mut self, path: &[u8]) -> io::Result<Option<DiskFile>> {
        let found = self
            .parent(path)
            .and_then(|(parent, name)| rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW));
        match found {
            Ok(found) => Ok(disk_file(&found)),
            // A link in place of a directory hides the file, as for git.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The content of a file of at most `limit` bytes, or the target of a link.
    pub(crate) fn read(&mut self, path: &[u8], limit: u64) -> EntryContent {
        self.try_read(path, limit).unwrap_or(EntryContent::Unreadable)
    }

    fn try_read(&mut self, path: &[u8], limit: u64) -> io::Result<EntryContent> {
        match self.file(path)?.map(|file| file.kind) {
            Some(EntryKind::Link) => {
                let (parent, name) = self.parent(path)?;
                let target = rustix::fs::readlinkat(parent, name, Vec::new())?;
                Ok(EntryContent::Bytes(target.into_bytes()))
            }
            Some(EntryKind::File | EntryKind::Executable) => {
                let (file, size) = self.open_regular(path)?;
                if size > limit {
                    return Ok(EntryContent::TooLarge(size));
                }
                let mut bytes = Vec::new();
                file.take(limit + 1).read_to_end(&mut bytes)?;
                match bytes.len() as u64 > limit {
                    true => Ok(EntryContent::TooLarge(bytes.len() as u64)),
                    false => Ok(EntryContent::Bytes(bytes)),
                }
            }
            _ => Ok(EntryContent::Unreadable),
        }
    }

    fn open_regular(&mut self, path: &[u8]) -> io::Result<(File, u64)> {
        let (parent, name) = self.parent(path)?;
        let file = rustix::fs::openat(parent, name, FILE, Mode::empty())?;
        let found = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        Ok((File::from(file), u64::try_from(found.st_size).unwrap_or(u64::MAX)))
    }

    /// Whether a path has the kind and content of an entry.
    pub(crate) fn is_same(&mut self, path: &[u8], entry: &TrackedEntry) -> io::Result<bool> {
        let Some(file) = self.file(path)? else { return Ok(false) };
        if file.kind != EntryKind::of_git_mode(entry.mode) {
            return Ok(false);
        }
        match file.kind {
            EntryKind::Link => {
                let EntryContent::Bytes(target) = self.read(path, u64::MAX) else {
                    return Ok(false);
                };
                let mut hasher = entry.id.blob_hasher(target.len() as u64);
                hasher.update(&target);
                Ok(hasher.finish() == entry.id)
            }
            EntryKind::File | EntryKind::Executable => self.has_hash(path, &entry.id),
            EntryKind::Submodule | EntryKind::Other => Ok(false),
        }
    }

    fn has_hash(&mut self, path: &[u8], id: &ObjectId) -> io::Result<bool> {
        let (mut file, size) = self.open_regular(path)?;
        let mut hasher = id.blob_hasher(size);
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hasher.finish() == *id),
                read => hasher.update(&buffer[..read]),
            }
        }
    }
}

fn disk_file(found: &Stat) -> Option<DiskFile> {
    let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => return None,
        FileType::RegularFile if found.st_mode & 0o100 != 0 => EntryKind::Executable,
        FileType::RegularFile => EntryKind::File,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    };
    Some(DiskFile { kind })
}

/// What the working tree has at a changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorktreeChange {
    Deleted,
    /// A file or link on disk.
    Disk(EntryKind),
    /// Another commit of a submodule, or a repository in an untracked directory.
    Submodule(Option<ObjectId>),
    /// Could not be compared.
    Unreadable,
}

/// Finds the paths whose file differs from the base, and untracked files that git does not ignore.
pub(crate) fn worktree_changes(
    repository: &GitRepository,
    base: &BTreeMap<Vec<u8>, TrackedEntry>,
    index: &BTreeMap<Vec<u8>, TrackedEntry>,
) -> Result<Vec<(Vec<u8>, WorktreeChange)>, GitError> {
    let mut files = WorktreeFiles::open(repository.work_tree())?;
    let mut changes = Vec::new();
    let only_staged = index.keys().filter(|path| !base.contains_key(*path));
    for path in base.keys().chain(only_staged) {
        let entry = base.get(path);
        let mode = entry.or_else(|| index.get(path)).map_or(0, |entry| entry.mode);
        if EntryKind::of_git_mode(mode) == EntryKind::Submodule {
            changes.extend(submodule_change(repository, &mut files, path, entry)?);
            continue;
        }
        let change = match files.file(path) {
            Ok(Some(file)) => match entry.map(|entry| files.is_same(path, entry)) {
                Some(Ok(true)) => continue,
                Some(Err(_)) => WorktreeChange::Unreadable,
                _ => WorktreeChange::Disk(file.kind),
            },
            // Not checked out, so the commit keeps it.
            Ok(None) if index.get(path).is_some_and(|entry| entry.skipped) => continue,
            Ok(None) if entry.is_none() => continue,
            Ok(None) => WorktreeChange::Deleted,
            Err(_) => WorktreeChange::Unreadable,
        };
        changes.push((path.clone(), change));
    }
    untracked(repository.work_tree(), &mut files, base, index, &mut changes);
    Ok(changes)
}

fn submodule_change(
    repository: &GitRepository,
    files: &mut WorktreeFiles,
    path: &[u8],
    entry: Option<&TrackedEntry>,
) -> Result<Option<(Vec<u8>, WorktreeChange)>, GitError> {
    let change = match files.file(path) {
        // A file or link in place of the submodule.
        Ok(Some(file)) => WorktreeChange::Disk(file.kind),
        Ok(None) => match repository.submodule_head(OsStr::from_bytes(path)) {
            Ok(Some(head)) if entry.is_some_and(|entry| entry.id == head) => return Ok(None),
            Ok(Some(head)) => WorktreeChange::Submodule(Some(head)),
            // Not checked out.
            Ok(None) => return Ok(None),
            Err(_) => WorktreeChange::Unreadable,
        },
        Err(_) => WorktreeChange::Unreadable,
    };
    Ok(Some((path.to_vec(), change)))
}

/// Adds files that are neither tracked nor ignored. A nested repository is one entry, as for git.
fn untracked(
    root: &Path,
    files: &mut WorktreeFiles,
    base: &BTreeMap<Vec<u8>, TrackedEntry>,
    index: &BTreeMap<Vec<u8>, TrackedEntry>,
    changes: &mut Vec<(Vec<u8>, WorktreeChange)>,
) {
    let is_tracked = |path: &[u8]| base.contains_key(path) || index.contains_key(path);
    let nested: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let found = Arc::clone(&nested);
    let top = root.to_owned();
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .follow_links(false)
        .parents(false)
        .ignore(false)
        .git_global(false)
        .git_exclude(true)
        .git_ignore(true)
        .require_git(false)
        .filter_entry(move |entry| {
            if entry.depth() == 1 && entry.file_name() == ".git" {
                return false;
            }
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            if entry.depth() > 0
                && is_directory
                && entry.path().join(".git").symlink_metadata().is_ok()
            {
                if let Ok(path) = entry.path().strip_prefix(&top) {
                    let path = path.as_os_str().as_bytes().to_vec();
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(path);
                }
                return false;
            }
            true
        })
        .build();
    for entry in walk {
        let Ok(entry) = entry else {
            changes.push((b"(unreadable directory)".to_vec(), WorktreeChange::Unreadable));
            continue;
        };
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        let path = path.as_os_str().as_bytes();
        if path.is_empty() || is_tracked(path) {
            continue;
        }
        match files.file(path) {
            Ok(Some(file)) => changes.push((path.to_vec(), WorktreeChange::Disk(file.kind))),
            Ok(None) => {}
            Err(_) => changes.push((path.to_vec(), WorktreeChange::Unreadable)),
        }
    }
    let nested = std::mem::take(&mut *nested.lock().unwrap_or_else(PoisonError::into_inner));
    for path in nested.into_iter().filter(|path| !is_tracked(path)) {
        changes.push((path, WorktreeChange::Submodule(None)));
    }
}
