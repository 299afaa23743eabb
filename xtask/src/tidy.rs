//! `cargo xtask tidy`: repository rules that no other tool checks.
//!
//! A rule is a function from data to problems, with a test that shows it failing on bad input. This
//! file collects the data. A rule that cannot run is reported as a problem, so errors never pass
//! the check.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::codegen::GENERATED;
use crate::language::LanguageSettings;
use crate::tree::SourceTree;
use crate::{bench, shell};

mod advisories;
mod agents_length;
mod core_purity;
mod dev_features;
pub(crate) mod edges;
mod file_length;
mod generated;
mod language;
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
pub(crate) struct TidyArgs {
    /// Run only these rules (default: all)
    #[arg(long = "rule", value_name = "ID", value_parser = clap::builder::PossibleValuesParser::new(RULES.iter().map(|rule| rule.id)))]
    rules: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TidyProblem {
    pub(crate) path: String,
    pub(crate) line: Option<usize>,
    pub(crate) rule: &'static str,
    pub(crate) level: ProblemLevel,
    pub(crate) message: String,
    pub(crate) hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProblemLevel {
    Warn,
    Fail,
}

impl fmt::Display for TidyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        let level = match self.level {
            ProblemLevel::Warn => "warning: ",
            ProblemLevel::Fail => "",
        };
        write!(f, ": {level}[{}] {}\n  hint: {}", self.rule, self.message, self.hint)
    }
}

/// The input of every rule.
struct RuleContext {
    root: PathBuf,
    tree: SourceTree,
}

struct TidyRule {
    id: &'static str,
    run: fn(&RuleContext) -> Result<Vec<TidyProblem>>,
}

/// To add a rule: write a module with `ID`, a pure `check` and a test, and add a row here.
/// `generated` comes last because it needs a build, which is slow.
const RULES: &[TidyRule] = &[
    TidyRule {
        id: edges::ID,
        run: |at| Ok(edges::check(edges::TABLE, &edges::members(&at.root)?)),
    },
    TidyRule {
        id: core_purity::ID,
        run: |at| {
            let mut problems =
                core_purity::check_dependencies(&core_purity::dependencies(&at.root)?);
            problems.extend(core_purity::check_sources(&at.tree));
            Ok(problems)
        },
    },
    TidyRule { id: file_length::ID, run: |at| Ok(file_length::check(&at.tree)) },
    TidyRule { id: no_features::ID, run: |at| Ok(no_features::check(&at.tree)) },
    TidyRule {
        id: dev_features::ID,
        run: |at| {
            let product = dev_features::feature_sets(&at.root, "normal,build")?;
            let with_tests = dev_features::feature_sets(&at.root, "normal,build,dev")?;
            Ok(dev_features::check(&product, &with_tests))
        },
    },
    TidyRule { id: linux_only::ID, run: |at| Ok(linux_only::check(&at.tree)) },
    TidyRule { id: one_sdk::ID, run: |at| Ok(one_sdk::check(&at.tree)) },
    TidyRule { id: run_requests::ID, run: |at| Ok(run_requests::check(&at.tree)) },
    TidyRule {
        id: specification::ID,
        run: |at| Ok(specification::check(&at.tree, &bench::names())),
    },
    TidyRule { id: advisories::ID, run: |at| advisories::check(&at.tree) },
    TidyRule { id: nested_locks::ID, run: |at| nested_locks::check(&at.tree) },
    TidyRule { id: agents_length::ID, run: |at| Ok(agents_length::check(&at.tree)) },
    TidyRule {
        id: snapshots::ID,
        run: |at| Ok(snapshots::check(&snapshots::candidates(&at.root)?)),
    },
    TidyRule { id: machine_paths::ID, run: |at| Ok(machine_paths::check(&at.tree)) },
    TidyRule { id: links::ID, run: |at| Ok(links::check(&at.tree)) },
    TidyRule {
        id: language::ID,
        run: |at| {
            let mut problems = language::check(&LanguageSettings::built_in()?, &at.tree)?;
            let log = shell::read(&at.root, &["git", "log", "-n20", "--format=%h %s"])?;
            problems.extend(language::check_subjects(&log));
            Ok(problems)
        },
    },
    TidyRule {
        id: generated::ID,
        run: |at| {
            let mut fresh = Vec::new();
            for file in GENERATED {
                fresh.push((file.path, file.produce(&at.root, &at.tree)?));
            }
            Ok(generated::check(&at.tree, &fresh))
        },
    },
];

pub(crate) fn run(args: &TidyArgs) -> Result<()> {
    let root = shell::root()?;
    let problems = problems(&root, &args.rules)?;
    for problem in &problems {
        shell::say(&problem.to_string());
    }
    let failed = problems.iter().filter(|problem| problem.level == ProblemLevel::Fail).count();
    if failed > 0 {
        bail!("tidy found {failed} {}", if failed == 1 { "problem" } else { "problems" });
    }
    shell::note("tidy: no problems");
    Ok(())
}

fn problems(root: &Path, only: &[String]) -> Result<Vec<TidyProblem>> {
    let context = RuleContext { root: root.to_owned(), tree: SourceTree::load(root)? };
    let chosen = RULES.iter().filter(|rule| only.is_empty() || only.iter().any(|id| id == rule.id));
    Ok(chosen.flat_map(|rule| run_rule(rule, &context)).collect())
}

fn run_rule(rule: &TidyRule, context: &RuleContext) -> Vec<TidyProblem> {
    (rule.run)(context).unwrap_or_else(|error| {
        vec![TidyProblem {
            path: ".".to_owned(),
            line: None,
            rule: rule.id,
            level: ProblemLevel::Fail,
            message: format!("could not run: {error:#}"),
            hint: "a rule that cannot run counts as failed; fix the error above".to_owned(),
        }]
    })
}

/// The line number, from 1, of a byte offset.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Problems as `path:line: [rule] message`, for tests that compare the whole output.
#[cfg(test)]
fn headlines(problems: &[TidyProblem]) -> Vec<String> {
    problems
        .iter()
        .map(|problem| problem.to_string().lines().next().unwrap_or_default().to_owned())
        .collect()
}

#[cfg(test)]
#[path = "tidy_tests.rs"]
mod tests;
