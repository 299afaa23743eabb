//! Folder trees: lists them with hashes and normalises modes and times.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use moothall_core::Sha256Hex;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::SandboxError;

/// Maximum folder depth. Guards against loops; packages stay far below it.
const DEEPEST: usize = 64;

/// A file, folder or link below a root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TreeEntry {
    pub(crate) path: String,
    #[serde(flatten)]
    pub(crate) node: TreeNode,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum TreeNode {
    Folder {
        mode: u32,
    },
    File {
        mode: u32,
        bytes: u64,
        sha256: Sha256Hex,
    },
    /// Symbolic links are never followed.
    Link {
        target: String,
    },
    /// A device, pipe or socket. Images never contain one.
    Other,
}

/// Lists everything below `root`, sorted by path.
pub(crate) fn list(root: &Path) -> Result<Vec<TreeEntry>, SandboxError> {
    let mut entries = Vec::new();
    walk(root, "", 0, &mut |path, relative| {
        let metadata = path.symlink_metadata()?;
        let mode = metadata.mode() & 0o7777;
        let node = if metadata.is_dir() {
            TreeNode::Folder { mode }
        } else if metadata.is_symlink() {
            let target = fs_err::read_link(path)?;
            TreeNode::Link { target: target.to_string_lossy().into_owned() }
        } else if metadata.is_file() {
            TreeNode::File { mode, bytes: metadata.len(), sha256: hash_file(path)? }
        } else {
            TreeNode::Other
        };
        entries.push(TreeEntry { path: relative.to_owned(), node });
        Ok(())
    })
    .map_err(SandboxError::host("cannot list the root file system"))?;
    entries.sort();
    Ok(entries)
}

/// Normalises modes and times for reproducible images: readable by everyone, writable only by the
/// owner, no set-user-id bits, and timestamps at the epoch.
pub(crate) fn normalise(root: &Path) -> Result<(), SandboxError> {
    let level = |path: &Path| {
        let metadata = path.symlink_metadata()?;
        if !metadata.is_symlink() {
            let executable = metadata.is_dir() || metadata.mode() & 0o111 != 0;
            let mode = if executable { 0o755 } else { 0o644 };
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        }
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let times = Timestamps { last_access: never, last_modification: never };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    };
    walk(root, "", 0, &mut |path, _| level(path))
        .and_then(|()| level(root))
        .map_err(SandboxError::host("cannot normalise the root file system"))
}

/// Hashes a file as a stream, without loading it into memory.
pub(crate) fn hash_file(path: &Path) -> std::io::Result<Sha256Hex> {
    let mut file = fs_err::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    Ok(Sha256Hex::from_bytes(hasher.finalize().into()))
}

/// Removes matching folders anywhere below `root` and returns how many.
pub(crate) fn remove_folders_named(
    root: &Path,
    is_wanted: &dyn Fn(&str) -> bool,
) -> std::io::Result<usize> {
    let mut found = Vec::new();
    walk(root, "", 0, &mut |path, relative| {
        let name = relative.rsplit('/').next().unwrap_or(relative);
        if is_wanted(name) && path.symlink_metadata()?.is_dir() {
            found.push(path.to_owned());
        }
        Ok(())
    })?;
    // `walk` visits inner folders before outer ones.
    for folder in &found {
        fs_err::remove_dir_all(folder)?;
    }
    Ok(found.len())
}

/// Visits everything below `folder`, each folder after its content. Links are not followed.
pub(crate) fn walk(
    folder: &Path,
    relative: &str,
    depth: usize,
    visit: &mut dyn FnMut(&Path, &str) -> std::io::Result<()>,
) -> std::io::Result<()> {
    if depth > DEEPEST {
        return Err(std::io::Error::other(format!("`{relative}` is nested too deeply")));
    }
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| {
            std::io::Error::other(format!(
                "the name of `{}` is not valid UTF-8",
                entry.path().display()
            ))
        })?;
        let below =
            if relative.is_empty() { name.to_owned() } else { format!("{relative}/{name}") };
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &below, depth + 1, visit)?;
        }
        visit(&entry.path(), &below)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
