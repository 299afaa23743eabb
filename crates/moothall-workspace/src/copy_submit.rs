//! Submits the changes of a private copy: files without findings are applied, files that need a
//! person wait for review as drafts, and the rest stays in the copy.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Draft, DraftId, DraftState, RelPath};
use moothall_core::gate::{
    ChangeFinding, ChangeSetDecision, ChangedFile, EntryContent, EntryKind, FileEntry, GateAction,
    GateFinding, GateRule, shown_path,
};
use rustix::fs::{FileType, Mode};
use serde::Serialize;

use super::base_index::BaseIndex;
use super::change_set::judge_change_set;
use super::copy_changes::CopyChanges;
use super::error::DraftError;
use super::submit::today;
use super::{DraftCaller, DraftEdit, DraftStore, FileRequirement};

/// What happened to a changed file of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyOutcome {
    /// It is in the workspace.
    Applied,
    /// It waits for review as a draft.
    NeedsReview,
    /// The gate rejected it. It stays in the copy.
    Rejected,
    /// A draft cannot contain it. It stays in the copy.
    Left,
}

impl CopyOutcome {
    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::NeedsReview => "needs_review",
            Self::Rejected => "rejected",
            Self::Left => "left",
        }
    }
}

/// The result for one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CopyFileResult {
    /// The path, safe to print.
    pub path: String,
    pub outcome: CopyOutcome,
    pub findings: Vec<ChangeFinding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<DraftId>,
}

/// The gate's decision on a copy, before anything is applied.
#[derive(Debug, Clone)]
pub struct CopyVerdict {
    pub decision: ChangeSetDecision,
    /// One per file of the copy.
    results: Vec<CopyFileResult>,
    /// Findings about the whole copy, for the drafts.
    more: Vec<ChangeFinding>,
}

impl CopyVerdict {
    /// The files as they will be handled, unless something changes in the meantime. Files that would
    /// be applied have the outcome `Applied`.
    pub fn results(&self) -> &[CopyFileResult] {
        &self.results
    }

    /// Requires a person for everything that would be applied.
    pub fn hold(&mut self, rule: GateRule, message: impl Into<String>) {
        let action = GateAction::Escalate;
        self.more.push(ChangeFinding {
            rule,
            action,
            line: None,
            message: message.into(),
            source: None,
        });
        for result in &mut self.results {
            if result.outcome == CopyOutcome::Applied {
                result.outcome = CopyOutcome::NeedsReview;
            }
        }
    }

    /// Writes the files that would be applied as the upper directory of an overlay over the
    /// workspace.
    pub fn write_accepted(&self, changes: &CopyChanges, upper: &Path) -> io::Result<()> {
        for (file, result) in changes.files.iter().zip(&self.results) {
            if result.outcome != CopyOutcome::Applied {
                continue;
            }
            let invalid = || io::Error::other("a file cannot be written");
            let path = upper.join(draft_path(file).ok_or_else(invalid)?.as_str());
            if let Some(folder) = path.parent() {
                fs_err::create_dir_all(folder)?;
            }
            match (&file.new, draft_text(file)) {
                (Some(new), Some(Some(text))) => {
                    fs_err::write(&path, text)?;
                    let mode = if new.kind == EntryKind::Executable { 0o755 } else { 0o644 };
                    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
                }
                (None, _) => {
                    // How an overlay records a deletion. Everyone may create this device.
                    let (kind, mode) = (FileType::CharacterDevice, Mode::empty());
                    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0)?;
                }
                _ => return Err(invalid()),
            }
        }
        Ok(())
    }

    /// The findings about the whole copy.
    pub fn findings(&self) -> impl Iterator<Item = &ChangeFinding> {
        self.decision.findings.iter().chain(&self.more)
    }

    /// Whether any file would be applied.
    pub fn has_accepted(&self) -> bool {
        self.results.iter().any(|result| result.outcome == CopyOutcome::Applied)
    }
}

impl DraftStore {
    /// Judges the changes of a copy as one change set. Changes nothing.
    pub fn judge_copy(&self, changes: &CopyChanges, base: &BaseIndex) -> CopyVerdict {
        let decision = judge_change_set(&self.policy, &changes.files, None, today(self.now()));
        let workspace = &self.options.workspace;
        let is_held = decision.findings.iter().any(|one| one.action >= GateAction::Escalate);
        let result = |file: &ChangedFile| {
            let path = shown_path(&file.path);
            let judged = decision.files.iter().find(|one| one.path == path);
            // A file that was not judged in time needs a person.
            let action = judged.map_or(GateAction::Escalate, |one| one.action);
            let mut findings = judged.map_or_else(Vec::new, |one| one.findings.clone());
            let is_moved = !std::str::from_utf8(&file.path)
                .is_ok_and(|path| base.is_unchanged(workspace, path));
            if is_moved {
                findings.push(conflict());
            }
            let outcome = match draft_path(file) {
                _ if action == GateAction::Reject => CopyOutcome::Rejected,
                None => CopyOutcome::Left,
                Some(_) if is_held || is_moved || action == GateAction::Escalate => {
                    CopyOutcome::NeedsReview
                }
                Some(_) => CopyOutcome::Applied,
            };
            CopyFileResult { path, outcome, findings, draft: None }
        };
        let results = changes.files.iter().map(result).collect();
        let mut verdict = CopyVerdict { decision, results, more: Vec::new() };
        if !changes.git.settings.is_empty() {
            let message =
                "the agent changed git settings or hooks in its copy; they are not applied";
            verdict.hold(GateRule::CopyGitSettings, message);
        }
        if !base.is_head_unchanged(workspace) {
            let message = "the workspace has another commit or branch than when the agent started";
            verdict.hold(GateRule::CopyConflict, message);
        }
        verdict
    }

    /// Applies the accepted files and submits the others for review. Rejected files are recorded in
    /// the audit log. `task` is the beginning of the names of the drafts' tasks.
    pub fn submit_copy(
        &self,
        caller: &DraftCaller,
        task: &str,
        summary: &str,
        changes: &CopyChanges,
        base: &BaseIndex,
        verdict: CopyVerdict,
    ) -> Result<Vec<CopyFileResult>, DraftError> {
        let mut results = verdict.results.clone();
        let limits = &self.policy.limits;
        let batch = limits.max_files_per_changeset.min(limits.max_open_drafts_per_task).max(1);
        let mut number = 0;
        for group in [CopyOutcome::Applied, CopyOutcome::NeedsReview, CopyOutcome::Rejected] {
            // Conflicts that are found while drafts are made move files to the next group.
            let members: Vec<usize> =
                (0..results.len()).filter(|at| results[*at].outcome == group).collect();
            for chunk in members.chunks(batch) {
                number += 1;
                let task = format!("{task}-{number}");
                let mut drafts = Vec::new();
                for at in chunk {
                    let (file, result) = (&changes.files[*at], &mut results[*at]);
                    match self.propose(caller, &task, file, base, group) {
                        Ok(Some(draft)) => drafts.push((*at, draft)),
                        Ok(None) => {
                            result.findings.push(conflict());
                            result.outcome = CopyOutcome::NeedsReview;
                        }
                        Err(error) if error.is_refusal() => {
                            result.findings.push(refused(&error));
                            if group != CopyOutcome::Rejected {
                                result.outcome = CopyOutcome::Left;
                            }
                        }
                        Err(error) => return Err(error),
                    }
                }
                self.submit_batch(caller, summary, group, &drafts, &verdict, &mut results)?;
            }
        }
        Ok(results)
    }

    fn submit_batch(
        &self,
        caller: &DraftCaller,
        summary: &str,
        group: CopyOutcome,
        drafts: &[(usize, Draft)],
        verdict: &CopyVerdict,
        results: &mut [CopyFileResult],
    ) -> Result<(), DraftError> {
        let Some((first, _)) = drafts.first() else { return Ok(()) };
        let mut more = Vec::new();
        if group == CopyOutcome::NeedsReview {
            let path =
                |at: usize| drafts.iter().find(|(one, _)| *one == at).map(|(_, draft)| &draft.path);
            let of_set = verdict.findings().map(|finding| (*first, finding));
            let of_files = drafts.iter().flat_map(|(at, _)| {
                results[*at].findings.iter().map(move |finding| (*at, finding))
            });
            // The gate repeats its own findings about files.
            let is_ours = |rule: GateRule| matches!(rule, GateRule::CopyConflict);
            let of_files = of_files.filter(|(_, finding)| is_ours(finding.rule));
            more.extend(of_set.chain(of_files).filter_map(|(at, finding)| {
                Some(GateFinding {
                    rule: finding.rule,
                    action: finding.action.clamp(GateAction::Warn, GateAction::Escalate),
                    path: path(at)?.clone(),
                    line: None,
                    message: finding.message.clone(),
                    fingerprint: None,
                })
            }));
            // Nothing of this group is applied, even if the gate finds nothing about a draft alone.
            let is_escalated = |finding: &ChangeFinding| finding.action >= GateAction::Escalate;
            let mut findings = drafts.iter().flat_map(|(at, _)| &results[*at].findings);
            if more.iter().all(|one| one.action < GateAction::Escalate)
                && !findings.any(is_escalated)
                && let Some(path) = path(*first)
            {
                more.push(GateFinding {
                    rule: GateRule::GateError,
                    action: GateAction::Escalate,
                    path: path.clone(),
                    line: None,
                    message: "part of a change that needs review".to_owned(),
                    fingerprint: None,
                });
            }
        }
        let ids: Vec<DraftId> = drafts.iter().map(|(_, draft)| draft.id).collect();
        let submitted = self.submit_with(caller, &ids, summary, &more)?;
        for ((at, draft), now) in drafts.iter().zip(&submitted.drafts) {
            let result = &mut results[*at];
            result.draft = Some(draft.id);
            result.outcome = match now.state {
                DraftState::Applied => CopyOutcome::Applied,
                DraftState::Escalated | DraftState::Conflict => CopyOutcome::NeedsReview,
                _ => CopyOutcome::Rejected,
            };
            if now.state == DraftState::Conflict {
                result.findings.push(conflict());
            }
            if result.outcome == CopyOutcome::Rejected {
                result.draft = None;
                // The copy has the content; a later submission makes a new draft.
                self.discard(caller, draft.id)?;
            }
        }
        Ok(())
    }

    /// Makes a draft of a changed file. `None` if it would be applied and the file has changed in
    /// the meantime.
    fn propose(
        &self,
        caller: &DraftCaller,
        task: &str,
        file: &ChangedFile,
        base: &BaseIndex,
        group: CopyOutcome,
    ) -> Result<Option<Draft>, DraftError> {
        let Some((path, text)) = draft_path(file).zip(draft_text(file)) else {
            return Err(DraftError::Input("a draft cannot contain this file".to_owned()));
        };
        let existing = match file.old {
            Some(_) => FileRequirement::Must,
            None => FileRequirement::MayNot,
        };
        let (draft, _) = self.request(caller, task, path.as_str(), existing)?;
        let judged = match &file.old {
            Some(FileEntry { content: EntryContent::Bytes(bytes), .. }) => {
                Some(Sha256Hex::of(bytes))
            }
            _ => None,
        };
        // The draft's base was read between two looks at the file, so it is what the agent knew.
        let is_base = draft.base.map(|file| file.sha256) == judged
            && base.is_unchanged(&self.options.workspace, path.as_str());
        if group == CopyOutcome::Applied && !is_base {
            self.discard(caller, draft.id)?;
            return Ok(None);
        }
        let Some(text) = text else {
            return self.write(caller, draft.id, DraftEdit::Delete, None).map(Some);
        };
        let executable = file.new.as_ref().is_some_and(|new| new.kind == EntryKind::Executable);
        let draft = self.write(caller, draft.id, DraftEdit::Content(text), None)?;
        match draft.change.file.is_some_and(|file| file.executable) == executable {
            true => Ok(Some(draft)),
            false => {
                self.write(caller, draft.id, DraftEdit::Executable(executable), None).map(Some)
            }
        }
    }
}

/// The path of a change that a draft can contain: both sides are regular text files, or missing.
fn draft_path(file: &ChangedFile) -> Option<RelPath> {
    let is_text = |side: &Option<FileEntry>| match side {
        None => true,
        Some(FileEntry { kind: EntryKind::File | EntryKind::Executable, content }) => {
            matches!(content, EntryContent::Bytes(bytes) if std::str::from_utf8(bytes).is_ok())
        }
        Some(_) => false,
    };
    let path = std::str::from_utf8(&file.path).ok()?;
    (is_text(&file.old) && is_text(&file.new)).then(|| RelPath::parse(path).ok()).flatten()
}

/// The new text, or `Some(None)` if the file is deleted.
fn draft_text(file: &ChangedFile) -> Option<Option<String>> {
    match &file.new {
        None => Some(None),
        Some(FileEntry { content: EntryContent::Bytes(bytes), .. }) => {
            String::from_utf8(bytes.clone()).ok().map(Some)
        }
        Some(_) => None,
    }
}

fn conflict() -> ChangeFinding {
    ChangeFinding {
        rule: GateRule::CopyConflict,
        action: GateAction::Escalate,
        line: None,
        message: "the file changed in the workspace while the agent worked".to_owned(),
        source: None,
    }
}

/// Names the reason, never the content.
fn refused(error: &DraftError) -> ChangeFinding {
    ChangeFinding {
        rule: GateRule::GateError,
        action: GateAction::Escalate,
        line: None,
        message: format!("no draft was made: {error}"),
        source: None,
    }
}
