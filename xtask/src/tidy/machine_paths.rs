//! Rejects content that works on one machine only: absolute paths of a developer's disk, and host
//! names of package registries (a host name in a script bypasses a configured mirror).
//!
//! The patterns are concatenated from halves so this file does not match itself.

use super::{ProblemLevel, TidyProblem};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "machine-paths";

/// Directories that exist only on a developer's machine.
const FOLDERS: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/")];
/// Followed by a user name. Examples and tests that need one use `ada`, which is not a real user.
const HOMES: &[&str] = &[concat!("/ho", "me/"), concat!("/Us", "ers/")];

const EXAMPLE_USER: &str = "ada";

const HOSTS: &[&str] = &[
    concat!("deb.", "debian.org"),
    concat!("files.", "pythonhosted.org"),
    concat!("https://", "crates.io/"),
    concat!("index.", "crates.io"),
    concat!("py", "pi.org"),
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("static.", "crates.io"),
];

/// Written by package managers, which insert the registry.
const LOCK_FILES: &[&str] = &["Cargo.lock", "package-lock.json"];

pub(crate) fn check(tree: &SourceTree) -> Vec<TidyProblem> {
    let mut problems = Vec::new();
    for (path, text) in tree.texts() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_lock_file = LOCK_FILES.contains(&name);
        for (index, line) in text.lines().enumerate() {
            let host =
                HOSTS.iter().find(|host| !is_lock_file && line.contains(*host)).map(|host| {
                    (
                        format!("names the package registry `{host}`"),
                        "use the package name and let the package manager resolve it",
                    )
                });
            let folder = machine_path(line).map(|folder| {
                (
                    format!("names `{folder}…`, a machine-specific path"),
                    "use a relative path, `$HOME` or `~`; the example user is `ada`",
                )
            });
            problems.extend(host.into_iter().chain(folder).map(|(message, hint)| TidyProblem {
                path: path.to_owned(),
                line: Some(index + 1),
                rule: ID,
                level: ProblemLevel::Fail,
                message,
                hint: hint.to_owned(),
            }));
        }
    }
    problems
}

fn machine_path(line: &str) -> Option<&'static str> {
    let folder = FOLDERS.iter().find(|folder| starts(line, folder).next().is_some());
    let home = HOMES.iter().find(|home| {
        starts(line, home).any(|after| {
            let user = after.split(|next: char| !next.is_alphanumeric()).next().unwrap_or_default();
            !user.is_empty() && user != EXAMPLE_USER
        })
    });
    folder.or(home).copied()
}

/// The text after each occurrence of `folder` at the start of a path; occurrences inside a longer
/// path (`docs/work/`, `https://host/work/`) are skipped.
fn starts<'a>(line: &'a str, folder: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(folder).filter_map(move |(at, _)| {
        let before = line[..at].chars().next_back();
        let is_middle =
            before.is_some_and(|before| before.is_alphanumeric() || "/.}~-_*".contains(before));
        (!is_middle).then(|| &line[at + folder.len()..])
    })
}

#[cfg(test)]
#[path = "machine_paths_tests.rs"]
mod tests;
