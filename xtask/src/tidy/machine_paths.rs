//! Nothing in the tree may work on one machine only: no paths of somebody's disk, no package
//! registry by host name (whoever builds behind a mirror has configured it; a host name in a script
//! goes around that).
//!
//! The patterns are put together from halves so that this file does not trip over itself.

use super::{Level, Problem};
use crate::tree::Tree;

pub(crate) const ID: &str = "machine-paths";

/// Folders that exist on a developer's machine and nowhere else.
const FOLDERS: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/")];
/// Followed by a user's name. Examples and tests that need one use `ada`, who has no machine here.
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

/// Written by package managers, which put the registry in.
const LOCK_FILES: &[&str] = &["Cargo.lock", "package-lock.json"];

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.texts() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_lock_file = LOCK_FILES.contains(&name);
        for (index, line) in text.lines().enumerate() {
            let host =
                HOSTS.iter().find(|host| !is_lock_file && line.contains(*host)).map(|host| {
                    (
                        format!("names the package registry `{host}`"),
                        "name the package and let the package manager find it",
                    )
                });
            let folder = machine_path(line).map(|folder| {
                (
                    format!("names `{folder}…`, a path of one machine"),
                    "use a relative path, `$HOME` or `~`; an example's user is `ada`",
                )
            });
            problems.extend(host.into_iter().chain(folder).map(|(message, hint)| Problem {
                path: path.to_owned(),
                line: Some(index + 1),
                rule: ID,
                level: Level::Fail,
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

/// What follows each place where `folder` begins a path, and is not the middle of one
/// (`docs/work/`, `https://host/work/`).
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
