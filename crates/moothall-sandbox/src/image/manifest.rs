//! An image's manifest: everything that can be said about it, and so its identity.

use std::collections::BTreeMap;
use std::path::Path;

use moothall_core::{Sha256Hex, canonical_json};
use serde::{Deserialize, Serialize};

/// The only form there is so far. A reader refuses others.
pub(super) const FORMAT: u32 = 1;

/// What `manifest.json` holds. Nothing in it differs between two builds of the same packages with the
/// same recipe and the same tools, so the hash of its bytes names the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The form of this file.
    pub format: u32,
    /// The image's name.
    pub name: String,
    /// The hash of its recipe.
    pub recipe: Sha256Hex,
    /// The Debian release of its packages.
    pub suite: String,
    /// The kernel's release, such as `6.1.0-54-cloud-amd64`.
    pub kernel: String,
    /// Its packages by name, the kernel's among them.
    pub packages: Vec<Package>,
    /// Top-level modules that Python finds beyond its standard library, by name.
    pub python_modules: Vec<String>,
    /// Versions of the programs that made it.
    pub tools: BTreeMap<String, String>,
    /// Its files by path, this one left out.
    pub files: Vec<FileEntry>,
    /// Bytes of all files below `root/`; their list is a file of its own.
    pub root_bytes: u64,
}

/// A Debian package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version, as Debian spells it.
    pub version: String,
}

/// A file of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its name in the image's folder.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// The hash of its bytes.
    pub sha256: Sha256Hex,
}

impl Manifest {
    /// The bytes of the file: canonical JSON and a line break.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let mut text = canonical_json(self).map_err(|error| error.to_string())?;
        text.push('\n');
        Ok(text.into_bytes())
    }

    /// Reads a manifest whose bytes have the hash that the folder is named by.
    pub(super) fn from_bytes(bytes: &[u8], named: Sha256Hex) -> Result<Self, String> {
        if Sha256Hex::of(bytes) != named {
            return Err("its manifest was changed".to_owned());
        }
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("its manifest cannot be read: {error}"))?;
        if manifest.format != FORMAT {
            return Err(format!(
                "its manifest has format {}, and this version of moothall reads {FORMAT}",
                manifest.format
            ));
        }
        // The names become paths; ours have no folders in them.
        let is_name = |path: &str| Path::new(path).file_name() == Some(path.as_ref());
        if let Some(file) = manifest.files.iter().find(|file| !is_name(&file.path)) {
            return Err(format!("its manifest lists `{}`", file.path));
        }
        Ok(manifest)
    }

    /// The entry of a file.
    pub(super) fn file(&self, path: &str) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl Package {
    /// Reads the name of a file in the package cache: `name_version_architecture.deb`, with the
    /// colon of a version written as `%3a`.
    pub(super) fn of_file_name(file_name: &str) -> Option<Self> {
        let mut parts = file_name.strip_suffix(".deb")?.split('_');
        let (name, version, _architecture) = (parts.next()?, parts.next()?, parts.next()?);
        let whole = parts.next().is_none() && !name.is_empty() && !version.is_empty();
        whole.then(|| Self { name: name.to_owned(), version: version.replace("%3a", ":") })
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
