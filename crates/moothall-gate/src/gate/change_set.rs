//! Judges changed files of a git repository with the rules that judge drafts.
//!
//! Git allows more than a draft does: paths of any bytes, symbolic links, submodules and contents
//! of any size. Everything that a draft cannot contain has a rule here, and everything that was
//! not read is escalated.
//!
//! [`judge_changed_file`] judges one file, so that callers can read and judge files in any order,
//! in parallel, and keep only the decisions. [`decide_change_set`] combines them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::compare::LineStats;
use super::policy::{Policy, PolicyDate};
use super::rule::{GateAction, GateRule};
use super::secrets::{FingerprintKey, SecretTier, hide_secrets, scan};
use super::{
    CheckResults, FileChange, FileContent, FileContext, RuleMatch, checks, file_matches, of_paths,
    reviewer, set_matches,
};
use crate::Sha256Hex;
use crate::drafts::{PathFault, RelPath, folded_name};
use crate::text::escaped;

/// Longer lines are cut in code frames.
const MAX_SOURCE_CHARS: usize = 200;

/// What a path in a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A regular file with the owner's executable bit.
    Executable,
    /// A symbolic link; its content is the target.
    Link,
    /// A commit of another repository; its content is the commit id.
    Submodule,
    /// Anything else, such as a device or a mode that git does not define.
    Other,
}

impl EntryKind {
    /// The kind of a mode in a git tree.
    pub fn of_git_mode(mode: u32) -> Self {
        match mode {
            // Old versions of git wrote 100664.
            0o100_644 | 0o100_664 => Self::File,
            0o100_755 => Self::Executable,
            0o120_000 => Self::Link,
            0o160_000 => Self::Submodule,
            _ => Self::Other,
        }
    }

    fn is_regular(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }
}

/// The content of one side of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryContent {
    /// All of it.
    Bytes(Vec<u8>),
    /// Not read, because it has more bytes than the policy allows.
    TooLarge(u64),
    /// Could not be read.
    Unreadable,
}

/// One side of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// What the path is.
    pub kind: EntryKind,
    /// Its content.
    pub content: EntryContent,
}

impl FileEntry {
    /// A regular file.
    pub fn file(bytes: impl Into<Vec<u8>>, executable: bool) -> Self {
        let kind = if executable { EntryKind::Executable } else { EntryKind::File };
        Self { kind, content: EntryContent::Bytes(bytes.into()) }
    }

    /// A symbolic link.
    pub fn link(target: impl Into<Vec<u8>>) -> Self {
        Self { kind: EntryKind::Link, content: EntryContent::Bytes(target.into()) }
    }

    fn is_regular(&self) -> bool {
        self.kind.is_regular()
    }

    /// The content of a regular file that was read.
    fn regular(&self) -> Option<FileContent<'_>> {
        match &self.content {
            EntryContent::Bytes(bytes) if self.is_regular() => {
                Some(FileContent { bytes, executable: self.kind == EntryKind::Executable })
            }
            _ => None,
        }
    }
}

/// A changed path: what it was and what it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The path after the change, or the path of a deleted file. Any bytes: invalid paths are
    /// rejected.
    pub path: Vec<u8>,
    /// The path before the change, if the file is renamed.
    pub renamed_from: Option<Vec<u8>>,
    /// `None` if the path is new.
    pub old: Option<FileEntry>,
    /// `None` if the path is deleted.
    pub new: Option<FileEntry>,
    /// Other paths that some file systems treat as the same path; see [`TreeNames`].
    pub twins: Vec<String>,
    /// Whether git ignores the path.
    pub ignored: bool,
    /// Whether a parent directory has an entry `HEAD`; see [`TreeNames`].
    pub below_head: bool,
}

impl ChangedFile {
    /// A change without context.
    pub fn new(path: impl Into<Vec<u8>>, old: Option<FileEntry>, new: Option<FileEntry>) -> Self {
        Self {
            path: path.into(),
            renamed_from: None,
            old,
            new,
            twins: Vec::new(),
            ignored: false,
            below_head: false,
        }
    }

    fn status(&self) -> FileStatus {
        match (&self.old, &self.new) {
            _ if self.renamed_from.is_some() => FileStatus::Renamed,
            (None, _) => FileStatus::Added,
            (_, None) => FileStatus::Deleted,
            _ => FileStatus::Modified,
        }
    }
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Content, mode or kind changed.
    Modified,
    /// It has another path, and perhaps other content.
    Renamed,
}

/// A finding about a changed file, or about all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeFinding {
    /// The rule.
    pub rule: GateRule,
    /// The policy's action.
    pub action: GateAction,
    /// Line in the new file, from 1.
    pub line: Option<usize>,
    /// Fixed text of the rule; never quotes the change.
    pub message: String,
    /// The line itself, cut and without credentials, for display. `None` for findings about
    /// credentials.
    #[serde(skip)]
    pub source: Option<String>,
}

/// The decision on one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDecision {
    /// The path, safe to print; see [`shown_path`].
    pub path: String,
    /// The old path of a renamed file, safe to print.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// What happened to the path.
    pub status: FileStatus,
    /// The most severe action of the findings.
    pub action: GateAction,
    /// Line counts.
    pub stats: LineStats,
    /// Ordered by line.
    pub findings: Vec<ChangeFinding>,
    /// The valid ones of the new and the old path, in this order.
    #[serde(skip)]
    places: Vec<RelPath>,
}

impl FileDecision {
    /// Keeps what matters about a version of a file that later commits replaced: credentials, which
    /// stay in the history. `None` if there are none.
    pub fn of_earlier_commit(self, commit: &str) -> Option<Self> {
        let mut findings = self.findings;
        findings
            .retain(|one| matches!(one.rule, GateRule::SecretSpecific | GateRule::SecretGeneric));
        for finding in &mut findings {
            finding.message = format!("{} (in commit {commit})", finding.message);
            // The line is one of an old version.
            finding.line = None;
        }
        findings.dedup();
        let action = most_severe(&findings);
        (!findings.is_empty()).then_some(Self {
            findings,
            action,
            stats: LineStats::default(),
            ..self
        })
    }
}

/// The decision on a set of changed files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeSetDecision {
    /// The most severe action of all findings.
    pub action: GateAction,
    /// Hash of the policy.
    pub policy: Sha256Hex,
    /// Totals over all files.
    pub stats: LineStats,
    /// Findings about the whole change.
    pub findings: Vec<ChangeFinding>,
    /// The files, ordered by path.
    pub files: Vec<FileDecision>,
}

/// Judges one changed file. Pure and total; once `stop` is set it returns soon, with an incomplete
/// decision that must be discarded.
pub fn judge_changed_file(
    policy: &Policy,
    file: &ChangedFile,
    key: &FingerprintKey,
    today: PolicyDate,
    stop: &AtomicBool,
) -> FileDecision {
    let mut seen = Vec::new();
    let to = path_of(&file.path, file.old.is_none() || file.renamed_from.is_some(), &mut seen);
    let from = file.renamed_from.as_deref().and_then(|path| path_of(path, false, &mut seen));
    seen.extend(kind_matches(file));
    let mut stats = LineStats::default();
    // A file with an invalid path is judged, too, so that all its findings are reported.
    let stand_in = || RelPath::parse("policy.toml").ok();
    if let Some(path) = to.clone().or_else(stand_in) {
        let (of_content, lines) = content_matches(policy, file, &path, from.as_ref(), key, stop);
        seen.extend(of_content);
        stats = lines;
    }
    if file.renamed_from.is_some() && from.is_none() {
        // Without a valid old path, a pure rename looks like no change.
        seen.retain(|one| one.rule != GateRule::DiffEmpty);
        seen.push(RuleMatch::new(GateRule::FileRename, None, "file is renamed"));
    }
    let is_own = |path: &Option<RelPath>| path.as_ref().is_some_and(is_own_configuration);
    if is_own(&to) || is_own(&from) {
        seen.retain(|one| one.rule != GateRule::PathDenied);
        seen.push(own_configuration());
    }
    let mut findings: Vec<ChangeFinding> = seen
        .into_iter()
        .filter_map(|one| with_action(policy, to.as_ref().or(from.as_ref()), one, today))
        .collect();
    findings.sort_by_key(|finding| finding.line);
    findings.dedup();
    if let Some(new) = file.new.as_ref().and_then(FileEntry::regular) {
        add_sources(&mut findings, new.bytes);
    }
    FileDecision {
        path: shown_path(&file.path),
        renamed_from: file.renamed_from.as_deref().map(shown_path),
        status: file.status(),
        action: most_severe(&findings),
        stats,
        findings,
        places: to.into_iter().chain(from).collect(),
    }
}

/// Combines the decisions on files. `unread` is the number of further changed files that were not
/// judged. Without `looked`, the caller runs the policy's checks and its reviewing model
/// elsewhere; otherwise those without a result are escalated.
pub fn decide_change_set(
    policy: &Policy,
    mut files: Vec<FileDecision>,
    unread: usize,
    looked: Option<&CheckResults>,
    today: PolicyDate,
) -> ChangeSetDecision {
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut stats = LineStats::default();
    for file in &files {
        stats.add(&file.stats);
    }
    let mut seen = Vec::new();
    let (count, most) = (files.len() + unread, policy.limits.max_files_per_changeset);
    if count > most {
        let words = format!("{count} changed files (limit: {most})");
        seen.push(RuleMatch::new(GateRule::DiffMaxFiles, None, words));
    }
    if unread > 0 {
        let words = format!("{unread} changed files were not checked");
        seen.push(RuleMatch::new(GateRule::GateError, None, words));
    }
    if count > 0 {
        seen.extend(set_matches(policy, &stats));
    }
    let places: Vec<&RelPath> = files.iter().flat_map(|file| &file.places).collect();
    if let Some(looked) = looked {
        seen.extend(checks::check_findings(policy, places.iter().copied(), &looked.checks));
        let doubts = reviewer::review_findings(policy, &places, looked.review.as_ref());
        seen.extend(doubts.into_iter().map(|(_, doubt)| RuleMatch { line: None, ..doubt }));
    }
    let first = places.first().copied();
    let findings: Vec<ChangeFinding> =
        seen.into_iter().filter_map(|one| with_action(policy, first, one, today)).collect();
    let worst = files.iter().map(|file| file.action).max().unwrap_or(GateAction::Allow);
    let action = worst.max(most_severe(&findings));
    ChangeSetDecision { action, policy: policy.hash(), stats, findings, files }
}

fn most_severe(findings: &[ChangeFinding]) -> GateAction {
    findings.iter().map(|finding| finding.action).max().unwrap_or(GateAction::Allow)
}

/// A path as text that is safe to print: no control or invisible characters, no credentials.
pub fn shown_path(path: &[u8]) -> String {
    hide_secrets(&escaped(&String::from_utf8_lossy(path))).0
}

/// Assigns the policy's action. Without a valid path, no exception applies.
fn with_action(
    policy: &Policy,
    path: Option<&RelPath>,
    seen: RuleMatch,
    today: PolicyDate,
) -> Option<ChangeFinding> {
    let found = match path {
        Some(path) => super::apply_policy(policy, path, seen, today)
            .map(|one| (one.rule, one.action, one.line, one.message)),
        None => Some((seen.rule, policy.rule(seen.rule), seen.line, seen.message)),
    };
    let (rule, action, line, message) = found?;
    (action > GateAction::Allow).then_some(ChangeFinding {
        rule,
        action,
        line,
        message,
        source: None,
    })
}

/// Parses a path. Faults become findings.
fn path_of(bytes: &[u8], is_new: bool, seen: &mut Vec<RuleMatch>) -> Option<RelPath> {
    let invalid = |words: &str| RuleMatch::new(GateRule::PathInvalid, None, words);
    let Ok(text) = std::str::from_utf8(bytes) else {
        seen.push(invalid("path is not UTF-8"));
        return None;
    };
    if scan(bytes, &FingerprintKey::new([0; 32]))
        .secrets
        .iter()
        .any(|secret| secret.tier == SecretTier::Specific)
    {
        seen.push(RuleMatch::new(GateRule::SecretSpecific, None, "credential in the path"));
    }
    match RelPath::parse(text) {
        Ok(path) => {
            if is_new && RelPath::parse_new(text) == Err(PathFault::NotComposed) {
                let words = "new name is not in Unicode's composed form (NFC)";
                seen.push(RuleMatch::new(GateRule::PathTwin, None, words));
            }
            Some(path)
        }
        Err(PathFault::Reserved) if is_moothall_directory(text) => {
            seen.push(own_configuration());
            None
        }
        Err(fault) => {
            seen.push(invalid(&fault.to_string()));
            None
        }
    }
}

/// Whether the only reserved directory of a path is the root's `.moothall`, which a repository may
/// contain.
fn is_moothall_directory(path: &str) -> bool {
    let rest = path.strip_prefix(".moothall/").unwrap_or_default();
    RelPath::parse(rest).is_ok()
}

/// Files that configure Moothall itself and have a valid path.
fn is_own_configuration(path: &RelPath) -> bool {
    let folded = path.folded();
    folded == "moothall.toml"
        || folded.ends_with("/moothall.toml")
        || folded.starts_with("_handoff/")
}

fn own_configuration() -> RuleMatch {
    let words = "configures Moothall itself; the policy of the base commit judges this change";
    RuleMatch::new(GateRule::PolicyChanged, None, words)
}

/// Links, submodules and contents that were not read.
fn kind_matches(file: &ChangedFile) -> Vec<RuleMatch> {
    let mut seen = Vec::new();
    for (side, is_new) in [(&file.old, false), (&file.new, true)] {
        let Some(entry) = side else { continue };
        match (entry.kind, &entry.content) {
            (EntryKind::Link, EntryContent::Bytes(target)) => {
                let words = match (&file.old, &file.new) {
                    (Some(old), Some(new)) if old.kind != new.kind => {
                        "symbolic link in place of a file, or the reverse"
                    }
                    _ => "symbolic link",
                };
                seen.push(RuleMatch::new(GateRule::FileLink, None, words));
                if is_new && leaves_repository(&file.path, target) {
                    let words = "symbolic link that leaves the repository";
                    seen.push(RuleMatch::new(GateRule::FileLinkOutside, None, words));
                }
                if is_new && !scan(target, &FingerprintKey::new([0; 32])).is_clean() {
                    let words = "credential in the target of a link";
                    seen.push(RuleMatch::new(GateRule::SecretSpecific, None, words));
                }
            }
            (EntryKind::Submodule, _) => {
                let words = "submodule: the files of its commit are not checked";
                seen.push(RuleMatch::new(GateRule::FileSubmodule, None, words));
            }
            (EntryKind::Other, _) => {
                let words = "neither a file, a link nor a submodule";
                seen.push(RuleMatch::new(GateRule::GateError, None, words));
            }
            (_, EntryContent::TooLarge(bytes)) if is_new => {
                let words = format!("{bytes} bytes: the content is not checked");
                seen.push(RuleMatch::new(GateRule::ContentTooLarge, None, words));
            }
            // The old content of a deleted file does not matter.
            (_, EntryContent::TooLarge(_)) if file.new.is_some() => {
                let words = "the old version is too large to compare";
                seen.push(RuleMatch::new(GateRule::ContentTooLarge, None, words));
            }
            (_, EntryContent::Unreadable) => {
                let words = "the content could not be read";
                seen.push(RuleMatch::new(GateRule::GateError, None, words));
            }
            (_, EntryContent::Bytes(_) | EntryContent::TooLarge(_)) => {}
        }
    }
    seen
}

/// Whether a link at a path points out of the repository, to a reserved directory, or to a place
/// that cannot be determined.
fn leaves_repository(path: &[u8], target: &[u8]) -> bool {
    let (Ok(path), Ok(target)) = (std::str::from_utf8(path), std::str::from_utf8(target)) else {
        return true;
    };
    if target.is_empty() || target.starts_with('/') || target.contains(['\\', ':', '\0']) {
        return true;
    }
    let mut place: Vec<&str> = path.split('/').collect();
    place.pop();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                if place.pop().is_none() {
                    return true;
                }
            }
            _ => place.push(name),
        }
    }
    // `..` behind a link is resolved by the link's target, not by its name.
    let climbs_late = target
        .split('/')
        .skip_while(|name| matches!(*name, ".." | "." | ""))
        .any(|name| name == "..");
    climbs_late || (!place.is_empty() && RelPath::parse(&place.join("/")).is_err())
}

/// Everything that the rules for drafts say about the file.
fn content_matches(
    policy: &Policy,
    file: &ChangedFile,
    path: &RelPath,
    from: Option<&RelPath>,
    key: &FingerprintKey,
    stop: &AtomicBool,
) -> (Vec<RuleMatch>, LineStats) {
    // A deleted file counts as deleted even if its old content was not read.
    let unread = FileContent { bytes: b"", executable: false };
    let old = file.old.as_ref().filter(|entry| entry.is_regular());
    let base = match &file.new {
        None => old.map(|entry| entry.regular().unwrap_or(unread)),
        Some(_) => old.and_then(FileEntry::regular),
    };
    let draft = file.new.as_ref().and_then(FileEntry::regular);
    let change = FileChange {
        path: from.unwrap_or(path),
        rename_to: from.map(|_| path),
        base,
        draft,
        around: FileContext {
            twins: &file.twins,
            ignored: file.ignored,
            below_head: file.below_head,
            origin: None,
        },
    };
    if base.is_some() && draft.is_none() && file.new.is_some() {
        let mut seen = of_paths(policy, &change);
        if file.new.as_ref().is_some_and(|entry| !entry.is_regular()) {
            let words = "file is replaced by something else";
            seen.push(RuleMatch::new(GateRule::FileDelete, None, words));
        }
        return (seen, LineStats::default());
    }
    if base.is_none() && draft.is_none() {
        let mut seen = of_paths(policy, &change);
        if file.new.is_none() {
            seen.push(RuleMatch::new(GateRule::FileDelete, None, "file is deleted"));
        }
        return (seen, LineStats::default());
    }
    file_matches(policy, &change, key, stop)
}

/// Adds the lines that findings are about. Lines with credentials are not shown.
fn add_sources(findings: &mut [ChangeFinding], bytes: &[u8]) {
    let hides = |rule: GateRule| matches!(rule, GateRule::SecretSpecific | GateRule::SecretGeneric);
    let wanted: BTreeSet<usize> = findings
        .iter()
        .filter(|finding| !hides(finding.rule))
        .filter_map(|finding| finding.line)
        .collect();
    let Some(last) = wanted.last() else { return };
    let secret_lines: BTreeSet<usize> = findings
        .iter()
        .filter(|finding| hides(finding.rule))
        .filter_map(|finding| finding.line)
        .collect();
    let text = String::from_utf8_lossy(bytes);
    let lines = text
        .lines()
        .take(*last)
        .enumerate()
        .filter(|(at, _)| wanted.contains(&(at + 1)) && !secret_lines.contains(&(at + 1)));
    let shown: BTreeMap<usize, String> = lines
        .map(|(at, line)| {
            // Hides credentials before cutting: half of one would not be recognized.
            let hidden = hide_secrets(line).0;
            (at + 1, hidden.chars().take(MAX_SOURCE_CHARS).collect())
        })
        .collect();
    for finding in findings.iter_mut().filter(|finding| !hides(finding.rule)) {
        finding.source = finding.line.and_then(|line| shown.get(&line).cloned());
    }
}

/// The names in a tree, to find new names that collide with them.
#[derive(Debug, Clone, Default)]
pub struct TreeNames {
    /// Every path and every directory above one, by its form on file systems that fold names.
    spellings: BTreeMap<String, BTreeSet<String>>,
}

impl TreeNames {
    /// Adds a path and the directories above it.
    pub fn add(&mut self, path: &str) {
        let mut end = path.len();
        loop {
            let name = &path[..end];
            let spellings = self.spellings.entry(folded(name)).or_default();
            // A known name is known with everything above it.
            if !spellings.insert(name.to_owned()) {
                return;
            }
            match name.rfind('/') {
                Some(slash) => end = slash,
                None => return,
            }
        }
    }

    /// Other spellings of a path or of a directory above it.
    pub fn twins(&self, path: &str) -> Vec<String> {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        let mut twins = Vec::new();
        for end in ends {
            let name = &path[..end];
            let spellings = self.spellings.get(&folded(name)).into_iter().flatten();
            twins.extend(spellings.filter(|known| *known != name).cloned());
        }
        twins
    }

    /// Whether a directory above the path, or the root, has an entry `HEAD`, so that git may treat
    /// it as a repository.
    pub fn is_below_head(&self, path: &str) -> bool {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        self.spellings.contains_key("head")
            || above
                .into_iter()
                .any(|name| self.spellings.contains_key(&format!("{}/head", folded(name))))
    }
}

fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    folded_name(name)
}

#[cfg(test)]
#[path = "change_set_tests.rs"]
mod tests;
