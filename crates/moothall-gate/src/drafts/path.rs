//! Validated workspace paths: relative, without special names, and with the same meaning on every
//! file system.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::text::is_unseen;

/// The Linux limit for a path.
const MAX_PATH_BYTES: usize = 4096;
/// The Linux limit for one path component.
const MAX_NAME_BYTES: usize = 255;
/// Programs trust and execute what is in these directories. Refused in code so no policy can
/// allow them.
const RESERVED: &[&str] = &[".git", ".hg", ".svn", ".moothall"];

/// A path below the workspace root: plain components joined by `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(String);

/// Why a text is not a valid [`RelPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// Empty, or longer than file systems support.
    #[error("a path has 1 to 4096 bytes, and each name in it at most 255")]
    Length,
    /// Absolute, or with backslashes.
    #[error("a path is relative to the workspace and its names are joined by `/`")]
    Absolute,
    /// `.`, `..`, an empty component, or one that ends in a dot or a space.
    #[error("no name in a path is empty, `.` or `..`, or ends in a dot or a space")]
    Name,
    /// A control, invisible or bidirectional character, or `:`.
    #[error("a path has no control, invisible or direction-changing characters, and no `:`")]
    Character,
    /// One of the reserved directories.
    #[error("`.git`, `.hg`, `.svn` and `.moothall` are out of bounds")]
    Reserved,
    /// The name of a new file is not in NFC.
    #[error("the name of a new file is in Unicode's composed form (NFC)")]
    NotComposed,
}

impl RelPath {
    /// Parses a path. Later code relies on these checks and does not repeat them.
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        if text.is_empty() || text.len() > MAX_PATH_BYTES {
            return Err(PathFault::Length);
        }
        if text.starts_with('/') || text.contains('\\') {
            return Err(PathFault::Absolute);
        }
        for name in text.split('/') {
            if name.len() > MAX_NAME_BYTES {
                return Err(PathFault::Length);
            }
            if name.is_empty() || name.ends_with(['.', ' ']) {
                return Err(PathFault::Name);
            }
            if name.chars().any(|c| c == ':' || c.is_control() || is_unseen(c)) {
                return Err(PathFault::Character);
            }
            // Some file systems fold case. Some also ignore invisible characters, which are refused
            // above.
            let folded = name.to_lowercase();
            if RESERVED.contains(&folded.as_str()) {
                return Err(PathFault::Reserved);
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// Like [`Self::parse`], for a file that does not exist yet: the name must also be in NFC, so
    /// that it has one spelling.
    pub fn parse_new(text: &str) -> Result<Self, PathFault> {
        let path = Self::parse(text)?;
        if unicode_normalization::is_nfc(text) { Ok(path) } else { Err(PathFault::NotComposed) }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directory (empty at the root) and the file name.
    pub fn split(&self) -> (&str, &str) {
        self.0.rsplit_once('/').unwrap_or(("", &self.0))
    }

    /// The file name.
    pub fn name(&self) -> &str {
        self.split().1
    }

    /// The path as seen by a file system that folds case and compatibility characters, where
    /// `build.rſ` is `build.rs`.
    pub fn folded(&self) -> String {
        folded_name(&self.0)
    }

    /// Whether two different names are the same file on some file systems.
    pub fn is_colliding_name(name: &str, other: &str) -> bool {
        name != other && folded_name(name) == folded_name(other)
    }
}

/// A name as seen by a file system that folds case and compatibility characters.
pub(crate) fn folded_name(text: &str) -> String {
    // Lower-casing can break normalization, so normalize again.
    let lower = text.nfkc().collect::<String>().to_lowercase();
    lower.nfkc().collect()
}

impl TryFrom<String> for RelPath {
    type Error = PathFault;

    fn try_from(text: String) -> Result<Self, PathFault> {
        Self::parse(&text)
    }
}

impl From<RelPath> for String {
    fn from(path: RelPath) -> Self {
        path.0
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
