//! Every ignored advisory is about a crate that is in the lock file, and says so first. The database of
//! advisories needs the network, so the gate cannot ask it; the public workflow does.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{Level, Problem};
use crate::tree::Tree;

pub(crate) const ID: &str = "advisories";

const DENY: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";

#[derive(Deserialize)]
struct Deny {
    advisories: Advisories,
}

#[derive(Deserialize)]
struct Advisories {
    ignore: Vec<Ignored>,
}

#[derive(Deserialize)]
struct Ignored {
    id: String,
    reason: String,
}

pub(crate) fn check(tree: &Tree) -> Result<Vec<Problem>> {
    let text = |path: &str| tree.text(path).with_context(|| format!("there is no {path}"));
    let deny: Deny = toml::from_str(text(DENY)?)?;
    let lock = text(LOCK)?;
    let mut problems = Vec::new();
    for Ignored { id, reason } in deny.advisories.ignore {
        let name = reason.split([' ', ',']).next().unwrap_or_default();
        let locked = lock.lines().any(|line| line == format!("name = \"{name}\""));
        let problem = |message: String, hint: &str| Problem {
            path: DENY.to_owned(),
            line: None,
            rule: ID,
            level: Level::Fail,
            message,
            hint: hint.to_owned(),
        };
        if !locked {
            let hint = "remove the entry, or begin its reason with the name of the crate";
            problems.push(problem(format!("{id}: `{name}` is not in {LOCK}"), hint));
        }
        if !reason.contains("; leaves with ") {
            let hint = "end its reason with `; leaves with …`";
            problems.push(problem(format!("{id}: nobody says when it can be removed"), hint));
        }
    }
    Ok(problems)
}

#[cfg(test)]
#[path = "advisories_tests.rs"]
mod tests;
