//! Verifies every byte of an image against its digest.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use moothall_core::Sha256Hex;
use serde::Serialize;

use super::tree::{self, TreeEntry, TreeNode};
use super::{ImageManifest, ImageStore, MANIFEST, ROOT, TREE, read_bounded};
use crate::SandboxError;

/// A difference between an image and its manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageProblem {
    /// Path relative to the image's folder.
    pub path: String,
    pub kind: ImageProblemKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ImageProblemKind {
    /// The file does not exist.
    Missing,
    /// The file is not part of the image.
    Added,
    /// Content, file type, mode or link target differ.
    Changed,
}

impl fmt::Display for ImageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let description = match self.kind {
            ImageProblemKind::Missing => "is missing",
            ImageProblemKind::Added => "does not belong to the image",
            ImageProblemKind::Changed => "was changed",
        };
        write!(f, "{} {description}", self.path)
    }
}

impl ImageStore {
    /// Verifies an image against its digest. An empty list means that it is intact; `Err` means
    /// that there is no image to verify.
    pub fn verify(&self, name: &str) -> Result<Vec<ImageProblem>, SandboxError> {
        let sha256 = self.tag(name)?;
        let folder = self.folder.join(sha256.to_string());
        let changed = |path: &str| problem(path, ImageProblemKind::Changed);
        let bytes = match read_bounded(&folder.join(MANIFEST)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(vec![problem(MANIFEST, ImageProblemKind::Missing)]);
            }
            Err(error) => return Err(SandboxError::host("cannot read the manifest")(error)),
        };
        // If the manifest itself changed, its other entries mean nothing.
        if Sha256Hex::of(&bytes) != sha256 {
            return Ok(vec![changed(MANIFEST)]);
        }
        let (_, manifest) = self.manifest(name)?;
        compare(&folder, &manifest)
    }
}

/// Compares an image folder with its manifest.
pub(crate) fn compare(
    folder: &Path,
    manifest: &ImageManifest,
) -> Result<Vec<ImageProblem>, SandboxError> {
    let mut problems = compare_files(folder, manifest)?;
    let tree_is_known = !problems.iter().any(|problem| problem.path == TREE);
    if manifest.file(TREE).is_some() && tree_is_known {
        problems.extend(compare_tree(folder)?);
    }
    problems.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(problems)
}

/// Reads the image's list of `root/`, sorted by path so that folders come before their content.
pub(crate) fn listed_tree(folder: &Path) -> std::io::Result<Vec<TreeEntry>> {
    let mut listed: Vec<TreeEntry> = serde_json::from_slice(&read_bounded(&folder.join(TREE))?)?;
    listed.sort();
    Ok(listed)
}

/// Compares the files directly in the image's folder.
fn compare_files(
    folder: &Path,
    manifest: &ImageManifest,
) -> Result<Vec<ImageProblem>, SandboxError> {
    let mut problems = Vec::new();
    for file in &manifest.files {
        let path = folder.join(&file.path);
        match path.symlink_metadata() {
            Ok(found) if found.is_file() && found.len() == file.bytes => {
                let sha256 = tree::hash_file(&path)
                    .map_err(SandboxError::host("cannot read an image file"))?;
                if sha256 != file.sha256 {
                    problems.push(problem(&file.path, ImageProblemKind::Changed));
                }
            }
            Ok(_) => problems.push(problem(&file.path, ImageProblemKind::Changed)),
            Err(_) => problems.push(problem(&file.path, ImageProblemKind::Missing)),
        }
    }
    let has_root = manifest.file(TREE).is_some();
    let unread = "cannot list the image folder";
    for entry in fs_err::read_dir(folder).map_err(SandboxError::host(unread))? {
        let name = entry.map_err(SandboxError::host(unread))?.file_name();
        let name = name.to_string_lossy();
        let belongs =
            name == MANIFEST || (name == ROOT && has_root) || manifest.file(&name).is_some();
        if !belongs {
            problems.push(problem(&name, ImageProblemKind::Added));
        }
    }
    Ok(problems)
}

/// Compares everything below `root/`.
fn compare_tree(folder: &Path) -> Result<Vec<ImageProblem>, SandboxError> {
    let expected = listed_tree(folder).map_err(SandboxError::host("cannot read the tree list"))?;
    let root = folder.join(ROOT);
    if !root.is_dir() {
        return Ok(vec![problem(ROOT, ImageProblemKind::Missing)]);
    }
    let mut found: BTreeMap<String, TreeNode> =
        tree::list(&root)?.into_iter().map(|entry| (entry.path, entry.node)).collect();
    let mut problems = Vec::new();
    for entry in expected {
        let path = format!("{ROOT}/{}", entry.path);
        match found.remove(&entry.path) {
            None => problems.push(problem(&path, ImageProblemKind::Missing)),
            Some(node) if node != entry.node => {
                problems.push(problem(&path, ImageProblemKind::Changed));
            }
            Some(_) => {}
        }
    }
    let added = found.into_keys().map(|path| format!("{ROOT}/{path}"));
    problems.extend(added.map(|path| problem(&path, ImageProblemKind::Added)));
    Ok(problems)
}

fn problem(path: &str, kind: ImageProblemKind) -> ImageProblem {
    ImageProblem { path: path.to_owned(), kind }
}
