//! The project's files in memory, so that tidy's rules are functions of data.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::shell;

/// Every file that git tracks or would track: path with `/` from the root, and its text unless it
/// is binary.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads the tree. New files that are not yet added count too; ignored ones do not.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let listed = shell::read(
            root,
            &["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        )?;
        let mut files = BTreeMap::new();
        for path in listed.split_terminator('\0') {
            let full = root.join(path);
            // A tracked file may be deleted in the work tree, and a link to a folder is not a text.
            if full.is_file() {
                files.insert(path.to_owned(), String::from_utf8(fs_err::read(full)?).ok());
            }
        }
        Ok(Self { files })
    }

    /// All text files, by path.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// All Rust files, by path.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The text of one file, if it is there and is text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether the path is a file or a folder that holds one.
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

/// Whether a Rust file holds tests: a sibling `thing_tests.rs` or anything below a `tests/` folder.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.ends_with("_tests.rs") || path.split('/').any(|part| part == "tests")
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
