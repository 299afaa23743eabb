//! The files of a workspace as they were when an agent began to work on a private copy.
//!
//! A file that a person changed since then is recognized by its inode, size and times: no program
//! can set the change time of a file back.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use fs_err as fs;
use moothall_core::drafts::RelPath;
use moothall_core::gate::is_build_output;
use serde::{Deserialize, Serialize};

/// File systems record times with the resolution of the kernel's tick.
const TICK_NS: i64 = 20_000_000;

/// What identifies an unchanged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    inode: u64,
    size: u64,
    mode: u32,
    modified_ns: i64,
    changed_ns: i64,
}

impl FileStamp {
    fn of(found: &std::fs::Metadata) -> Self {
        let ns =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            inode: found.ino(),
            size: found.size(),
            mode: found.mode(),
            modified_ns: ns(found.mtime(), found.mtime_nsec()),
            changed_ns: ns(found.ctime(), found.ctime_nsec()),
        }
    }
}

/// The files of a workspace at one moment, without version control and build output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseIndex {
    files: BTreeMap<String, FileStamp>,
    /// The commit and branch of the workspace, if it is a git repository.
    head: Option<String>,
}

/// Tells a running [`BaseIndex::read`] that the agent has started.
#[derive(Debug, Default)]
pub struct AgentStart(AtomicI64);

impl AgentStart {
    pub fn now(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        self.0.store(now, Ordering::Release);
    }

    /// Whether a file may have changed after the agent started.
    fn is_before(&self, stamp: &FileStamp) -> bool {
        let start = self.0.load(Ordering::Acquire);
        start != 0 && stamp.changed_ns >= start.saturating_sub(TICK_NS)
    }
}

impl BaseIndex {
    /// Reads the index of a workspace. A file that may have changed between the start of the agent
    /// and its turn in this walk is left out, so a change by the agent counts as a conflict.
    pub fn read(workspace: &Path, start: &AgentStart) -> io::Result<Self> {
        let mut index = Self { files: BTreeMap::new(), head: git_head(workspace) };
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(workspace.join(&folder)) {
                Ok(entries) => entries,
                // Removed in the meantime, or not readable for the agent either.
                Err(_) if !folder.is_empty() => continue,
                Err(error) => return Err(error),
            };
            for entry in entries {
                let Ok(entry) = entry else { continue };
                let name = entry.file_name();
                // Changes to other names are rejected.
                let Ok(name) = std::str::from_utf8(name.as_bytes()) else { continue };
                let path = join(&folder, name);
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    if name != ".git" && !is_generated(&path) {
                        folders.push(path);
                    }
                    continue;
                }
                let Ok(found) = entry.metadata() else { continue };
                let stamp = FileStamp::of(&found);
                if !start.is_before(&stamp) {
                    index.files.insert(path, stamp);
                }
            }
        }
        Ok(index)
    }

    /// Continues with a new index. Paths in `touched` are those that the copy already changed: the
    /// agent knows their old version.
    #[must_use]
    pub fn continued(&self, mut now: Self, touched: &BTreeSet<String>) -> Self {
        for path in touched {
            match self.files.get(path) {
                Some(stamp) => now.files.insert(path.clone(), *stamp),
                None => now.files.remove(path),
            };
        }
        Self { files: now.files, head: self.head.clone() }
    }

    /// Records that these files now have the agent's version.
    pub fn update(&mut self, workspace: &Path, paths: impl IntoIterator<Item = String>) {
        for path in paths {
            match stamp_of(workspace, &path) {
                Some(stamp) => self.files.insert(path, stamp),
                None => self.files.remove(&path),
            };
        }
    }

    /// Whether a file still is what it was, or still does not exist.
    pub fn is_unchanged(&self, workspace: &Path, path: &str) -> bool {
        stamp_of(workspace, path) == self.files.get(path).copied()
    }

    /// Whether the workspace still has the same commit and branch.
    pub fn is_head_unchanged(&self, workspace: &Path) -> bool {
        git_head(workspace) == self.head
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

fn stamp_of(workspace: &Path, path: &str) -> Option<FileStamp> {
    let found = fs::symlink_metadata(workspace.join(path)).ok()?;
    (!found.is_dir()).then(|| FileStamp::of(&found))
}

/// Whether everything in a directory is build output or installed dependencies.
pub(crate) fn is_generated(folder: &str) -> bool {
    RelPath::parse(&format!("{folder}/x")).is_ok_and(|inside| is_build_output(&inside))
}

pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The content of `HEAD` and of the branch it names. Git does not run, because a repository's
/// settings can start programs.
fn git_head(workspace: &Path) -> Option<String> {
    const MAX_BYTES: u64 = 1 << 20;
    let git = workspace.join(".git");
    let read = |path: &Path| {
        let found = fs::symlink_metadata(path).ok()?;
        let is_small = found.is_file() && found.len() <= MAX_BYTES;
        is_small.then(|| fs::read_to_string(path).ok()).flatten()
    };
    let head = read(&git.join("HEAD"))?;
    let Some(branch) = head.trim().strip_prefix("ref: ") else { return Some(head) };
    let is_plain = !branch.starts_with('/') && !branch.split('/').any(|name| name == "..");
    let commit = is_plain.then(|| read(&git.join(branch))).flatten().or_else(|| {
        let packed = read(&git.join("packed-refs"))?;
        packed.lines().find(|line| line.ends_with(&format!(" {branch}"))).map(str::to_owned)
    });
    Some(format!("{head}{}", commit.unwrap_or_default()))
}

#[cfg(test)]
#[path = "base_index_tests.rs"]
mod tests;
