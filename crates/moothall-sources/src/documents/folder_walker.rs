//! Lists and reads the files of a folder, within limits and without leaving the folder.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use moothall_core::evidence::DocumentKind;
use rustix::fs::{Mode, OFlags};

use moothall_workspace::{MountPolicy, open_confined};

/// Limit on directory entries visited.
const MAX_ENTRIES: usize = 5_000;
/// Limit on files read.
pub const MAX_FILES: usize = 200;
/// Limit on folder nesting.
const MAX_DEPTH: usize = 6;
/// Size limits of one text file and one PDF.
const MAX_TEXT_BYTES: u64 = 4 << 20;
const MAX_PDF_BYTES: u64 = 16 << 20;
/// Limit on the total size of all files.
const MAX_BYTES: u64 = 48 << 20;
/// How many unsupported files are named in the report.
const MAX_LISTED_UNSUPPORTED: usize = 5;

#[derive(Debug)]
pub(crate) struct DocumentFile {
    /// Path relative to the folder, with `/` as the separator.
    pub(crate) name: String,
    pub(crate) kind: DocumentKind,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct FolderWalkResult {
    pub(crate) files: Vec<DocumentFile>,
    pub(crate) missing: Vec<String>,
}

struct FolderWalker {
    root: OwnedFd,
    collector: DocumentCollector,
    entries: usize,
    links: usize,
}

/// Collects files within the limits.
#[derive(Default)]
struct DocumentCollector {
    walked: FolderWalkResult,
    bytes: u64,
    unsupported: Vec<String>,
    is_full: bool,
}

/// Size limit of one file.
pub(crate) fn size_limit(kind: DocumentKind) -> u64 {
    if kind == DocumentKind::Pdf { MAX_PDF_BYTES } else { MAX_TEXT_BYTES }
}

/// Collects files that are in memory, with the same limits as those of a folder.
pub(crate) fn collect(files: BTreeMap<String, Vec<u8>>) -> FolderWalkResult {
    let mut collector = DocumentCollector::default();
    for (name, bytes) in files {
        collector.add(name, |_, max_bytes| within(bytes, max_bytes));
    }
    collector.finish()
}

/// Reads the documents of a folder, sorted by name. Skips names that start with a dot and does not
/// follow symbolic links.
pub(crate) fn walk(root: &Path) -> io::Result<FolderWalkResult> {
    // The folder itself may be given through symbolic links; nothing below it may point outside.
    let root = fs_err::canonicalize(root)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(&root, flags, Mode::empty())?;
    let mut walk = FolderWalker {
        root: folder,
        collector: DocumentCollector::default(),
        entries: 0,
        links: 0,
    };
    walk.folder(&root, "", 0)?;
    let FolderWalker { mut collector, links, .. } = walk;
    if links > 0 {
        let message = format!("documents: {links} symbolic links were not followed");
        collector.walked.missing.push(message);
    }
    Ok(collector.finish())
}

impl DocumentCollector {
    /// Adds a file. `read` gets its name and maximum size.
    fn add(&mut self, name: String, read: impl FnOnce(&str, u64) -> Result<Vec<u8>, String>) {
        let Some(kind) = DocumentKind::of_name(&name) else {
            self.unsupported.push(name);
            return;
        };
        if self.walked.files.len() >= MAX_FILES || self.bytes >= MAX_BYTES {
            self.is_full = true;
            return;
        }
        match read(&name, size_limit(kind).min(MAX_BYTES - self.bytes)) {
            Ok(bytes) => {
                self.bytes += bytes.len() as u64;
                self.walked.files.push(DocumentFile { name, kind, bytes });
            }
            Err(why) => self.walked.missing.push(format!("{name}: {why}")),
        }
    }

    fn finish(self) -> FolderWalkResult {
        let Self { mut walked, unsupported, is_full, .. } = self;
        if !unsupported.is_empty() {
            let more = unsupported.len().saturating_sub(MAX_LISTED_UNSUPPORTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let shown = unsupported[..unsupported.len().min(MAX_LISTED_UNSUPPORTED)].join(", ");
            let message = format!("documents: unsupported files were skipped: {shown}{more}");
            walked.missing.push(message);
        }
        if is_full {
            walked.missing.push(format!(
                "documents: the folder exceeds the limit ({MAX_FILES} files, {} MiB)",
                MAX_BYTES >> 20
            ));
        }
        walked
    }
}

impl FolderWalker {
    fn folder(&mut self, path: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs_err::read_dir(path)? {
            let entry = entry?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.collector.is_full = true;
                break;
            }
            entries.push((entry.file_name(), entry.file_type()?));
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, kind) in entries {
            let Some(plain) = name.to_str() else {
                let shown = name.to_string_lossy();
                self.collector
                    .walked
                    .missing
                    .push(format!("{prefix}{shown}: file name is not UTF-8"));
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
                    self.collector
                        .walked
                        .missing
                        .push(format!("{below}: folder is nested too deeply"));
                } else if let Err(error) =
                    self.folder(&path.join(plain), &format!("{below}/"), depth + 1)
                {
                    self.collector.walked.missing.push(format!("{below}: {}", error.kind()));
                }
            } else if kind.is_file() {
                let root = &self.root;
                self.collector.add(below, |name, max_bytes| read(root, name, max_bytes));
            }
        }
        Ok(())
    }
}

/// Reads a file below `root`. Refuses a path with a symbolic link in it, which may have been
/// created since the folder was listed.
fn read(root: &OwnedFd, name: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open_confined(root, name, flags, MountPolicy::Crossed)
        .map_err(|error| format!("cannot open the file ({})", io::Error::from(error).kind()))?;
    let file = std::fs::File::from(opened);
    let is_file = file.metadata().is_ok_and(|known| known.is_file());
    if !is_file {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot read the file ({})", error.kind()))?;
    within(bytes, max_bytes)
}

fn within(bytes: Vec<u8>, max_bytes: u64) -> Result<Vec<u8>, String> {
    match bytes.len() as u64 > max_bytes {
        true => Err(format!("file is larger than {max_bytes} bytes")),
        false => Ok(bytes),
    }
}
