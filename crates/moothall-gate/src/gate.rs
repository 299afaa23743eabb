//! The gate: what a policy makes of a set of changed files.
//!
//! [`judge`] is a pure and total function. It reads no clock, asks no model and cannot fail: what
//! it cannot compare, it escalates. Findings come from code; a model may add one and never remove
//! one. No message holds a byte of the draft, so findings may stand in the journal.

mod autorun;
mod checks;
mod code;
mod compare;
mod content;
mod policy;
pub mod reviewer;
mod rule;
mod secrets;

pub use self::autorun::{AUTO_RUN, AutoRun, auto_run_by};
pub use self::checks::{CheckOutcome, CheckResult, check_outcome, check_request};
pub use self::compare::{Comparison, LineStats, merge, unified};
pub use self::policy::{
    Channel, Check, Elicitation, Exception, Layer, LayerName, Policy, PolicyFault, Preview, Today,
    duration_ms, made_by_tools,
};
pub use self::rule::{Action, Rule};
pub use self::secrets::{FingerprintKey, Scan, Secret, Tier, scan as scan_secrets};

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::Regex;
use serde::Serialize;

use crate::Sha256Hex;
use crate::drafts::RelPath;

/// One file of a submission, with what it was made from.
#[derive(Debug, Clone, Copy)]
pub struct FileChange<'a> {
    /// Where the file is, or will be if it is new.
    pub path: &'a RelPath,
    /// Where it goes, if not where it is.
    pub rename_to: Option<&'a RelPath>,
    /// What is there; none: nothing.
    pub base: Option<Content<'a>>,
    /// What shall be there; none: nothing.
    pub draft: Option<Content<'a>>,
    /// What is around it in the workspace.
    pub around: Surroundings<'a>,
}

/// What is around a file in the workspace; the default for a file on its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Surroundings<'a> {
    /// Names beside a new file that some file system takes for the same.
    pub twins: &'a [String],
    /// Whether git ignores it.
    pub ignored: bool,
    /// Whether a directory above it has a file `HEAD`, which git may take for a repository.
    pub below_head: bool,
    /// What the file was before the first change by a worker within the last day, if there was one:
    /// many small deletions are judged as the large one that they make.
    pub origin: Option<Content<'a>>,
}

/// The bytes of a file and whether it may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether its owner may run it.
    pub executable: bool,
}

/// What others found out about a submission before it is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// Checks that ran, or could not.
    pub checks: Vec<CheckResult>,
    /// What the reviewing model said; none: nobody asked it.
    pub review: Option<reviewer::Review>,
}

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule.
    pub rule: Rule,
    /// What the policy does about it.
    pub action: Action,
    /// Which file.
    pub path: RelPath,
    /// Which line of the draft, from 1.
    pub line: Option<usize>,
    /// What was observed, in words of ours only.
    pub message: String,
    /// A keyed hash of a credential, to recognise it by without knowing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// What the gate makes of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The heaviest action of all findings.
    pub action: Action,
    /// The policy by which it was judged.
    pub policy: Sha256Hex,
    /// Everything that was observed, in the order of files and lines.
    pub findings: Vec<Finding>,
    /// Lines of all files.
    pub stats: LineStats,
}

/// What a rule saw, before the policy says what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    rule: Rule,
    line: Option<usize>,
    message: String,
    secret: Option<Secret>,
    /// What one check says instead of its rule.
    instead: Option<Action>,
}

impl Seen {
    fn new(rule: Rule, line: Option<usize>, message: impl Into<String>) -> Self {
        Self { rule, line, message: message.into(), secret: None, instead: None }
    }
}

/// Judges a submission.
pub fn judge(
    policy: &Policy,
    changes: &[FileChange<'_>],
    looked: &Looked,
    key: &FingerprintKey,
    today: Today,
) -> Verdict {
    judge_until(policy, changes, looked, key, today, &AtomicBool::new(false))
}

/// As [`judge`], for a caller that may give up: after `stop` it ends soon, with a verdict that nobody
/// should use.
pub fn judge_until(
    policy: &Policy,
    changes: &[FileChange<'_>],
    looked: &Looked,
    key: &FingerprintKey,
    today: Today,
    stop: &AtomicBool,
) -> Verdict {
    let mut findings = Vec::new();
    let mut stats = LineStats::default();
    for change in changes {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let comparison = Comparison::of(change);
        stats.add(&comparison.stats);
        let mut seen = of_paths(policy, change);
        seen.extend(of_file(change));
        seen.extend(of_git(change));
        if change.draft.is_some() {
            seen.extend(content::look(policy, change, &comparison));
            seen.extend(code::look(policy, change, &comparison));
            seen.extend(secrets::look(change, key, stop));
        }
        if change.base.is_some() && change.draft.is_some() {
            seen.extend(of_difference(policy, change, &comparison));
        }
        if change.around.origin.is_some() {
            seen.extend(of_origin(policy, change, &seen));
        }
        let path = change.rename_to.unwrap_or(change.path);
        findings.extend(seen.into_iter().filter_map(|one| weighed(policy, path, one, today)));
    }
    let changed = stats.added + stats.removed;
    let first = changes.first().map(|change| change.rename_to.unwrap_or(change.path));
    if let Some(path) = first {
        let mut seen = checks::look(policy, changes, &looked.checks);
        if changed > policy.limits.max_changed_lines {
            let most = policy.limits.max_changed_lines;
            let words = format!("{changed} changed lines, more than {most}");
            seen.push(Seen::new(Rule::DiffMaxLines, None, words));
        }
        if policy.preview == Preview::Always {
            let words = "the policy lets a person see every change";
            seen.push(Seen::new(Rule::ReviewPreview, None, words));
        }
        findings.extend(seen.into_iter().filter_map(|one| weighed(policy, path, one, today)));
        for (path, doubt) in reviewer::look(policy, changes, looked.review.as_ref()) {
            findings.extend(weighed(policy, path, doubt, today));
        }
    }
    let action = findings.iter().map(|finding| finding.action).max().unwrap_or(Action::Allow);
    Verdict { action, policy: policy.hash(), findings, stats }
}

/// A finding with the policy's action, or nothing where the policy allows it.
fn weighed(policy: &Policy, path: &RelPath, seen: Seen, today: Today) -> Option<Finding> {
    let value = seen.secret.as_ref().map(|secret| secret.sha256);
    let action = match (policy.action(seen.rule, path, value, today), seen.instead) {
        (Action::Allow, _) | (_, None) => policy.action(seen.rule, path, value, today),
        (_, Some(instead)) => instead,
    };
    (action > Action::Allow).then(|| Finding {
        rule: seen.rule,
        action,
        path: path.clone(),
        line: seen.line,
        message: seen.message,
        fingerprint: seen.secret.map(|secret| secret.fingerprint),
    })
}

fn of_paths(policy: &Policy, change: &FileChange<'_>) -> Vec<Seen> {
    let mut seen = Vec::new();
    for path in std::iter::once(change.path).chain(change.rename_to) {
        if policy.denies(path) {
            let words = "the policy does not let workers change this path";
            seen.push(Seen::new(Rule::PathDenied, None, words));
        } else if policy.protects(path) {
            seen.push(Seen::new(Rule::PathProtected, None, "a protected path"));
        } else if let Some(runner) = auto_run_by(path) {
            let words = format!("run or obeyed without being asked: {runner}");
            seen.push(Seen::new(Rule::PathAutorun, None, words));
        }
    }
    if change.around.ignored || made_by_tools(change.rename_to.unwrap_or(change.path)) {
        seen.push(Seen::new(Rule::PathIgnored, None, "no diff of git shows a change of this path"));
    }
    if !change.around.twins.is_empty() {
        let words = "differs from a name beside it only by case or Unicode form";
        seen.push(Seen::new(Rule::PathTwin, None, words));
    }
    seen
}

fn of_file(change: &FileChange<'_>) -> Vec<Seen> {
    let mut seen = Vec::new();
    if change.rename_to.is_some() {
        seen.push(Seen::new(Rule::FileRename, None, "the file is renamed"));
    }
    match (change.base, change.draft) {
        (Some(_), None) => seen.push(Seen::new(Rule::FileDelete, None, "the file is deleted")),
        (None, Some(draft)) if draft.executable => {
            seen.push(Seen::new(Rule::FileNewExecutable, None, "a new file that can be run"));
        }
        (Some(base), Some(draft)) if base.executable != draft.executable => {
            let words = match draft.executable {
                true => "the file becomes executable",
                false => "the file is no longer executable",
            };
            seen.push(Seen::new(Rule::FileMode, None, words));
        }
        (None, None) => {
            seen.push(Seen::new(Rule::DiffEmpty, None, "nothing is there and nothing comes"));
        }
        _ => {}
    }
    seen
}

/// A directory with `HEAD`, `objects` and `refs` is a repository for git, whatever its name, and its
/// `config` may name programs that `git status` starts. Nothing else needs a file called `HEAD`.
fn of_git(change: &FileChange<'_>) -> Option<Seen> {
    static RUNS_PROGRAMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let keys = "fsmonitor|hookspath|sshcommand|pager|editor|askpass|gitproxy|textconv|clean|smudge|\
                    process|helper|driver|command|uploadpack|receivepack|program|worktree|insteadof";
        Regex::new(&format!(r"(?i)\b(?:{keys})\s*=|\[\s*(?:alias|include|includeif)\b")).ok()
    });
    let draft = change.draft?;
    let path = change.rename_to.unwrap_or(change.path).folded();
    let name = path.rsplit('/').next().unwrap_or_default();
    if name == "head" || change.around.below_head {
        let words = "git takes a directory with HEAD, objects and refs for a repository";
        return Some(Seen::new(Rule::FileGitRepository, None, words));
    }
    let settings = matches!(name, "config" | "config.worktree" | "gitconfig" | ".gitconfig");
    let runs = || {
        let text = String::from_utf8_lossy(draft.bytes);
        RUNS_PROGRAMS.as_ref().is_none_or(|pattern| pattern.is_match(&text))
    };
    (settings && runs())
        .then(|| Seen::new(Rule::FileGitRepository, None, "settings with which git runs programs"))
}

fn of_difference(policy: &Policy, change: &FileChange<'_>, comparison: &Comparison) -> Vec<Seen> {
    let (Some(base), Some(draft)) = (change.base, change.draft) else { return Vec::new() };
    let mut seen = Vec::new();
    if base == draft && change.rename_to.is_none() {
        seen.push(Seen::new(Rule::DiffEmpty, None, "nothing is changed"));
    }
    let blank = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
    if blank(draft.bytes) && !blank(base.bytes) {
        seen.push(Seen::new(Rule::DiffEmptied, None, "nothing is left of the file"));
    }
    if comparison.gave_up {
        let words = "too many lines to compare";
        seen.push(Seen::new(Rule::GateError, None, words));
    }
    let stats = &comparison.stats;
    let lost = stats.removed - stats.moved;
    if stats.base_lines >= policy.limits.min_lines_for_ratio
        && policy.limits.exceeds_ratio(lost, stats.base_lines)
    {
        let words = format!("{lost} of {} lines are deleted", stats.base_lines);
        seen.push(Seen::new(Rule::DiffDeletionRatio, None, words));
    }
    seen
}

/// What all changes within the last day delete together, where this one alone says
/// nothing.
fn of_origin(policy: &Policy, change: &FileChange<'_>, known: &[Seen]) -> Vec<Seen> {
    let since = FileChange { base: change.around.origin, ..*change };
    let comparison = Comparison::of(&since);
    let mut seen = of_difference(policy, &since, &comparison);
    seen.extend(code::look_gutted(policy, &since, &comparison));
    let new = |one: &Seen| {
        matches!(one.rule, Rule::DiffDeletionRatio | Rule::DiffGutted | Rule::DiffEmptied)
            && known.iter().all(|other| other.rule != one.rule)
    };
    seen.retain(new);
    for one in &mut seen {
        one.message.push_str(" by the changes of the last 24 hours");
    }
    seen
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
