//! `cargo xtask ci`: the part of the gate that needs no servers and no sandboxes, to run before a
//! commit. `--changed` runs only the checks that the changed files can affect.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow};
use clap::Args as ClapArgs;

use crate::tidy::{self, edges};
use crate::{shell, web};

/// Tests that need a server, a sandbox or a model are in modules with these names. `.ci/run` runs
/// them.
const REAL_PARTS: &str = "test(/(^|::)(real_[a-z]+|local_model)::/)";

/// A change to one of these files can break any crate.
const EVERYTHING: &[&str] =
    &["Cargo.toml", "Cargo.lock", "clippy.toml", "rust-toolchain.toml", ".cargo/", ".config/"];

/// Files outside a crate's directory that the crate embeds.
const EMBEDDED: &[(&str, &str)] =
    &[("images/", "moothall-sandbox"), ("deploy/", "moothall"), ("tools/", "moothall")];

#[derive(Debug, ClapArgs)]
pub(crate) struct CiArgs {
    /// Run only what the changed files can break: their crates and all dependents
    #[arg(long)]
    changed: bool,
    /// Compare with this commit (default: the merge base with upstream, or HEAD without an
    /// upstream)
    #[arg(long, value_name = "COMMIT", requires = "changed")]
    base: Option<String>,
}

pub(crate) fn run(args: &CiArgs) -> Result<()> {
    let root = shell::root()?;
    let scope = match args.changed {
        true => CheckScope::of(&changed_files(&root, args.base.as_deref())?, &crates(&root)?),
        false => CheckScope { rust: TestSelection::All, web: true },
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
            // Always the whole workspace: every command then uses the same features and shares one
            // build. The filter selects the tests.
            &["cargo", "nextest", "run", "--workspace", "--locked", "-E", &tests],
            "if cargo-nextest is missing, run `bash .ci/tools.sh`; accept a changed snapshot with `INSTA_UPDATE=always` after reading the diff",
        )?;
    }
    if scope.rust == TestSelection::All {
        step(
            &root,
            "doctests",
            &["cargo", "test", "--workspace", "--locked", "--doc", "--quiet"],
            "the failing example is named by file and line above",
        )?;
    }
    if scope.web {
        shell::note("== web UI checks");
        web::check(&root)?;
    }
    shell::note("== tidy");
    tidy::run(&tidy::TidyArgs::default())
}

fn step(root: &Path, name: &str, command: &[&str], hint: &str) -> Result<()> {
    shell::note(&format!("== {name}"));
    shell::run(root, command).map_err(|error| anyhow!("{error:#}\nhint: {hint}"))
}

/// Paths, relative to the root, of new files and of tracked files that differ from the base.
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

/// A crate of the workspace: its name, and its directory relative to the root with a trailing `/`.
type Crate = (String, String);

fn crates(root: &Path) -> Result<Vec<Crate>> {
    let folder = |manifest: &str| manifest.trim_end_matches("Cargo.toml").to_owned();
    let members = edges::members(root)?;
    Ok(members.into_iter().map(|member| (member.name, folder(&member.manifest))).collect())
}

#[derive(Debug, PartialEq, Eq)]
struct CheckScope {
    rust: TestSelection,
    web: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum TestSelection {
    All,
    /// Tests of these crates and of all their dependents.
    Reached(BTreeSet<String>),
}

impl CheckScope {
    fn of(changed: &[String], crates: &[Crate]) -> Self {
        let web = changed.iter().any(|path| path.starts_with("web/"));
        if changed.iter().any(|path| EVERYTHING.iter().any(|part| path.starts_with(part))) {
            return Self { rust: TestSelection::All, web };
        }
        let owner = |path: &String| {
            let inside = crates.iter().find(|(_, folder)| path.starts_with(folder));
            let embedded = EMBEDDED.iter().find(|(folder, _)| path.starts_with(folder));
            inside
                .map(|(name, _)| name.clone())
                .or_else(|| embedded.map(|(_, name)| (*name).to_owned()))
        };
        Self { rust: TestSelection::Reached(changed.iter().filter_map(owner).collect()), web }
    }
}

impl TestSelection {
    /// The nextest filter expression; `None` if no crate is affected.
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
