//! Checks that the reason of every ignored advisory starts with a crate that is in the lock file
//! and ends with the condition for removing the entry. The advisory database needs the network, so
//! the offline gate cannot query it; the public workflow does.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{ProblemLevel, TidyProblem};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "advisories";

const DENY: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";

#[derive(Deserialize)]
struct DenyConfig {
    advisories: AdvisoriesConfig,
}

#[derive(Deserialize)]
struct AdvisoriesConfig {
    ignore: Vec<IgnoredAdvisory>,
}

#[derive(Deserialize)]
struct IgnoredAdvisory {
    id: String,
    reason: String,
}

pub(crate) fn check(tree: &SourceTree) -> Result<Vec<TidyProblem>> {
    let text = |path: &str| tree.text(path).with_context(|| format!("{path} not found"));
    let deny: DenyConfig = toml::from_str(text(DENY)?)?;
    let lock = text(LOCK)?;
    let mut problems = Vec::new();
    for IgnoredAdvisory { id, reason } in deny.advisories.ignore {
        let name = reason.split([' ', ',']).next().unwrap_or_default();
        let locked = lock.lines().any(|line| line == format!("name = \"{name}\""));
        let problem = |message: String, hint: &str| TidyProblem {
            path: DENY.to_owned(),
            line: None,
            rule: ID,
            level: ProblemLevel::Fail,
            message,
            hint: hint.to_owned(),
        };
        if !locked {
            let hint = "remove the entry, or start its reason with the name of the crate";
            problems.push(problem(format!("{id}: `{name}` is not in {LOCK}"), hint));
        }
        if !reason.contains("; leaves with ") {
            let hint = "end its reason with `; leaves with …`";
            problems.push(problem(
                format!("{id}: the reason does not say when the entry can be removed"),
                hint,
            ));
        }
    }
    Ok(problems)
}

#[cfg(test)]
#[path = "advisories_tests.rs"]
mod tests;
