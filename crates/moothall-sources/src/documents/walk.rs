//! The files of a folder, within bounds, and none from outside of it.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use moothall_core::evidence::DocumentKind;
use rustix::fs::{Mode, OFlags};

use moothall_workspace::{Mounts, open_confined};

/// Entries that are looked at.
const MAX_ENTRIES: usize = 5_000;
/// Files that are read.
const MAX_FILES: usize = 200;
/// Folders in folders.
const MAX_DEPTH: usize = 6;
/// The longest text, and the longest PDF.
const MAX_TEXT_BYTES: u64 = 4 << 20;
const MAX_PDF_BYTES: u64 = 16 << 20;
/// All files together.
const MAX_BYTES: u64 = 48 << 20;
/// Files of other kinds are named, at most so many.
const MAX_OTHERS: usize = 5;

/// A file that was read.
#[derive(Debug)]
pub(super) struct File {
    /// Its path below the folder, with `/`.
    pub(super) name: String,
    pub(super) kind: DocumentKind,
    pub(super) bytes: Vec<u8>,
}

/// What a folder holds.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) files: Vec<File>,
    pub(super) missing: Vec<String>,
}

struct Walk {
    root: OwnedFd,
    walked: Walked,
    entries: usize,
    bytes: u64,
    links: usize,
    others: Vec<String>,
    is_full: bool,
}

/// Reads the documents of a folder, in the order of their names. Names that begin with a dot are
/// skipped, and links are not followed.
pub(super) fn walk(root: &Path) -> io::Result<Walked> {
    // The user may name a folder through links; nothing below it may lead out again.
    let root = fs_err::canonicalize(root)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(&root, flags, Mode::empty())?;
    let mut walk = Walk {
        root: folder,
        walked: Walked::default(),
        entries: 0,
        bytes: 0,
        links: 0,
        others: Vec::new(),
        is_full: false,
    };
    walk.folder(&root, "", 0)?;
    let Walk { mut walked, links, others, is_full, .. } = walk;
    if links > 0 {
        walked.missing.push(format!("documents: {links} symbolic links were not followed"));
    }
    if !others.is_empty() {
        let more = others.len().saturating_sub(MAX_OTHERS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = others[..others.len().min(MAX_OTHERS)].join(", ");
        walked.missing.push(format!("documents: files of other kinds are not read: {shown}{more}"));
    }
    if is_full {
        walked.missing.push(format!(
            "documents: the folder holds more than is read ({MAX_FILES} files, {} MiB)",
            MAX_BYTES >> 20
        ));
    }
    Ok(walked)
}

impl Walk {
    fn folder(&mut self, path: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs_err::read_dir(path)? {
            let entry = entry?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.is_full = true;
                break;
            }
            entries.push((entry.file_name(), entry.file_type()?));
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, kind) in entries {
            let Some(plain) = name.to_str() else {
                let shown = name.to_string_lossy();
                self.walked.missing.push(format!("{prefix}{shown}: its name is not UTF-8"));
                continue;
            };
            if plain.starts_with('.') {
                continue;
            }
            let below = format!("{prefix}{plain}");
            if kind.is_symlink() {
                self.links += 1;
            } else if kind.is_dir() {
                if depth + 1 > MAX_DEPTH {
                    self.walked.missing.push(format!("{below}: folders this deep are not read"));
                } else if let Err(error) =
                    self.folder(&path.join(plain), &format!("{below}/"), depth + 1)
                {
                    self.walked.missing.push(format!("{below}: {}", error.kind()));
                }
            } else if kind.is_file() {
                self.file(below);
            }
        }
        Ok(())
    }

    fn file(&mut self, name: String) {
        let Some(kind) = DocumentKind::of_name(&name) else {
            self.others.push(name);
            return;
        };
        if self.walked.files.len() >= MAX_FILES || self.bytes >= MAX_BYTES {
            self.is_full = true;
            return;
        }
        let most = if kind == DocumentKind::Pdf { MAX_PDF_BYTES } else { MAX_TEXT_BYTES };
        let most = most.min(MAX_BYTES - self.bytes);
        match read(&self.root, &name, most) {
            Ok(bytes) => {
                self.bytes += bytes.len() as u64;
                self.walked.files.push(File { name, kind, bytes });
            }
            Err(why) => self.walked.missing.push(format!("{name}: {why}")),
        }
    }
}

/// Reads a file below a folder. What became a link, or lies behind one, since the folder was listed
/// is not opened.
fn read(root: &OwnedFd, name: &str, most: u64) -> Result<Vec<u8>, String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open_confined(root, name, flags, Mounts::Crossed)
        .map_err(|error| format!("it cannot be opened ({})", io::Error::from(error).kind()))?;
    let file = std::fs::File::from(opened);
    let is_file = file.metadata().is_ok_and(|known| known.is_file());
    if !is_file {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("it cannot be read ({})", error.kind()))?;
    if bytes.len() as u64 > most {
        return Err(format!("it is longer than {most} bytes"));
    }
    Ok(bytes)
}
