//! The files of a workspace, for checks that run on all of them.

use std::collections::BTreeMap;

use moothall_core::drafts::{PathFault, RelPath, VIEW};
use moothall_core::gate::{Check, Policy};
use rustix::fs::{self as sys, AtFlags, FileType};

use super::error::DraftError;
use super::workspace::TreeFile;
use super::workspace::Workspace;

/// The most files and bytes that are handed to a sandbox, and the most names that are looked at.
const MOST_FILES: usize = 2_000;
const MOST_BYTES: usize = 24 << 20;
const MOST_NAMES: usize = 50_000;

impl Workspace {
    /// All regular files that a check wants. A tree that is too large is refused and never cut.
    pub(super) fn tree(
        &self,
        policy: &Policy,
        check: &Check,
    ) -> Result<BTreeMap<RelPath, TreeFile>, DraftError> {
        let mut files = BTreeMap::new();
        let mut bytes = 0;
        for path in self.names(&|path| policy.leaves_out(check, path))? {
            if !policy.hands_over(check, &path) {
                continue;
            }
            let Some(file) = self.read_any(&path, MOST_BYTES)? else { continue };
            bytes += file.bytes.len();
            files.insert(path, file);
            if files.len() > MOST_FILES || bytes > MOST_BYTES {
                let most = MOST_BYTES >> 20;
                return Err(refused(format!(
                    "more than {MOST_FILES} files or {most} MiB: name fewer `files` in the check"
                )));
            }
        }
        Ok(files)
    }

    /// The names of all regular files, in order. Links, devices and folders of version control are
    /// left out, and folders that are `left_out` as a whole are not walked through.
    pub(super) fn names(
        &self,
        left_out: &dyn Fn(&RelPath) -> bool,
    ) -> Result<Vec<RelPath>, DraftError> {
        let mut names = Vec::new();
        let mut looked_at = 0;
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for (name, kind) in self.entries(&folder)? {
                looked_at += 1;
                if looked_at > MOST_NAMES {
                    return Err(refused(format!("more than {MOST_NAMES} names in the workspace")));
                }
                let text = match folder.is_empty() {
                    true => name,
                    false => format!("{folder}/{name}"),
                };
                let path = match RelPath::parse(&text) {
                    // The view is made of the drafts; it is no part of what they are made for.
                    Ok(path) if path.as_str() != VIEW => path,
                    Ok(_) | Err(PathFault::Reserved) => continue,
                    Err(_) => return Err(refused(format!("{text:?} is a name nobody can draft"))),
                };
                match kind {
                    FileType::Directory => {
                        let inside = RelPath::parse(&format!("{text}/x"));
                        if !inside.is_ok_and(|inside| left_out(&inside)) {
                            folders.push(text);
                        }
                    }
                    FileType::RegularFile => names.push(path),
                    _ => {}
                }
            }
        }
        names.sort();
        Ok(names)
    }

    fn entries(&self, folder: &str) -> Result<Vec<(String, FileType)>, DraftError> {
        let what = "a folder of the workspace cannot be listed";
        let cannot = |error: rustix::io::Errno| DraftError::io(what)(error.into());
        let Some(opened) = self.folder_at(folder).map_err(cannot)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for entry in sys::Dir::read_from(&opened).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Not every file system says what an entry is.
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let flags = AtFlags::SYMLINK_NOFOLLOW;
                    let stat = sys::statat(&opened, entry.file_name(), flags).map_err(cannot)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                kind => kind,
            };
            if !matches!(name.as_str(), "." | "..") {
                found.push((name, kind));
            }
        }
        Ok(found)
    }
}

fn refused(words: String) -> DraftError {
    DraftError::Input(words)
}
