//! Redacts local paths from messages that other people read.

use std::path::{Path, PathBuf};

use crate::config::LoadedConfig;

/// Replaces a path.
const HIDDEN: &str = "…";

/// Redacts paths below private directories and files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathRedactor {
    /// Longest first, so a directory is matched before its parent.
    folders: Vec<String>,
}

impl PathRedactor {
    /// Covers the directories of moothall and of its user, and `files`.
    pub(crate) fn of(loaded: &LoadedConfig, files: impl IntoIterator<Item = PathBuf>) -> Self {
        let own = &loaded.locations.folders;
        let folders = [&own.config, &own.data, &own.cache, &own.state].map(Clone::clone);
        let home = loaded.environment.get("HOME").map(PathBuf::from);
        let around = [std::env::current_dir(), std::env::current_exe()].into_iter().flatten();
        let configured = loaded.locations.candidates.iter().map(|one| one.path.clone());
        let all = folders.into_iter().chain(home).chain(around).chain(configured).chain(files);
        Self::from_paths(all.chain([std::env::temp_dir()]))
    }

    pub(crate) fn from_paths(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let real = |path: &Path| fs_err::canonicalize(path).ok();
        let given = folders.into_iter().flat_map(|path| [real(&path), Some(path)]).flatten();
        let is_specific = |path: &PathBuf| path.is_absolute() && path.parent().is_some();
        let mut folders: Vec<String> = given
            .filter(is_specific)
            .map(|path| path.to_string_lossy().trim_end_matches('/').to_owned())
            .collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
        folders.dedup();
        Self { folders }
    }

    /// Replaces all paths below these directories.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, folder)) = self.first_in(rest) {
            shown.push_str(&rest[..at]);
            shown.push_str(HIDDEN);
            let after = &rest[at + folder.len()..];
            rest = &after[after.find(ends_path).unwrap_or(after.len())..];
        }
        shown + rest
    }

    fn first_in(&self, text: &str) -> Option<(usize, &str)> {
        let found = self.folders.iter().filter_map(|folder| {
            let is_whole = |at: &usize| {
                let next = text[at + folder.len()..].chars().next();
                next.is_none_or(|next| next == '/' || ends_path(next))
            };
            let mut positions = text.match_indices(folder.as_str()).map(|(at, _)| at);
            positions.find(is_whole).map(|at| (at, folder.as_str()))
        });
        // The longest of those that match at the same position.
        found.min_by_key(|(at, folder)| (*at, std::cmp::Reverse(folder.len())))
    }
}

fn ends_path(character: char) -> bool {
    character.is_whitespace() || "`'\"<>|,;:()[]{}".contains(character)
}

#[cfg(test)]
#[path = "path_redaction_tests.rs"]
mod tests;
