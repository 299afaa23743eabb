//! The manifest of an image, whose hash is the image's identity.

use std::collections::BTreeMap;
use std::path::Path;

use moothall_core::{Sha256Hex, canonical_json};
use serde::{Deserialize, Serialize};

/// The only format so far. Others are rejected.
pub(crate) const FORMAT: u32 = 1;

/// Content of `manifest.json`. Two builds from the same packages, recipe and tools produce the same
/// bytes, so their hash names the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageManifest {
    /// Format version.
    pub format: u32,
    pub name: String,
    /// Hash of the recipe.
    pub recipe: Sha256Hex,
    /// Debian release of the packages.
    pub suite: String,
    /// Kernel release, such as `6.1.0-54-cloud-amd64`.
    pub kernel: String,
    /// Packages sorted by name, including the kernel.
    pub packages: Vec<DebianPackage>,
    /// Top-level Python modules outside the standard library, sorted by name.
    pub python_modules: Vec<String>,
    /// Versions of the build tools.
    pub tools: BTreeMap<String, String>,
    /// Files sorted by path, without the manifest itself.
    pub files: Vec<FileEntry>,
    /// Total size of the files below `root/`, which are listed in their own file.
    pub root_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebianPackage {
    pub name: String,
    /// Version in Debian's notation.
    pub version: String,
}

/// A file in an image's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    pub path: String,
    pub bytes: u64,
    pub sha256: Sha256Hex,
}

impl ImageManifest {
    /// Canonical JSON followed by a line break.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let mut text = canonical_json(self).map_err(|error| error.to_string())?;
        text.push('\n');
        Ok(text.into_bytes())
    }

    /// Parses a manifest after checking that its hash is `named`.
    pub(crate) fn from_bytes(bytes: &[u8], named: Sha256Hex) -> Result<Self, String> {
        if Sha256Hex::of(bytes) != named {
            return Err("its manifest was changed".to_owned());
        }
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("cannot parse its manifest: {error}"))?;
        if manifest.format != FORMAT {
            return Err(format!(
                "its manifest has unsupported format {} (this version of moothall reads {FORMAT})",
                manifest.format
            ));
        }
        // File names become paths, so they must not contain folders.
        let is_name = |path: &str| Path::new(path).file_name() == Some(path.as_ref());
        if let Some(file) = manifest.files.iter().find(|file| !is_name(&file.path)) {
            return Err(format!("its manifest lists an invalid file name `{}`", file.path));
        }
        Ok(manifest)
    }

    pub(crate) fn file(&self, path: &str) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl DebianPackage {
    /// Parses a file name in the package cache: `name_version_architecture.deb`, with `:` in the
    /// version encoded as `%3a`.
    pub(crate) fn of_file_name(file_name: &str) -> Option<Self> {
        let mut parts = file_name.strip_suffix(".deb")?.split('_');
        let (name, version, _architecture) = (parts.next()?, parts.next()?, parts.next()?);
        let whole = parts.next().is_none() && !name.is_empty() && !version.is_empty();
        whole.then(|| Self { name: name.to_owned(), version: version.replace("%3a", ":") })
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
