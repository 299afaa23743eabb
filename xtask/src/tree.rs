//! Loads the repository's files into memory, which makes tidy's rules pure functions.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::shell;

/// Every file that git tracks or would track: its path relative to the root, with `/`, and its text
/// unless it is binary.
#[derive(Debug, Default)]
pub(crate) struct SourceTree {
    files: BTreeMap<String, Option<String>>,
}

impl SourceTree {
    /// Reads the tree. Includes new files that are not added yet, but not ignored files.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let listed = shell::read(
            root,
            &["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        )?;
        let mut files = BTreeMap::new();
        for path in listed.split_terminator('\0') {
            let full = root.join(path);
            // A tracked file may be deleted in the work tree, and a link to a directory is not a
            // file.
            if full.is_file() {
                files.insert(path.to_owned(), String::from_utf8(fs_err::read(full)?).ok());
            }
        }
        Ok(Self { files })
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The text of one file; `None` if it is missing or binary.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether the path is a file or a directory with files.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(next, _)| next.starts_with(&folder))
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())))
            .collect();
        Self { files }
    }
}

/// Whether a file belongs to tests: `*_tests.rs`, or anything below a `tests/` directory.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.ends_with("_tests.rs") || path.split('/').any(|part| part == "tests")
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
