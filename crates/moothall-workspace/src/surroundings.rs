//! What is around a draft's file in the workspace, as far as the gate wants to know.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use moothall_core::drafts::RelPath;

use super::workspace::Workspace;

impl Workspace {
    /// Whether a directory above the path has something called `HEAD`. What cannot be looked at
    /// counts as there.
    pub(super) fn below_head(&self, path: &RelPath) -> bool {
        above(path).any(|directory| {
            let head = joined(directory, "HEAD");
            match RelPath::parse(&head) {
                Ok(head) => !matches!(self.read(&head), Ok(None)),
                Err(_) => true,
            }
        })
    }

    /// Whether git ignores the path: by a `.gitignore` beside or above it, or by the repository's own
    /// list. Git itself is not asked, because it obeys settings of the workspace. What cannot be read
    /// counts as ignoring.
    pub(super) fn ignores(&self, path: &RelPath) -> bool {
        let mut rules: Vec<(&str, Gitignore)> = Vec::new();
        // In a worktree `.git` is a file, and the list is elsewhere.
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
        // A directory that is ignored hides all that is in it; the nearest rule wins.
        let whole = path.as_str();
        let ends = whole.match_indices('/').map(|(end, _)| end).chain([whole.len()]);
        for end in ends {
            let is_directory = end < whole.len();
            let said = rules.iter().rev().find_map(|(directory, rules)| {
                let inside = below(&whole[..end], directory)?;
                match rules.matched(inside, is_directory) {
                    Match::None => None,
                    Match::Ignore(_) => Some(true),
                    Match::Whitelist(_) => Some(false),
                }
            });
            if said == Some(true) {
                return true;
            }
        }
        false
    }
}

/// The directories above a path, from the root, which is the empty one.
fn above(path: &RelPath) -> impl Iterator<Item = &str> {
    let whole = path.as_str();
    std::iter::once("").chain(whole.match_indices('/').map(|(end, _)| &whole[..end]))
}

fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// The rest of a path inside of a directory.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() {
        return Some(path);
    }
    path.strip_prefix(directory)?.strip_prefix('/').filter(|rest| !rest.is_empty())
}

fn rules_of(text: &str) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for line in text.lines() {
        // Git skips a line that it cannot read, and so do we.
        if let Err(error) = builder.add_line(None, line) {
            tracing::debug!(%error, "a line of .gitignore is left out");
        }
    }
    builder.build().ok()
}
