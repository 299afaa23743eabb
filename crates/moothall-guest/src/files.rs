//! File access below a folder that never follows links.
//!
//! Paths are walked one component at a time with `O_NOFOLLOW`, which every kernel supports,
//! including gVisor. A program's files are read only after all of its processes are dead.

use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use moothall_core::guest::{GuestFile, GuestMessage};
use moothall_core::sandbox::GuestPath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{Gid, Uid};

use crate::agent::Incoming;
use crate::error::GuestRefusal;

/// Maximum number of files in a listing. Even with the longest paths it fits into one frame.
const MAX_FILES: usize = 4096;

/// Maximum number of notes about other entries in a listing.
const MAX_OTHERS: usize = 100;

/// Maximum number of entries inspected for one listing.
const MAX_ENTRIES: usize = 20_000;

/// Non-blocking and without a controlling terminal, so a pipe or device in place of a folder
/// cannot block the agent.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Owner and mode of new files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileOwnership {
    /// `None` keeps the agent as owner.
    pub(crate) owner: Option<(Uid, Gid)>,
    pub(crate) mode: Mode,
}

/// A file being written.
#[derive(Debug)]
pub(crate) struct PendingFile {
    file: File,
    ownership: FileOwnership,
    /// Parent folder, for deleting the file again.
    folder: OwnedFd,
    name: String,
    kept: bool,
}

impl Incoming for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), GuestRefusal> {
        self.file.write_all(bytes).map_err(GuestRefusal::because("write the file"))
    }

    fn finish(mut self) -> Result<(), GuestRefusal> {
        set_ownership(&self.file, self.ownership, self.ownership.mode)
            .map_err(GuestRefusal::because("change the owner of the file"))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.kept {
            // If this fails too, a partial file remains; the host has already received the error.
            let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Creates a file and its parent folders. Fails if the file exists.
pub(crate) fn create(
    base: impl AsFd,
    path: &GuestPath,
    ownership: FileOwnership,
) -> Result<PendingFile, GuestRefusal> {
    let refusal = |error| GuestRefusal::because(format_args!("create `{path}`"))(error);
    let (folder, name) = walk(base, path, Some(ownership)).map_err(refusal)?;
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::NOFOLLOW
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let file =
        rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR).map_err(refusal)?;
    Ok(PendingFile { file: file.into(), ownership, folder, name: name.to_owned(), kept: false })
}

/// Writes a file under another name and renames it, which replaces an existing file atomically.
pub(crate) fn replace(
    base: impl AsFd,
    path: &GuestPath,
    ownership: FileOwnership,
    bytes: &[u8],
) -> Result<(), GuestRefusal> {
    let refusal = |error| GuestRefusal::because(format_args!("replace `{path}`"))(error);
    let unfinished = format!("{path}.new").parse().map_err(|_| refusal(Errno::NAMETOOLONG))?;
    let mut file = create(&base, &unfinished, ownership)?;
    file.write(bytes)?;
    file.finish()?;
    let (folder, name) = walk(base, path, None).map_err(refusal)?;
    rustix::fs::renameat(&folder, format!("{name}.new"), &folder, name).map_err(refusal)
}

/// Creates a top-level folder unless it exists.
pub(crate) fn make_folder(
    base: impl AsFd,
    name: &str,
    ownership: FileOwnership,
) -> Result<(), GuestRefusal> {
    let refusal = |error| GuestRefusal::because(format_args!("create `{name}`"))(error);
    match rustix::fs::mkdirat(&base, name, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(()),
        Err(error) => return Err(refusal(error)),
    }
    let made = open_folder(&base, name).map_err(refusal)?;
    set_ownership(&made, ownership, Mode::from_raw_mode(0o755)).map_err(refusal)
}

/// Opens a regular file of at most `most_bytes` bytes.
pub(crate) fn open(
    base: impl AsFd,
    path: &GuestPath,
    most_bytes: u64,
) -> Result<std::io::Take<File>, GuestRefusal> {
    let refusal = |error| GuestRefusal::because(format_args!("open `{path}`"))(error);
    let (folder, name) = walk(base, path, None).map_err(refusal)?;
    // Non-blocking and without a controlling terminal, so a pipe or device cannot block the
    // agent. The type is checked after opening, so the file cannot be swapped in between.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(refusal)?;
    let stat = rustix::fs::fstat(&file).map_err(refusal)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(GuestRefusal::new(format_args!("`{path}` is not a regular file")));
    }
    let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if bytes > most_bytes {
        return Err(GuestRefusal::new(format_args!(
            "`{path}` has {bytes} bytes (limit: {most_bytes})"
        )));
    }
    Ok(File::from(file).take(most_bytes))
}

/// Lists the regular files in a folder, or in the whole base, sorted by path. A missing folder has
/// none.
pub(crate) fn list(
    base: impl AsFd,
    folder: Option<&GuestPath>,
    most: u32,
) -> Result<GuestMessage, GuestRefusal> {
    let mut listing = FolderListing {
        files: Vec::new(),
        others: Vec::new(),
        more_others: 0,
        most: usize::try_from(most).unwrap_or(MAX_FILES).min(MAX_FILES),
        inspected: 0,
    };
    let opened = match folder {
        Some(folder) => {
            walk(base, folder, None).and_then(|(parent, name)| open_folder(&parent, name))
        }
        None => open_folder(base, "."),
    };
    let folder = folder.map_or(".", GuestPath::as_str);
    match opened {
        Ok(opened) => listing.walk_folder(opened, ""),
        Err(Errno::NOENT) => {}
        Err(Errno::NOTDIR) => listing.note(folder, "is not a directory"),
        Err(error) => return Err(GuestRefusal::because(format_args!("list `{folder}`"))(error)),
    }
    Ok(listing.into_message())
}

/// Opens the parent folder of a path and returns it with the last component. If `make` is given,
/// missing folders are created.
fn walk(
    base: impl AsFd,
    path: &GuestPath,
    make: Option<FileOwnership>,
) -> Result<(OwnedFd, &str), Errno> {
    let mut at = open_folder(base, ".")?;
    let mut parts = path.parts().peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return Ok((at, part));
        }
        if let Some(ownership) = make {
            match rustix::fs::mkdirat(&at, part, Mode::RWXU) {
                Ok(()) => {
                    let made = open_folder(&at, part)?;
                    set_ownership(&made, ownership, Mode::from_raw_mode(0o755))?;
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        at = open_folder(&at, part)?;
    }
    // Unreachable: a path has at least one component.
    Err(Errno::INVAL)
}

/// Opens a folder but never a link to one. The type is checked after opening, because gVisor
/// follows links with `O_DIRECTORY` in spite of `O_NOFOLLOW`.
fn open_folder(at: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let opened = match rustix::fs::openat(at, name, FOLDER, Mode::empty()) {
        Err(Errno::LOOP) => return Err(Errno::NOTDIR),
        opened => opened?,
    };
    match FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) {
        FileType::Directory => Ok(opened),
        _ => Err(Errno::NOTDIR),
    }
}

fn set_ownership(of: impl AsFd, ownership: FileOwnership, mode: Mode) -> Result<(), Errno> {
    // Mode first, because it cannot be changed after the file belongs to another user.
    rustix::fs::fchmod(&of, mode)?;
    if let Some((user, group)) = ownership.owner {
        rustix::fs::fchown(&of, Some(user), Some(group))?;
    }
    Ok(())
}

struct FolderListing {
    files: Vec<GuestFile>,
    others: Vec<String>,
    more_others: usize,
    most: usize,
    inspected: usize,
}

impl FolderListing {
    /// The depth is bounded by the maximum number of components of a path; deeper folders are noted
    /// and skipped.
    fn walk_folder(&mut self, folder: OwnedFd, prefix: &str) {
        let mut names = Vec::new();
        let mut entries = match Dir::read_from(&folder) {
            Ok(entries) => entries,
            Err(error) => return self.note(prefix, &format!("cannot be read: {error}")),
        };
        while let Some(Ok(entry)) = entries.read() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if self.inspected >= MAX_ENTRIES {
                self.note(prefix, "has more entries than were inspected");
                break;
            }
            self.inspected += 1;
            names.push(name.to_owned());
        }
        drop(entries);
        names.sort();
        for name in names {
            self.inspect(&folder, prefix, &name);
        }
    }

    fn inspect(&mut self, folder: &OwnedFd, prefix: &str, name: &CStr) {
        let text = name.to_string_lossy();
        let shown = if prefix.is_empty() { text.into_owned() } else { format!("{prefix}/{text}") };
        let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => return self.note(&shown, &format!("cannot be inspected: {error}")),
        };
        let path = match name.to_str().map(|_| shown.parse::<GuestPath>()) {
            Ok(Ok(path)) => path,
            _ => {
                return self.note(
                    &shown,
                    "has an invalid name (too long, too deep or with special characters)",
                );
            }
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if self.files.len() >= self.most => {
                self.note(&shown, "exceeds the file limit");
            }
            FileType::RegularFile => {
                let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
                self.files.push(GuestFile { path, bytes });
            }
            FileType::Directory => match open_folder(folder, name) {
                Ok(inner) => self.walk_folder(inner, &shown),
                Err(error) => self.note(&shown, &format!("cannot be opened: {error}")),
            },
            FileType::Symlink => self.note(&shown, "is a link"),
            FileType::Fifo => self.note(&shown, "is a pipe"),
            FileType::Socket => self.note(&shown, "is a socket"),
            FileType::CharacterDevice | FileType::BlockDevice => self.note(&shown, "is a device"),
            FileType::Unknown => self.note(&shown, "has an unknown file type"),
        }
    }

    fn note(&mut self, what: &str, message: &str) {
        if self.others.len() >= MAX_OTHERS {
            self.more_others += 1;
            return;
        }
        let end = what.floor_char_boundary(200);
        let short = what.get(..end).unwrap_or_default();
        let dots = if end < what.len() { "…" } else { "" };
        self.others.push(format!("`{}{dots}` {message}", short.escape_debug()));
    }

    fn into_message(mut self) -> GuestMessage {
        if self.more_others > 0 {
            self.others.push(format!("{} more", self.more_others));
        }
        // Folders were walked in order, but `a-b` sorts before `a/b`.
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        GuestMessage::Listing { files: self.files, others: self.others }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
