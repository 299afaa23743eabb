//! `cargo xtask tidy`: house rules that no other tool checks.
//!
//! A rule is a function from data to problems, with a test that shows it failing on a poisoned
//! input. This file gathers the data. A rule that cannot run is a problem of its own: we fail
//! closed.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::codegen::GENERATED;
use crate::tree::Tree;
use crate::{bench, shell};

mod advisories;
mod agents_length;
mod core_purity;
pub(crate) mod edges;
mod file_length;
mod generated;
mod links;
mod linux_only;
mod machine_paths;
mod nested_locks;
mod no_features;
mod one_sdk;
mod run_requests;
mod snapshots;
mod specification;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Only these rules; all by default.
    #[arg(long = "rule", value_name = "ID", value_parser = clap::builder::PossibleValuesParser::new(RULES.iter().map(|rule| rule.id)))]
    rules: Vec<String>,
}

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) path: String,
    pub(crate) line: Option<usize>,
    pub(crate) rule: &'static str,
    pub(crate) level: Level,
    pub(crate) message: String,
    pub(crate) hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Warn,
    Fail,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        let level = match self.level {
            Level::Warn => "warning: ",
            Level::Fail => "",
        };
        write!(f, ": {level}[{}] {}\n  hint: {}", self.rule, self.message, self.hint)
    }
}

/// What every rule may look at.
struct Context {
    root: PathBuf,
    tree: Tree,
}

struct Rule {
    id: &'static str,
    run: fn(&Context) -> Result<Vec<Problem>>,
}

/// To add a rule: a module with `ID`, a pure `check` and a test, and a row here. The slow one,
/// which builds, comes last.
const RULES: &[Rule] = &[
    Rule { id: edges::ID, run: |at| Ok(edges::check(edges::TABLE, &edges::members(&at.root)?)) },
    Rule {
        id: core_purity::ID,
        run: |at| {
            let mut problems =
                core_purity::check_dependencies(&core_purity::dependencies(&at.root)?);
            problems.extend(core_purity::check_sources(&at.tree));
            Ok(problems)
        },
    },
    Rule { id: file_length::ID, run: |at| Ok(file_length::check(&at.tree)) },
    Rule { id: no_features::ID, run: |at| Ok(no_features::check(&at.tree)) },
    Rule { id: linux_only::ID, run: |at| Ok(linux_only::check(&at.tree)) },
    Rule { id: one_sdk::ID, run: |at| Ok(one_sdk::check(&at.tree)) },
    Rule { id: run_requests::ID, run: |at| Ok(run_requests::check(&at.tree)) },
    Rule { id: specification::ID, run: |at| Ok(specification::check(&at.tree, &bench::names())) },
    Rule { id: advisories::ID, run: |at| advisories::check(&at.tree) },
    Rule { id: nested_locks::ID, run: |at| nested_locks::check(&at.tree) },
    Rule { id: agents_length::ID, run: |at| Ok(agents_length::check(&at.tree)) },
    Rule { id: snapshots::ID, run: |at| Ok(snapshots::check(&snapshots::candidates(&at.root)?)) },
    Rule { id: machine_paths::ID, run: |at| Ok(machine_paths::check(&at.tree)) },
    Rule { id: links::ID, run: |at| Ok(links::check(&at.tree)) },
    Rule {
        id: generated::ID,
        run: |at| {
            let mut fresh = Vec::new();
            for file in GENERATED {
                fresh.push((file.path, file.produce(&at.root)?));
            }
            Ok(generated::check(&at.tree, &fresh))
        },
    },
];

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root()?;
    let problems = problems(&root, &args.rules)?;
    for problem in &problems {
        shell::say(&problem.to_string());
    }
    let failed = problems.iter().filter(|problem| problem.level == Level::Fail).count();
    if failed > 0 {
        bail!("tidy found {failed} {}", if failed == 1 { "problem" } else { "problems" });
    }
    shell::note("tidy: nothing to mend");
    Ok(())
}

fn problems(root: &Path, only: &[String]) -> Result<Vec<Problem>> {
    let context = Context { root: root.to_owned(), tree: Tree::load(root)? };
    let chosen = RULES.iter().filter(|rule| only.is_empty() || only.iter().any(|id| id == rule.id));
    Ok(chosen.flat_map(|rule| run_rule(rule, &context)).collect())
}

fn run_rule(rule: &Rule, context: &Context) -> Vec<Problem> {
    (rule.run)(context).unwrap_or_else(|error| {
        vec![Problem {
            path: ".".to_owned(),
            line: None,
            rule: rule.id,
            level: Level::Fail,
            message: format!("could not run: {error:#}"),
            hint: "a rule that cannot run counts as failed; mend the cause above".to_owned(),
        }]
    })
}

/// The line (from 1) on which the byte offset lies.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Problems as `path:line: [rule] message`, for tests that compare whole answers.
#[cfg(test)]
fn headlines(problems: &[Problem]) -> Vec<String> {
    problems
        .iter()
        .map(|problem| problem.to_string().lines().next().unwrap_or_default().to_owned())
        .collect()
}

#[cfg(test)]
#[path = "tidy_tests.rs"]
mod tests;
