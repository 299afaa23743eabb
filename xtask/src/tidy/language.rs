//! Names and prose do not get odder: each measured number stays below its limit in `xtask/language.toml`.

use std::collections::BTreeMap;

use anyhow::Result;

use super::{ProblemLevel, TidyProblem};
use crate::language::{LanguageSettings, Measurement, PhraseHit};
use crate::tree::SourceTree;

pub(crate) const ID: &str = "language";
const SETTINGS: &str = "xtask/language.toml";
const MAX_SUBJECT_CHARS: usize = 72;

pub(crate) fn check(settings: &LanguageSettings, tree: &SourceTree) -> Result<Vec<TidyProblem>> {
    let measured = settings.measure(tree)?;
    Ok(measured.iter().filter_map(|one| check_one(one, &settings.limits)).collect())
}

fn check_one(measured: &Measurement, limits: &BTreeMap<String, f64>) -> Option<TidyProblem> {
    let limit = *limits.get(measured.name)?;
    (measured.value > limit).then(|| TidyProblem {
        path: SETTINGS.to_owned(),
        line: None,
        rule: ID,
        level: ProblemLevel::Fail,
        message: format!("{} is {:.1} (limit: {limit:.1})", measured.name, measured.value),
        hint: hint(&measured.hits),
    })
}

/// The files with the most hits, each with one phrase and its replacement.
fn hint(hits: &[PhraseHit]) -> String {
    let mut files = BTreeMap::<&str, Vec<&PhraseHit>>::new();
    for hit in hits {
        files.entry(&hit.path).or_default().push(hit);
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(_, hits)| std::cmp::Reverse(hits.len()));
    if files.is_empty() {
        return "name types by what they are, in two or three words; keep helpers private"
            .to_owned();
    }
    let worst: Vec<String> = files
        .iter()
        .take(8)
        .filter_map(|(path, hits)| {
            let first = hits.first()?;
            Some(format!(
                "{path} ({}): for \"{}\" write \"{}\"",
                hits.len(),
                first.phrase,
                first.write
            ))
        })
        .collect();
    worst.join("\n        ")
}

/// `log` has one commit a line: its hash, a space and its subject.
pub(crate) fn check_subjects(log: &str) -> Vec<TidyProblem> {
    log.lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, subject)| subject.chars().count() > MAX_SUBJECT_CHARS)
        .map(|(commit, subject)| TidyProblem {
            path: commit.to_owned(),
            line: None,
            rule: ID,
            level: ProblemLevel::Fail,
            message: format!("the subject has {} characters", subject.chars().count()),
            hint: format!("use at most {MAX_SUBJECT_CHARS}: `git commit --amend`"),
        })
        .collect()
}

#[cfg(test)]
#[path = "language_tests.rs"]
mod tests;
