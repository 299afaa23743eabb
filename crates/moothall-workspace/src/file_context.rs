//! Workspace context of a draft's file for the gate: ignore rules and nested repositories.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use moothall_core::drafts::RelPath;

use super::workspace::ConfinedWorkspace;

impl ConfinedWorkspace {
    /// Whether a directory above the path contains `HEAD`. Unreadable entries count as present.
    pub(crate) fn below_head(&self, path: &RelPath) -> bool {
        above(path).any(|directory| {
            let head = joined(directory, "HEAD");
            match RelPath::parse(&head) {
                Ok(head) => !matches!(self.read(&head), Ok(None)),
                Err(_) => true,
            }
        })
    }

    /// Whether git ignores the path, by a `.gitignore` in a directory above it or by the
    /// repository's exclude file. Does not run git, because git obeys settings in the workspace.
    /// Unreadable files count as ignoring.
    pub(crate) fn ignores(&self, path: &RelPath) -> bool {
        let mut rules: Vec<(&str, Gitignore)> = Vec::new();
        // In a worktree `.git` is a file, and the exclude file is elsewhere.
        let own = std::iter::once(("", ".git/info", "exclude"));
        let lists = above(path).map(|directory| (directory, directory, ".gitignore"));
        for (of, directory, name) in own.chain(lists) {
            match self.text_at(directory, name) {
                Ok(None) => {}
                Ok(Some(text)) => match rules_of(&text) {
                    Some(read) => rules.push((of, read)),
                    None => return true,
                },
                Err(_) if directory == ".git/info" => {}
                Err(_) => return true,
            }
        }
        // An ignored directory hides everything in it; the nearest rule wins.
        let full_path = path.as_str();
        let ends = full_path.match_indices('/').map(|(end, _)| end).chain([full_path.len()]);
        for end in ends {
            let is_directory = end < full_path.len();
            let ignored = rules.iter().rev().find_map(|(directory, rules)| {
                let inside = below(&full_path[..end], directory)?;
                match rules.matched(inside, is_directory) {
                    Match::None => None,
                    Match::Ignore(_) => Some(true),
                    Match::Whitelist(_) => Some(false),
                }
            });
            if ignored == Some(true) {
                return true;
            }
        }
        false
    }
}

/// The directories above a path, starting with the root (the empty string).
fn above(path: &RelPath) -> impl Iterator<Item = &str> {
    let full_path = path.as_str();
    std::iter::once("").chain(full_path.match_indices('/').map(|(end, _)| &full_path[..end]))
}

fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// The part of a path below a directory.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() {
        return Some(path);
    }
    path.strip_prefix(directory)?.strip_prefix('/').filter(|rest| !rest.is_empty())
}

fn rules_of(text: &str) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for line in text.lines() {
        // Skip invalid lines, as git does.
        if let Err(error) = builder.add_line(None, line) {
            tracing::debug!(%error, "skipping an invalid line of .gitignore");
        }
    }
    builder.build().ok()
}
