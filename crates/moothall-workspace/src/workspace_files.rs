//! Lists and reads workspace files for checks.

use std::collections::BTreeMap;

use moothall_core::drafts::{PathFault, RelPath, VIEW};
use moothall_core::gate::{Policy, PolicyCheck};
use rustix::fs::{self as sys, AtFlags, FileType};

use super::error::DraftError;
use super::workspace::ConfinedWorkspace;
use super::workspace::TreeFile;

/// Limits for the files and bytes passed to a sandbox, and for the names listed.
const MAX_FILES: usize = 2_000;
const MAX_BYTES: usize = 24 << 20;
const MAX_NAMES: usize = 50_000;

impl ConfinedWorkspace {
    /// All regular files a check asks for. A tree that is too large is refused, never truncated.
    pub(crate) fn tree(
        &self,
        policy: &Policy,
        check: &PolicyCheck,
    ) -> Result<BTreeMap<RelPath, TreeFile>, DraftError> {
        let mut files = BTreeMap::new();
        let mut bytes = 0;
        for path in self.names(&|path| policy.excludes(check, path))? {
            if !policy.includes_file(check, &path) {
                continue;
            }
            let Some(file) = self.read_any(&path, MAX_BYTES)? else { continue };
            bytes += file.bytes.len();
            files.insert(path, file);
            if files.len() > MAX_FILES || bytes > MAX_BYTES {
                let most = MAX_BYTES >> 20;
                return Err(refused(format!(
                    "more than {MAX_FILES} files or {most} MiB: narrow `files` in the check"
                )));
            }
        }
        Ok(files)
    }

    /// The paths of all regular files, sorted. Skips links, devices and version control
    /// directories, and does not descend into directories that are `left_out` as a whole.
    pub(crate) fn names(
        &self,
        left_out: &dyn Fn(&RelPath) -> bool,
    ) -> Result<Vec<RelPath>, DraftError> {
        let mut names = Vec::new();
        let mut looked_at = 0;
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for (name, kind) in self.entries(&folder)? {
                looked_at += 1;
                if looked_at > MAX_NAMES {
                    return Err(refused(format!(
                        "workspace has more than {MAX_NAMES} files and directories"
                    )));
                }
                let text = match folder.is_empty() {
                    true => name,
                    false => format!("{folder}/{name}"),
                };
                let path = match RelPath::parse(&text) {
                    // The export is derived from drafts and is not part of the workspace.
                    Ok(path) if path.as_str() != VIEW => path,
                    Ok(_) | Err(PathFault::Reserved) => continue,
                    Err(_) => {
                        return Err(refused(format!("{text:?} is not a valid path for drafts")));
                    }
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
        let what = "cannot list a directory of the workspace";
        let cannot = |error: rustix::io::Errno| DraftError::io(what)(error.into());
        let Some(opened) = self.folder_at(folder).map_err(cannot)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for entry in sys::Dir::read_from(&opened).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Some file systems do not report the type of an entry.
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

fn refused(message: String) -> DraftError {
    DraftError::Input(message)
}
