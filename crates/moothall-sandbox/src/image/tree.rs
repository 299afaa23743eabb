//! Folder trees: listed with hashes, and made the same whoever built them.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use moothall_core::Sha256Hex;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::SandboxError;

/// How deep folders may lie. Packages stay far below; a loop would not end.
const DEEPEST: usize = 64;

/// One file, folder or link below a root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct TreeEntry {
    /// Its path, relative to the root.
    pub(super) path: String,
    #[serde(flatten)]
    pub(super) node: Node,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Node {
    Folder {
        mode: u32,
    },
    File {
        mode: u32,
        bytes: u64,
        sha256: Sha256Hex,
    },
    /// A symbolic link. It is never followed.
    Link {
        target: String,
    },
    /// A device, a pipe or a socket: no image has one.
    Other,
}

/// Everything below `root`, by path.
pub(super) fn list(root: &Path) -> Result<Vec<TreeEntry>, SandboxError> {
    let mut entries = Vec::new();
    walk(root, "", 0, &mut |path, relative| {
        let metadata = path.symlink_metadata()?;
        let mode = metadata.mode() & 0o7777;
        let node = if metadata.is_dir() {
            Node::Folder { mode }
        } else if metadata.is_symlink() {
            let target = fs_err::read_link(path)?;
            Node::Link { target: target.to_string_lossy().into_owned() }
        } else if metadata.is_file() {
            Node::File { mode, bytes: metadata.len(), sha256: hash_file(path)? }
        } else {
            Node::Other
        };
        entries.push(TreeEntry { path: relative.to_owned(), node });
        Ok(())
    })
    .map_err(SandboxError::host("a root file system cannot be listed"))?;
    entries.sort();
    Ok(entries)
}

/// Makes modes and times the same for everybody: nothing is writable but by its owner, nothing is
/// set-user-id, everything can be read, and everything is from the beginning of the epoch.
pub(super) fn normalise(root: &Path) -> Result<(), SandboxError> {
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
        .map_err(SandboxError::host("a root file system cannot be made uniform"))
}

/// The hash of a file, without reading it into memory.
pub(super) fn hash_file(path: &Path) -> std::io::Result<Sha256Hex> {
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

/// Removes folders of these names wherever they are below `root`, and says how many.
pub(super) fn remove_folders_named(
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
    // Inner folders come before outer ones.
    for folder in &found {
        fs_err::remove_dir_all(folder)?;
    }
    Ok(found.len())
}

/// Visits everything below `folder`, a folder after what is in it. Links are not followed.
pub(super) fn walk(
    folder: &Path,
    relative: &str,
    depth: usize,
    visit: &mut dyn FnMut(&Path, &str) -> std::io::Result<()>,
) -> std::io::Result<()> {
    if depth > DEEPEST {
        return Err(std::io::Error::other(format!("`{relative}` lies too deep")));
    }
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| {
            std::io::Error::other(format!(
                "`{}` has a name that is not text",
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
