//! The gate: judges a set of changed files by a policy.
//!
//! [`judge`] is pure and total. It reads no clock, calls no model and cannot fail: files it cannot
//! compare are escalated. Findings come from code; a model can add findings but never remove one.
//! Messages never contain bytes of the draft, so findings are safe to store in the journal.

mod autorun;
mod change_set;
mod checks;
mod code_rules;
mod compare;
mod content_rules;
mod patch;
mod policy;
pub mod reviewer;
mod rule;
mod secrets;

pub use self::autorun::{AUTO_RUN, AutoRunEntry, auto_run_by};
pub use self::change_set::{
    ChangeFinding, ChangeSetDecision, ChangedFile, EntryContent, EntryKind, FileDecision,
    FileEntry, FileStatus, TreeNames, decide_change_set, judge_changed_file, shown_path,
};
pub use self::checks::{CheckOutcome, CheckResult, check_outcome, check_request};
pub use self::compare::{FileComparison, LineStats, is_too_much, merge, unified};
pub use self::patch::{
    MAX_PATCH_BYTES, PatchBody, PatchFault, PatchFaultKind, PatchFile, PatchHunk, read_patch,
};
pub use self::policy::{
    ElicitationMode, Policy, PolicyCheck, PolicyDate, PolicyException, PolicyFault, PolicyLayer,
    PolicyLayerName, PreviewMode, ReviewChannel, duration_ms, is_build_output,
};
pub use self::rule::{GateAction, GateRule};
pub use self::secrets::{
    FingerprintKey, SecretFinding, SecretScan, SecretTier, hide_secrets, scan as scan_secrets,
};

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::Regex;
use serde::Serialize;

use crate::Sha256Hex;
use crate::drafts::RelPath;

/// One file of a submission and its base.
#[derive(Debug, Clone, Copy)]
pub struct FileChange<'a> {
    /// Current path, or the path of a new file.
    pub path: &'a RelPath,
    /// New path, if the file is renamed.
    pub rename_to: Option<&'a RelPath>,
    /// Content before the change, or `None` if the file does not exist.
    pub base: Option<FileContent<'a>>,
    /// Content after the change, or `None` if the file is deleted.
    pub draft: Option<FileContent<'a>>,
    /// Context in the workspace.
    pub around: FileContext<'a>,
}

/// Context of a file in the workspace. The default is a file without context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileContext<'a> {
    /// Names in the same directory that some file systems treat as equal to a new file's name.
    pub twins: &'a [String],
    /// Whether git ignores the file.
    pub ignored: bool,
    /// Whether a parent directory has a file `HEAD`, so that git may treat it as a repository.
    pub below_head: bool,
    /// Content before the first change by a worker in the last 24 hours, if there was one. Many
    /// small deletions are judged as one large deletion.
    pub origin: Option<FileContent<'a>>,
}

/// Bytes and mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileContent<'a> {
    /// The content.
    pub bytes: &'a [u8],
    /// Whether the owner's executable bit is set.
    pub executable: bool,
}

/// Results collected before a submission is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckResults {
    /// Checks that ran or could not be run.
    pub checks: Vec<CheckResult>,
    /// The reviewing model's answer, or `None` if no model was asked.
    pub review: Option<reviewer::ModelReview>,
}

/// A rule's observation with the action of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateFinding {
    /// The rule.
    pub rule: GateRule,
    /// The policy's action.
    pub action: GateAction,
    /// The file.
    pub path: RelPath,
    /// Line in the draft, from 1.
    pub line: Option<usize>,
    /// Fixed text of the rule; never quotes the draft.
    pub message: String,
    /// A keyed hash that identifies a credential without revealing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// The gate's decision on a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateDecision {
    /// The most severe action of all findings.
    pub action: GateAction,
    /// Hash of the policy.
    pub policy: Sha256Hex,
    /// Ordered by file and line.
    pub findings: Vec<GateFinding>,
    /// Totals over all files.
    pub stats: LineStats,
}

/// A rule's observation, before the policy assigns an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleMatch {
    rule: GateRule,
    line: Option<usize>,
    message: String,
    secret: Option<SecretFinding>,
    /// Action set by a single check, which overrides the rule's.
    instead: Option<GateAction>,
}

impl RuleMatch {
    fn new(rule: GateRule, line: Option<usize>, message: impl Into<String>) -> Self {
        Self { rule, line, message: message.into(), secret: None, instead: None }
    }
}

/// Judges a submission.
pub fn judge(
    policy: &Policy,
    changes: &[FileChange<'_>],
    looked: &CheckResults,
    key: &FingerprintKey,
    today: PolicyDate,
) -> GateDecision {
    judge_until(policy, changes, looked, key, today, &AtomicBool::new(false))
}

/// Like [`judge`], but can be cancelled: once `stop` is set it returns soon, with an incomplete
/// verdict that must be discarded.
pub fn judge_until(
    policy: &Policy,
    changes: &[FileChange<'_>],
    looked: &CheckResults,
    key: &FingerprintKey,
    today: PolicyDate,
    stop: &AtomicBool,
) -> GateDecision {
    let mut findings = Vec::new();
    let mut stats = LineStats::default();
    for change in changes {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (seen, of_file) = file_matches(policy, change, key, stop);
        stats.add(&of_file);
        let path = change.rename_to.unwrap_or(change.path);
        findings.extend(seen.into_iter().filter_map(|one| apply_policy(policy, path, one, today)));
    }
    if let Some(first) = changes.first().map(|change| change.rename_to.unwrap_or(change.path)) {
        let paths =
            || changes.iter().flat_map(|one| std::iter::once(one.path).chain(one.rename_to));
        let mut seen = checks::check_findings(policy, paths(), &looked.checks);
        seen.extend(set_matches(policy, &stats));
        findings.extend(seen.into_iter().filter_map(|one| apply_policy(policy, first, one, today)));
        let places: Vec<&RelPath> =
            changes.iter().map(|change| change.rename_to.unwrap_or(change.path)).collect();
        for (path, doubt) in reviewer::review_findings(policy, &places, looked.review.as_ref()) {
            findings.extend(apply_policy(policy, path, doubt, today));
        }
    }
    let action = findings.iter().map(|finding| finding.action).max().unwrap_or(GateAction::Allow);
    GateDecision { action, policy: policy.hash(), findings, stats }
}

/// Finds what one file matches, and counts its lines.
fn file_matches(
    policy: &Policy,
    change: &FileChange<'_>,
    key: &FingerprintKey,
    stop: &AtomicBool,
) -> (Vec<RuleMatch>, LineStats) {
    let comparison = FileComparison::of(change);
    let mut seen = of_paths(policy, change);
    seen.extend(of_file(change));
    seen.extend(of_git(change));
    if change.draft.is_some() {
        seen.extend(content_rules::check(policy, change, &comparison));
        seen.extend(code_rules::check(policy, change, &comparison));
        seen.extend(secrets::check(change, key, stop));
    }
    if change.base.is_some() && change.draft.is_some() {
        seen.extend(of_difference(policy, change, &comparison));
    }
    if change.around.origin.is_some() {
        seen.extend(of_origin(policy, change, &seen));
    }
    (seen, comparison.stats)
}

/// Finds what all files together match.
fn set_matches(policy: &Policy, stats: &LineStats) -> Vec<RuleMatch> {
    let mut seen = Vec::new();
    let (changed, most) = (stats.added + stats.removed, policy.limits.max_changed_lines);
    if changed > most {
        let words = format!("{changed} changed lines (limit: {most})");
        seen.push(RuleMatch::new(GateRule::DiffMaxLines, None, words));
    }
    if policy.preview == PreviewMode::Always {
        let words = "the policy requires review of every change";
        seen.push(RuleMatch::new(GateRule::ReviewPreview, None, words));
    }
    seen
}

/// Assigns the policy's action. Returns `None` if the policy allows the finding.
fn apply_policy(
    policy: &Policy,
    path: &RelPath,
    seen: RuleMatch,
    today: PolicyDate,
) -> Option<GateFinding> {
    let value = seen.secret.as_ref().map(|secret| secret.sha256);
    let action = match (policy.action(seen.rule, path, value, today), seen.instead) {
        (GateAction::Allow, _) | (_, None) => policy.action(seen.rule, path, value, today),
        (_, Some(instead)) => instead,
    };
    (action > GateAction::Allow).then(|| GateFinding {
        rule: seen.rule,
        action,
        path: path.clone(),
        line: seen.line,
        message: seen.message,
        fingerprint: seen.secret.map(|secret| secret.fingerprint),
    })
}

fn of_paths(policy: &Policy, change: &FileChange<'_>) -> Vec<RuleMatch> {
    let mut seen = Vec::new();
    for path in std::iter::once(change.path).chain(change.rename_to) {
        if policy.denies(path) {
            let words = "the policy does not allow workers to change this path";
            seen.push(RuleMatch::new(GateRule::PathDenied, None, words));
        } else if policy.protects(path) {
            seen.push(RuleMatch::new(GateRule::PathProtected, None, "protected path"));
        } else if let Some(runner) = auto_run_by(path) {
            let words = format!("loaded or run automatically by {runner}");
            seen.push(RuleMatch::new(GateRule::PathAutorun, None, words));
        }
    }
    if change.around.ignored || is_build_output(change.rename_to.unwrap_or(change.path)) {
        seen.push(RuleMatch::new(
            GateRule::PathIgnored,
            None,
            "changes to this path do not show up in `git diff`",
        ));
    }
    if !change.around.twins.is_empty() {
        let words = "differs from a neighboring file name only in case or Unicode form";
        seen.push(RuleMatch::new(GateRule::PathTwin, None, words));
    }
    seen
}

fn of_file(change: &FileChange<'_>) -> Vec<RuleMatch> {
    let mut seen = Vec::new();
    if change.rename_to.is_some() {
        seen.push(RuleMatch::new(GateRule::FileRename, None, "file is renamed"));
    }
    match (change.base, change.draft) {
        (Some(_), None) => seen.push(RuleMatch::new(GateRule::FileDelete, None, "file is deleted")),
        (None, Some(draft)) if draft.executable => {
            seen.push(RuleMatch::new(GateRule::FileNewExecutable, None, "new executable file"));
        }
        (Some(base), Some(draft)) if base.executable != draft.executable => {
            let words = match draft.executable {
                true => "file becomes executable",
                false => "file is no longer executable",
            };
            seen.push(RuleMatch::new(GateRule::FileMode, None, words));
        }
        (None, None) => {
            seen.push(RuleMatch::new(
                GateRule::DiffEmpty,
                None,
                "file does not exist and is not created",
            ));
        }
        _ => {}
    }
    seen
}

/// Git treats any directory with `HEAD`, `objects` and `refs` as a repository, and its `config` can
/// name programs that `git status` runs. A file called `HEAD` has no other common use.
fn of_git(change: &FileChange<'_>) -> Option<RuleMatch> {
    static RUNS_PROGRAMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let keys = "fsmonitor|hookspath|sshcommand|pager|editor|askpass|gitproxy|textconv|clean|smudge|\
                    process|helper|driver|command|uploadpack|receivepack|program|worktree|insteadof";
        Regex::new(&format!(r"(?i)\b(?:{keys})\s*=|\[\s*(?:alias|include|includeif)\b")).ok()
    });
    let draft = change.draft?;
    let path = change.rename_to.unwrap_or(change.path).folded();
    let name = path.rsplit('/').next().unwrap_or_default();
    if name == "head" || change.around.below_head {
        let words = "git treats a directory with HEAD, objects and refs as a repository";
        return Some(RuleMatch::new(GateRule::FileGitRepository, None, words));
    }
    let settings = matches!(name, "config" | "config.worktree" | "gitconfig" | ".gitconfig");
    let runs = || {
        let text = String::from_utf8_lossy(draft.bytes);
        RUNS_PROGRAMS.as_ref().is_none_or(|pattern| pattern.is_match(&text))
    };
    (settings && runs()).then(|| {
        RuleMatch::new(GateRule::FileGitRepository, None, "git settings that run programs")
    })
}

fn of_difference(
    policy: &Policy,
    change: &FileChange<'_>,
    comparison: &FileComparison,
) -> Vec<RuleMatch> {
    let (Some(base), Some(draft)) = (change.base, change.draft) else { return Vec::new() };
    let mut seen = Vec::new();
    if base == draft && change.rename_to.is_none() {
        seen.push(RuleMatch::new(GateRule::DiffEmpty, None, "no changes"));
    }
    let blank = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
    if blank(draft.bytes) && !blank(base.bytes) {
        seen.push(RuleMatch::new(GateRule::DiffEmptied, None, "file is emptied"));
    }
    if comparison.gave_up {
        let words = "too many lines to compare";
        seen.push(RuleMatch::new(GateRule::GateError, None, words));
    }
    let stats = &comparison.stats;
    let lost = stats.removed - stats.moved;
    if stats.base_lines >= policy.limits.min_lines_for_ratio
        && policy.limits.exceeds_ratio(lost, stats.base_lines)
    {
        let words = format!("{lost} of {} lines deleted", stats.base_lines);
        seen.push(RuleMatch::new(GateRule::DiffDeletionRatio, None, words));
    }
    seen
}

/// Finds deletions that only show when all changes of the last 24 hours are taken together.
fn of_origin(policy: &Policy, change: &FileChange<'_>, known: &[RuleMatch]) -> Vec<RuleMatch> {
    let since = FileChange { base: change.around.origin, ..*change };
    let comparison = FileComparison::of(&since);
    let mut seen = of_difference(policy, &since, &comparison);
    seen.extend(code_rules::check_gutted(policy, &since, &comparison));
    let new = |one: &RuleMatch| {
        matches!(
            one.rule,
            GateRule::DiffDeletionRatio | GateRule::DiffGutted | GateRule::DiffEmptied
        ) && known.iter().all(|other| other.rule != one.rule)
    };
    seen.retain(new);
    for one in &mut seen {
        one.message.push_str(" (all changes in the last 24 hours)");
    }
    seen
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
