//! `cargo xtask ci`: the part of the gate that needs no servers and no sandboxes, for use before a
//! commit. `--changed` runs only what the changed files can break.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow};
use clap::Args as ClapArgs;

use crate::tidy::{self, edges};
use crate::{shell, web};

/// Tests that need a server, a sandbox or a model are in modules with these names. `.ci/run` runs
/// them.
const REAL_PARTS: &str = "test(/(^|::)(real_[a-z]+|local_model)::/)";

/// Files whose change can break any crate.
const EVERYTHING: &[&str] =
    &["Cargo.toml", "Cargo.lock", "clippy.toml", "rust-toolchain.toml", ".cargo/", ".config/"];

/// Files outside of a crate that the crate embeds.
const EMBEDDED: &[(&str, &str)] =
    &[("images/", "moothall-sandbox"), ("deploy/", "moothall"), ("tools/", "moothall")];

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Run only what the changed files can break: their crates and all crates that depend on them
    #[arg(long)]
    changed: bool,
    /// Compare with this commit; uncommitted changes and commits that are not pushed by default
    #[arg(long, value_name = "COMMIT", requires = "changed")]
    base: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root()?;
    let scope = match args.changed {
        true => Scope::of(&changed_files(&root, args.base.as_deref())?, &crates(&root)?),
        false => Scope { rust: Tests::All, web: true },
    };
    let clippy = ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "--"];
    step(&root, "format", &["cargo", "fmt", "--all", "--check"], "run `cargo fmt --all`")?;
    if let Some(tests) = scope.rust.filter() {
        step(
            &root,
            "clippy",
            &[&clippy[..], &["-D", "warnings"]].concat(),
            "`cargo clippy --fix` fixes the simple ones; an exception needs `#[expect(…, reason = \"…\")]`",
        )?;
        step(
            &root,
            &format!("tests: {tests}"),
            // Always the whole workspace, so that every command uses the same features and the
            // same build; the filter selects what is run.
            &["cargo", "nextest", "run", "--workspace", "--locked", "-E", &tests],
            "without cargo-nextest run `bash .ci/tools.sh`; accept a changed snapshot with `INSTA_UPDATE=always` after reading the diff",
        )?;
    }
    if scope.rust == Tests::All {
        step(
            &root,
            "doctests",
            &["cargo", "test", "--workspace", "--locked", "--doc", "--quiet"],
            "the failing example is named by file and line above",
        )?;
    }
    if scope.web {
        shell::note("== checks of the web UI");
        web::check(&root)?;
    }
    shell::note("== tidy");
    tidy::run(&tidy::Args::default())
}

fn step(root: &Path, name: &str, command: &[&str], hint: &str) -> Result<()> {
    shell::note(&format!("== {name}"));
    shell::run(root, command).map_err(|error| anyhow!("{error:#}\nhint: {hint}"))
}

/// Paths from the root, of tracked files that differ from the base and of new files.
fn changed_files(root: &Path, base: Option<&str>) -> Result<Vec<String>> {
    let upstream = ["git", "merge-base", "HEAD", "@{upstream}"];
    let base = match base {
        Some(base) => base.to_owned(),
        // Without an upstream only uncommitted changes count.
        None => shell::read(root, &upstream).unwrap_or_else(|_| "HEAD".to_owned()),
    };
    let tracked = shell::read(root, &["git", "diff", "--name-only", base.trim()])?;
    let new = shell::read(root, &["git", "ls-files", "--others", "--exclude-standard"])?;
    Ok(tracked.lines().chain(new.lines()).map(str::to_owned).collect())
}

/// A crate of the workspace: its name, and its folder from the root with a `/` at the end.
type Crate = (String, String);

fn crates(root: &Path) -> Result<Vec<Crate>> {
    let folder = |manifest: &str| manifest.trim_end_matches("Cargo.toml").to_owned();
    let members = edges::members(root)?;
    Ok(members.into_iter().map(|member| (member.name, folder(&member.manifest))).collect())
}

/// What has to be checked.
#[derive(Debug, PartialEq, Eq)]
struct Scope {
    rust: Tests,
    web: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Tests {
    All,
    /// Of these crates and of all that depend on them.
    Reached(BTreeSet<String>),
}

impl Scope {
    fn of(changed: &[String], crates: &[Crate]) -> Self {
        let web = changed.iter().any(|path| path.starts_with("web/"));
        if changed.iter().any(|path| EVERYTHING.iter().any(|part| path.starts_with(part))) {
            return Self { rust: Tests::All, web };
        }
        let owner = |path: &String| {
            let inside = crates.iter().find(|(_, folder)| path.starts_with(folder));
            let embedded = EMBEDDED.iter().find(|(folder, _)| path.starts_with(folder));
            inside
                .map(|(name, _)| name.clone())
                .or_else(|| embedded.map(|(_, name)| (*name).to_owned()))
        };
        Self { rust: Tests::Reached(changed.iter().filter_map(owner).collect()), web }
    }
}

impl Tests {
    /// As an expression of nextest; nothing where no crate is reached.
    fn filter(&self) -> Option<String> {
        match self {
            Self::All => Some(format!("not {REAL_PARTS}")),
            Self::Reached(crates) if crates.is_empty() => None,
            Self::Reached(crates) => {
                let reached: Vec<_> = crates.iter().map(|name| format!("rdeps(={name})")).collect();
                Some(format!("({}) - {REAL_PARTS}", reached.join(" + ")))
            }
        }
    }
}

#[cfg(test)]
#[path = "ci_tests.rs"]
mod tests;
