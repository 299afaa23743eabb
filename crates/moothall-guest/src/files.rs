//! Files below a folder, without ever following a link.
//!
//! A path is walked part by part with `O_NOFOLLOW`, which every kernel knows, gVisor's too. What a
//! program left behind is looked at only after all its processes are dead.

use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use moothall_core::guest::{FoundFile, FromGuest};
use moothall_core::sandbox::GuestPath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{Gid, Uid};

use crate::agent::Incoming;
use crate::error::Refusal;

/// The most files that a listing names: with the longest paths it still fits into one frame.
const MOST_FILES: usize = 4096;

/// The most words about other things in a listing.
const MOST_OTHERS: usize = 100;

/// The most entries that are looked at for one listing.
const MOST_ENTRIES: usize = 20_000;

/// Not blocking, and no terminal: whatever has taken a folder's place must not stop the agent.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Who owns new files, and what others may do with them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ownership {
    /// `None`: whoever the agent is.
    pub(crate) owner: Option<(Uid, Gid)>,
    pub(crate) mode: Mode,
}

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    ownership: Ownership,
    /// Where it is, for when it must go again.
    folder: OwnedFd,
    name: String,
    kept: bool,
}

impl Incoming for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.file.write_all(bytes).map_err(Refusal::because("write the file"))
    }

    fn finish(mut self) -> Result<(), Refusal> {
        set_ownership(&self.file, self.ownership, self.ownership.mode)
            .map_err(Refusal::because("give the file to the program"))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            // Where even this fails, the file stays half written; the host was told that it failed.
            let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Makes a new file and the folders that lead to it. What exists is not touched.
pub(crate) fn create(
    base: impl AsFd,
    path: &GuestPath,
    ownership: Ownership,
) -> Result<NewFile, Refusal> {
    let refusal = |error| Refusal::because(format_args!("make `{path}`"))(error);
    let (folder, name) = walk(base, path, Some(ownership)).map_err(refusal)?;
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::NOFOLLOW
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let file =
        rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR).map_err(refusal)?;
    Ok(NewFile { file: file.into(), ownership, folder, name: name.to_owned(), kept: false })
}

/// Makes a folder at the top, where there is nothing yet.
pub(crate) fn make_folder(
    base: impl AsFd,
    name: &str,
    ownership: Ownership,
) -> Result<(), Refusal> {
    let refusal = |error| Refusal::because(format_args!("make `{name}`"))(error);
    match rustix::fs::mkdirat(&base, name, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(()),
        Err(error) => return Err(refusal(error)),
    }
    let made = open_folder(&base, name).map_err(refusal)?;
    set_ownership(&made, ownership, Mode::from_raw_mode(0o755)).map_err(refusal)
}

/// Opens a regular file of at most so many bytes.
pub(crate) fn open(
    base: impl AsFd,
    path: &GuestPath,
    most_bytes: u64,
) -> Result<std::io::Take<File>, Refusal> {
    let refusal = |error| Refusal::because(format_args!("open `{path}`"))(error);
    let (folder, name) = walk(base, path, None).map_err(refusal)?;
    // Not blocking, and no terminal: a pipe or a device must not stop the agent. It is looked at
    // after it was opened, so that it cannot be another one.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(refusal)?;
    let stat = rustix::fs::fstat(&file).map_err(refusal)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::new(format_args!("`{path}` is not a regular file")));
    }
    let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if bytes > most_bytes {
        return Err(Refusal::new(format_args!(
            "`{path}` has {bytes} bytes; {most_bytes} were asked for at most"
        )));
    }
    Ok(File::from(file).take(most_bytes))
}

/// The regular files below a folder, or all below the base, sorted. A folder that is not there has
/// none.
pub(crate) fn list(
    base: impl AsFd,
    folder: Option<&GuestPath>,
    most: u32,
) -> Result<FromGuest, Refusal> {
    let mut listing = Listing {
        files: Vec::new(),
        others: Vec::new(),
        more_others: 0,
        most: usize::try_from(most).unwrap_or(MOST_FILES).min(MOST_FILES),
        looked_at: 0,
    };
    let opened = match folder {
        Some(folder) => {
            walk(base, folder, None).and_then(|(parent, name)| open_folder(&parent, name))
        }
        None => open_folder(base, "."),
    };
    let folder = folder.map_or(".", GuestPath::as_str);
    match opened {
        Ok(opened) => listing.enter(opened, ""),
        Err(Errno::NOENT) => {}
        Err(Errno::NOTDIR) => listing.note(folder, "is not a folder"),
        Err(error) => return Err(Refusal::because(format_args!("list `{folder}`"))(error)),
    }
    Ok(listing.into_message())
}

/// Goes to the folder in which the path's last part is. With an ownership, folders that are missing
/// are made.
fn walk(
    base: impl AsFd,
    path: &GuestPath,
    make: Option<Ownership>,
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
    // A path has at least one part.
    Err(Errno::INVAL)
}

/// Opens a folder, and never a link to one. What it is, is looked at after it was opened: asked with
/// `O_DIRECTORY`, gVisor follows a link in spite of `O_NOFOLLOW`.
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

fn set_ownership(of: impl AsFd, ownership: Ownership, mode: Mode) -> Result<(), Errno> {
    // In this order: what belongs to somebody else is not ours to change.
    rustix::fs::fchmod(&of, mode)?;
    if let Some((user, group)) = ownership.owner {
        rustix::fs::fchown(&of, Some(user), Some(group))?;
    }
    Ok(())
}

struct Listing {
    files: Vec<FoundFile>,
    others: Vec<String>,
    more_others: usize,
    most: usize,
    looked_at: usize,
}

impl Listing {
    /// Depth is bounded by the parts that a path may have: a deeper folder is named and left.
    fn enter(&mut self, folder: OwnedFd, prefix: &str) {
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
            if self.looked_at >= MOST_ENTRIES {
                self.note(prefix, "holds more than was looked at");
                break;
            }
            self.looked_at += 1;
            names.push(name.to_owned());
        }
        drop(entries);
        names.sort();
        for name in names {
            self.look_at(&folder, prefix, &name);
        }
    }

    fn look_at(&mut self, folder: &OwnedFd, prefix: &str, name: &CStr) {
        let text = name.to_string_lossy();
        let shown = if prefix.is_empty() { text.into_owned() } else { format!("{prefix}/{text}") };
        let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => return self.note(&shown, &format!("cannot be looked at: {error}")),
        };
        let path = match name.to_str().map(|_| shown.parse::<GuestPath>()) {
            Ok(Ok(path)) => path,
            _ => return self.note(&shown, "has a name that is too long, too deep or not plain"),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if self.files.len() >= self.most => {
                self.note(&shown, "is one file too many");
            }
            FileType::RegularFile => {
                let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
                self.files.push(FoundFile { path, bytes });
            }
            FileType::Directory => match open_folder(folder, name) {
                Ok(inner) => self.enter(inner, &shown),
                Err(error) => self.note(&shown, &format!("cannot be opened: {error}")),
            },
            FileType::Symlink => self.note(&shown, "is a link"),
            FileType::Fifo => self.note(&shown, "is a pipe"),
            FileType::Socket => self.note(&shown, "is a socket"),
            FileType::CharacterDevice | FileType::BlockDevice => self.note(&shown, "is a device"),
            FileType::Unknown => self.note(&shown, "is of an unknown kind"),
        }
    }

    fn note(&mut self, what: &str, words: &str) {
        if self.others.len() >= MOST_OTHERS {
            self.more_others += 1;
            return;
        }
        let end = what.floor_char_boundary(200);
        let short = what.get(..end).unwrap_or_default();
        let dots = if end < what.len() { "…" } else { "" };
        self.others.push(format!("`{}{dots}` {words}", short.escape_debug()));
    }

    fn into_message(mut self) -> FromGuest {
        if self.more_others > 0 {
            self.others.push(format!("{} more", self.more_others));
        }
        // Folders were walked in order, but `a-b` sorts before `a/b`.
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        FromGuest::Listing { files: self.files, others: self.others }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
