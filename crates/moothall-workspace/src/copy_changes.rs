//! Finds what an agent changed in its private copy, without running git or following links.
//!
//! No process of the agent is alive when the copy is read. Its names, links and contents are
//! untrusted.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use moothall_core::drafts::RelPath;
use moothall_core::gate::{ChangedFile, EntryContent, EntryKind, FileEntry, TreeNames, shown_path};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::DraftStore;
use super::base_index::{is_generated, join};
use super::error::DraftError;

/// Limits of changed paths that are read, and of names that are reported.
const MAX_CHANGES: usize = 10_000;
const MAX_SHOWN: usize = 20;
/// Marks a directory that hides the one below it.
const OPAQUE: &str = "user.overlay.opaque";

/// Where the changes of a copy are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyFolder {
    /// The upper directory of an overlay.
    Upper(PathBuf),
    /// A full copy.
    Full(PathBuf),
}

/// What an agent changed.
#[derive(Debug, Clone, Default)]
pub struct CopyChanges {
    /// Changed paths, ordered, without version control and ignored files.
    pub files: Vec<ChangedFile>,
    /// Changes in `.git` directories. They are never carried over.
    pub git: GitFolderChanges,
    /// Changed files that git ignores. They stay in the copy.
    pub ignored: ShownPaths,
}

/// A number of paths, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPaths {
    pub count: usize,
    pub first: Vec<String>,
}

impl ShownPaths {
    fn add(&mut self, path: &[u8]) {
        self.count += 1;
        if self.first.len() < MAX_SHOWN {
            self.first.push(shown_path(path));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Changes in `.git` directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitFolderChanges {
    /// Settings, hooks, and everything else that git may run or follow.
    pub settings: ShownPaths,
    /// Commits, branches and the index.
    pub history: ShownPaths,
}

impl CopyChanges {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

impl DraftStore {
    /// Reads the changes of a private copy of this store's workspace.
    pub fn copy_changes(&self, copy: &CopyFolder) -> Result<CopyChanges, DraftError> {
        let workspace = self.options.workspace.clone();
        let mut reader =
            CopyReader { store: self, workspace, found: Vec::new(), out: CopyChanges::default() };
        reader.walk(copy, "").map_err(DraftError::io("cannot read the private copy"))?;
        reader.finish()
    }

    /// The paths that a copy changed, as far as drafts can name them.
    pub fn copy_paths(&self, copy: &CopyFolder) -> Result<BTreeSet<String>, DraftError> {
        let changes = self.copy_changes(copy)?;
        let names = changes.files.into_iter().filter_map(|file| String::from_utf8(file.path).ok());
        Ok(names.collect())
    }
}

struct CopyReader<'a> {
    store: &'a DraftStore,
    workspace: PathBuf,
    /// Changed paths, and where their new version is.
    found: Vec<(String, Option<PathBuf>)>,
    out: CopyChanges,
}

impl CopyReader<'_> {
    /// Everything in the upper directory of an overlay is new or changed, and a character device 0:0
    /// is a deletion. A full copy has everything.
    fn walk(&mut self, copy: &CopyFolder, folder: &str) -> io::Result<()> {
        let (CopyFolder::Upper(root) | CopyFolder::Full(root)) = copy;
        let is_overlay = matches!(copy, CopyFolder::Upper(_));
        let here = root.join(folder);
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&here)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(path) = self.path_of(folder, &name) else { continue };
            names.insert(name.clone());
            let found = fs::symlink_metadata(entry.path())?;
            if self.is_git(&name) {
                self.walk_git(&entry.path(), &path, folder.is_empty())?;
            } else if found.is_dir() {
                if !self.is_left_out_folder(&path) {
                    self.add_if_file(&path)?;
                    self.walk(copy, &path)?;
                } else if is_overlay {
                    self.count_ignored(&entry.path(), &path)?;
                }
            } else if is_overlay && found.file_type().is_char_device() && found.rdev() == 0 {
                self.add_deleted(&path)?;
            } else {
                // A directory of the workspace may be hidden by it.
                if self.is_base_folder(&path) {
                    self.add_deleted(&path)?;
                }
                if is_overlay || !is_same(&self.workspace.join(&path), &entry.path()) {
                    self.add(path, Some(entry.path()))?;
                }
            }
        }
        let hides_others = !is_overlay || (is_opaque(&here) && !folder.is_empty());
        if hides_others { self.add_missing(folder, &names) } else { Ok(()) }
    }

    /// The path of a name. A name that is not UTF-8 cannot be carried over and is reported.
    fn path_of(&mut self, folder: &str, name: &OsStr) -> Option<String> {
        match name.to_str() {
            Some(name) => Some(join(folder, name)),
            None => {
                let mut path = join(folder, "").into_bytes();
                path.extend_from_slice(name.as_bytes());
                let entry = FileEntry { kind: EntryKind::Other, content: EntryContent::Unreadable };
                self.out.files.push(ChangedFile::new(path, None, Some(entry)));
                None
            }
        }
    }

    fn is_git(&self, name: &OsStr) -> bool {
        name.eq_ignore_ascii_case(".git")
    }

    fn is_base_folder(&self, path: &str) -> bool {
        fs::symlink_metadata(self.workspace.join(path)).is_ok_and(|found| found.is_dir())
    }

    /// Whether git ignores a directory as a whole.
    fn is_left_out_folder(&self, path: &str) -> bool {
        let inside = RelPath::parse(&format!("{path}/x"));
        is_generated(path) || inside.is_ok_and(|inside| self.store.workspace.ignores(&inside))
    }

    fn count_ignored(&mut self, at: &Path, path: &str) -> io::Result<()> {
        for entry in fs::read_dir(at)? {
            let entry = entry?;
            let below = format!("{path}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.count_ignored(&entry.path(), &below)?;
            } else {
                self.out.ignored.add(below.as_bytes());
            }
        }
        Ok(())
    }

    /// Lists what changed in a `.git` directory. Only the repository's own index, commits and
    /// branches are expected to change.
    fn walk_git(&mut self, at: &Path, path: &str, is_own: bool) -> io::Result<()> {
        if !fs::symlink_metadata(at)?.is_dir() {
            self.out.git.settings.add(path.as_bytes());
            return Ok(());
        }
        for entry in fs::read_dir(at)? {
            let entry = entry?;
            let below = format!("{path}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.walk_git(&entry.path(), &below, is_own)?;
            } else if !is_same(&self.workspace.join(&below), &entry.path()) {
                let inside = below.strip_prefix(".git/").unwrap_or_default();
                match is_own && is_git_history(inside) {
                    true => self.out.git.history.add(below.as_bytes()),
                    false => self.out.git.settings.add(below.as_bytes()),
                }
            }
        }
        Ok(())
    }

    /// A directory of the copy in place of a file of the workspace.
    fn add_if_file(&mut self, path: &str) -> io::Result<()> {
        match fs::symlink_metadata(self.workspace.join(path)) {
            Ok(found) if !found.is_dir() => self.add(path.to_owned(), None),
            _ => Ok(()),
        }
    }

    /// A path that the copy no longer has; for a directory, every file in it.
    fn add_deleted(&mut self, path: &str) -> io::Result<()> {
        match fs::symlink_metadata(self.workspace.join(path)) {
            Ok(found) if found.is_dir() => self.add_missing(path, &BTreeSet::new()),
            Ok(_) => self.add(path.to_owned(), None),
            Err(_) => Ok(()),
        }
    }

    /// Everything in a directory of the workspace, except for these names.
    fn add_missing(
        &mut self,
        folder: &str,
        except: &BTreeSet<std::ffi::OsString>,
    ) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(self.workspace.join(folder)) else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(text) = name.to_str() else { continue };
            let path = join(folder, text);
            if except.contains(&name) {
                continue;
            }
            if self.is_git(&name) {
                self.out.git.settings.add(path.as_bytes());
            } else if !self.is_base_folder(&path) || !self.is_left_out_folder(&path) {
                self.add_deleted(&path)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: String, at: Option<PathBuf>) -> io::Result<()> {
        if self.found.len() >= MAX_CHANGES {
            return Err(io::Error::other(format!("more than {MAX_CHANGES} changed files")));
        }
        self.found.push((path, at));
        Ok(())
    }

    /// Reads both sides of every changed path.
    fn finish(mut self) -> Result<CopyChanges, DraftError> {
        let cannot = "cannot read the private copy";
        let max_bytes = self.store.policy.limits.max_file_bytes as u64;
        let names = self.names();
        self.found.sort();
        for (path, at) in std::mem::take(&mut self.found) {
            let ignored =
                RelPath::parse(&path).is_ok_and(|path| self.store.workspace.ignores(&path));
            if ignored {
                self.out.ignored.add(path.as_bytes());
                continue;
            }
            let side = |at: &Path| read_entry(at, max_bytes).map_err(DraftError::io(cannot));
            let old = side(&self.workspace.join(&path))?;
            let new = match &at {
                Some(at) => side(at)?,
                None => None,
            };
            if old == new {
                continue;
            }
            let mut file = ChangedFile::new(path.as_bytes(), old, new);
            if file.old.is_none() {
                file.twins = names.twins(&path);
            }
            file.below_head = names.is_below_head(&path);
            self.out.files.push(file);
        }
        self.out.files.sort_by(|one, other| one.path.cmp(&other.path));
        let git = &mut self.out.git;
        for shown in [&mut git.settings, &mut git.history, &mut self.out.ignored] {
            shown.first.sort();
        }
        Ok(self.out)
    }

    /// Names next to the changed paths, in the workspace and in the copy.
    fn names(&self) -> TreeNames {
        let mut names = TreeNames::default();
        let mut folders = BTreeSet::new();
        for (path, _) in &self.found {
            names.add(path);
            let parents = path.match_indices('/').map(|(end, _)| &path[..end]);
            folders.extend(parents.chain([""]).map(str::to_owned));
        }
        for folder in folders {
            let entries = fs::read_dir(self.workspace.join(&folder)).into_iter().flatten();
            for entry in entries.flatten() {
                if let Some(name) = entry.file_name().to_str() {
                    names.add(&join(&folder, name));
                }
            }
        }
        names
    }
}

/// Whether git only stores data in a file below `.git`.
fn is_git_history(path: &str) -> bool {
    let folder = path.split_once('/').map(|(folder, _)| folder);
    match folder {
        Some("objects") => !path.starts_with("objects/info/"),
        Some("refs" | "logs") => true,
        Some(_) => false,
        None => matches!(
            path,
            "index"
                | "HEAD"
                | "ORIG_HEAD"
                | "FETCH_HEAD"
                | "MERGE_HEAD"
                | "COMMIT_EDITMSG"
                | "AUTO_MERGE"
                | "packed-refs"
                | "gc.log"
                | "index.lock"
                | "HEAD.lock"
                | "REBASE_HEAD"
                | "CHERRY_PICK_HEAD"
                | "MERGE_MSG"
                | "MERGE_MODE"
        ),
    }
}

fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 4];
    rustix::fs::lgetxattr(folder, OPAQUE, &mut value[..]).is_ok_and(|length| length > 0)
}

/// Whether both are regular files with the same content, or links with the same target.
fn is_same(one: &Path, other: &Path) -> bool {
    const MAX_BYTES: u64 = 64 << 20;
    match (read_entry(one, MAX_BYTES), read_entry(other, MAX_BYTES)) {
        (Ok(Some(one)), Ok(Some(other))) => {
            matches!(one.content, EntryContent::Bytes(_)) && one == other
        }
        _ => false,
    }
}

/// Reads a path without following links. `None` if it does not exist.
fn read_entry(path: &Path, max_bytes: u64) -> io::Result<Option<FileEntry>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if found.is_symlink() {
        let target = fs::read_link(path)?;
        return Ok(Some(FileEntry::link(target.as_os_str().as_bytes())));
    }
    if found.is_dir() {
        return Ok(None);
    }
    if !found.is_file() {
        let (kind, content) = (EntryKind::Other, EntryContent::Unreadable);
        return Ok(Some(FileEntry { kind, content }));
    }
    let kind = match found.mode() & 0o100 != 0 {
        true => EntryKind::Executable,
        false => EntryKind::File,
    };
    let content = match found.len() > max_bytes {
        true => EntryContent::TooLarge(found.len()),
        false => read_bytes(path, max_bytes).unwrap_or(EntryContent::Unreadable),
    };
    Ok(Some(FileEntry { kind, content }))
}

fn read_bytes(path: &Path, max_bytes: u64) -> io::Result<EntryContent> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(max_bytes + 1).read_to_end(&mut bytes)?;
    let length = bytes.len() as u64;
    Ok(match length > max_bytes {
        true => EntryContent::TooLarge(length),
        false => EntryContent::Bytes(bytes),
    })
}
