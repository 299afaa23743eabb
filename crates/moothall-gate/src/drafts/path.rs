//! The only paths that a worker may name: relative, plain, and the same on every file system.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::text::is_unseen;

/// The longest path, as on Linux.
const MAX_PATH_BYTES: usize = 4096;
/// The longest name in it.
const MAX_NAME_BYTES: usize = 255;
/// Folders that belong to programs which obey what is in them. Refused in code, so that no policy
/// can let them through.
const RESERVED: &[&str] = &[".git", ".hg", ".svn", ".moothall"];

/// A path below the root of a workspace: names joined by `/`, none of which means anything but
/// itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(String);

/// Why a text is not such a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// Empty, or longer than any file system takes.
    #[error("a path has 1 to 4096 bytes, and each name in it at most 255")]
    Length,
    /// It starts at a root, a drive, or uses backslashes.
    #[error("a path is relative to the workspace and its names are joined by `/`")]
    Absolute,
    /// `.`, `..`, an empty name, or one that ends in a dot or a space.
    #[error("no name in a path is empty, `.` or `..`, or ends in a dot or a space")]
    Name,
    /// A character that cannot be seen, or that turns the text around it, or `:`.
    #[error("a path has no control, invisible or direction-changing characters, and no `:`")]
    Character,
    /// A folder that other programs obey.
    #[error("`.git`, `.hg`, `.svn` and `.moothall` are out of bounds")]
    Reserved,
    /// The name of a new file could be written in another way.
    #[error("the name of a new file is in Unicode's composed form (NFC)")]
    NotComposed,
}

impl RelPath {
    /// Reads a path. What it refuses, no later check needs to think of.
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
            // Some file systems fold case, and some ignore what cannot be seen; the latter is
            // refused above.
            let folded = name.to_lowercase();
            if RESERVED.contains(&folded.as_str()) {
                return Err(PathFault::Reserved);
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// As [`Self::parse`], for a file that does not exist yet: its name has one spelling.
    pub fn parse_new(text: &str) -> Result<Self, PathFault> {
        let path = Self::parse(text)?;
        if unicode_normalization::is_nfc(text) { Ok(path) } else { Err(PathFault::NotComposed) }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder, empty at the root, and the name in it.
    pub fn split(&self) -> (&str, &str) {
        self.0.rsplit_once('/').unwrap_or(("", &self.0))
    }

    /// The last name.
    pub fn name(&self) -> &str {
        self.split().1
    }

    /// The path as a file system that folds case and compatible characters reads it: `build.rſ` is
    /// `build.rs` there.
    pub fn folded(&self) -> String {
        folded(&self.0)
    }

    /// Whether some file system takes this name and another one for the same.
    pub fn is_twin(name: &str, other: &str) -> bool {
        name != other && folded(name) == folded(other)
    }
}

fn folded(text: &str) -> String {
    // Lower case can leave the normal form, so it is normalised again.
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
