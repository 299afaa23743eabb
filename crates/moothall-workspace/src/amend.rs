//! Review by hunk: approve a part of a submission, edit it before approving it, and comment on
//! lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::Arc;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    AmendedFile, CommentSide, Draft, DraftId, DraftOperation, DraftProposal, DraftRefusal,
    DraftState, FileState, FileVersion, HunkResult, HunkSelection, JournalFinding, LineComment,
    MAX_TEXT_CHARS, Principal, ProposedChange, RelPath, ReviewDecision, ReviewHunk, ReviewHunkKind,
    UnknownHunk, lines_of,
};
use moothall_core::gate::{GateAction, GateFinding, GateRule};
use moothall_core::text::sanitize;

use super::apply::in_state;
use super::diff::DraftDiff;
use super::error::{DraftError, FileFault};
use super::prepared_drafts::{PreparedDrafts, PreparedFile};
use super::submit::{GateReport, SubmissionFile, gate_finding, journal_finding};
use super::{DraftCaller, DraftStore, DraftStoreState};

/// The version of one file that a reviewer approves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAmendment {
    /// Only these hunks, by their ID. None of them rejects the file.
    Hunks(BTreeSet<Sha256Hex>),
    /// This content instead of the proposed one.
    Content {
        text: String,
        /// The approved hunks, which decide about the file's path and mode; `None` for all.
        approved: Option<BTreeSet<Sha256Hex>>,
    },
}

/// The gate's decision on what a reviewer made of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmendReport {
    /// Seal of the result.
    pub seal: Sha256Hex,
    /// Hash of the result and of the findings to confirm. A reviewer confirms exactly these.
    pub confirm: Sha256Hex,
    pub judged: GateReport,
    /// Findings that need a person and that the reviewer was not shown with the submission.
    pub unconfirmed: Vec<JournalFinding>,
}

/// The result of approving a changed version of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AmendResult {
    /// Recorded, and applied unless there was a conflict.
    Decided(Vec<Draft>),
    /// Nothing was recorded: the reviewer must confirm new findings first.
    Unconfirmed(AmendReport),
    /// Nothing was recorded: the gate rejects the result.
    Rejected(AmendReport),
}

/// A hunk with its number in the submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionHunk {
    /// From 1, across all files of the submission.
    pub number: usize,
    pub draft: DraftId,
    pub hunk: ReviewHunk,
}

impl FileAmendment {
    /// Another content, with the proposed path and mode.
    pub fn content(text: impl Into<String>) -> Self {
        Self::Content { text: text.into(), approved: None }
    }
}

impl SubmissionFile {
    /// The file as hunks that can be approved one by one.
    pub fn proposal(&self) -> DraftProposal {
        let version = |text: &Option<String>, file: Option<FileState>| {
            let (text, file) = text.clone().zip(file)?;
            Some(FileVersion { text, executable: file.executable })
        };
        let Draft { path, change, base, .. } = &self.draft;
        DraftProposal {
            path: path.clone(),
            rename_to: change.rename_to.clone(),
            base: version(&self.base, *base),
            after: version(&self.after, change.file),
        }
    }

    /// For each hunk of this file's diff, the hunk of the submission that is approved with it. `None`
    /// if the file is approved as a whole.
    pub fn hunks_of_diff<'a>(
        &self,
        diff: &DraftDiff,
        hunks: &'a [SubmissionHunk],
    ) -> Vec<Option<&'a SubmissionHunk>> {
        let is_ours = |one: &&SubmissionHunk| {
            one.draft == self.draft.id && matches!(one.hunk.kind, ReviewHunkKind::Lines(_))
        };
        let ours: Vec<_> = hunks.iter().filter(is_ours).collect();
        match ours.len() == diff.hunks.len() {
            true => ours.into_iter().map(Some).collect(),
            false => vec![None; diff.hunks.len()],
        }
    }

    /// The hunks of all files of a submission.
    pub fn hunks(files: &[Self]) -> Vec<SubmissionHunk> {
        let of_file = |file: &Self| {
            let draft = file.draft.id;
            file.proposal().hunks().into_iter().map(move |hunk| (draft, hunk))
        };
        let all = files.iter().flat_map(of_file).enumerate();
        all.map(|(at, (draft, hunk))| SubmissionHunk { number: at + 1, draft, hunk }).collect()
    }
}

/// A submission as its reviewer read it.
struct ShownSubmission {
    drafts: Vec<Draft>,
    proposals: Vec<DraftProposal>,
    findings: Vec<JournalFinding>,
    summary: String,
}

/// A submission with the changes of its reviewer.
struct AmendedSubmission {
    /// All files, also those without changes by the reviewer.
    files: Vec<(AmendedFile, Option<FileVersion>)>,
    hunks: Option<HunkSelection>,
}

impl DraftStore {
    /// Approves a changed version of an escalated submission and applies it. Files without an
    /// amendment are approved unchanged.
    ///
    /// The decision is bound to the seal that was shown. The gate judges the result as a whole, with
    /// the checks of the policy, before anything is recorded: what it rejects is refused, and
    /// findings that the reviewer has not seen must be confirmed with [`AmendReport::confirm`].
    #[tracing::instrument(name = "draft_amendment", skip_all)]
    pub fn amend(
        &self,
        caller: &DraftCaller,
        id: DraftId,
        seal: Sha256Hex,
        amendments: &BTreeMap<DraftId, FileAmendment>,
        confirmed: Option<Sha256Hex>,
        reason: &str,
    ) -> Result<AmendResult, DraftError> {
        let shown = self.read_shown(caller, id, seal)?;
        let amended = self.amended(&shown, amendments)?;
        if amended.files.iter().all(|(file, _)| file.change == file.proposed) {
            let drafts = self.review(caller, id, seal, ReviewDecision::Approve, reason)?;
            return Ok(AmendResult::Decided(drafts));
        }
        let reason = self.recordable(reason);
        let files: Vec<AmendedFile> = amended.files.iter().map(|(file, _)| file.clone()).collect();
        let prepared = self.with(|store, inner| {
            let read = |(draft, (file, content)): (&Draft, &(AmendedFile, _))| {
                let changed = Draft { change: file.change.clone(), ..draft.clone() };
                store.prepare_content(inner, &changed, bytes_of(content))
            };
            // A file without changes is not part of the result.
            let all = shown.drafts.iter().zip(&amended.files);
            let changed = all.filter(|(draft, (file, _))| !file.change.is_empty(draft.base));
            let prepared: Vec<PreparedFile> = changed.map(read).collect::<Result<_, _>>()?;
            let ids: Vec<DraftId> = shown.drafts.iter().map(|draft| draft.id).collect();
            let seal = inner.drafts.amended_seal(&ids, &files);
            Ok(PreparedDrafts { seal, files: Arc::new(prepared) })
        })?;
        if prepared.files.is_empty() {
            return Err(DraftRefusal::EmptyResult.into());
        }
        let report = self.judge_amended(&shown, &amended, &prepared)?;
        if report.judged.verdict.action == GateAction::Reject {
            return Ok(AmendResult::Rejected(report));
        }
        if !report.unconfirmed.is_empty() && confirmed != Some(report.confirm) {
            return Ok(AmendResult::Unconfirmed(report));
        }
        let verdict = &report.judged.verdict;
        let command = DraftOperation::Amend {
            draft: id,
            seal,
            policy: verdict.policy,
            action: verdict.action,
            findings: verdict.findings.iter().map(journal_finding).collect(),
            hunks: amended.hunks,
            files: files.into_iter().filter(|file| file.change != file.proposed).collect(),
            reason,
        };
        let contents: Vec<&str> = amended
            .files
            .iter()
            .filter_map(|(_, file)| Some(file.as_ref()?.text.as_str()))
            .collect();
        self.with(|store, inner| {
            if store.stopped.is_cancelled() {
                return Err(DraftError::Stopped);
            }
            // A refused result must not be stored.
            store.require_allowed(inner, caller, command.clone())?;
            store.make_room(inner, contents.iter().map(|text| text.len()).sum())?;
            for text in &contents {
                store.put(text.as_bytes())?;
            }
            store.execute_command(inner, caller, command)?;
            let ids = store.submitted_with(&store.draft_by_id(inner, id)?);
            let accepted = in_state(inner, &ids, DraftState::Accepted);
            store.apply(inner, &DraftCaller::new(Principal::gate()), &accepted)?;
            let drafts = ids.iter().map(|id| store.draft_by_id(inner, *id));
            Ok(AmendResult::Decided(drafts.collect::<Result<_, _>>()?))
        })
    }

    /// Records comments on lines of an escalated submission. They are bound to the seal that was
    /// shown and go to the worker.
    pub fn comment(
        &self,
        caller: &DraftCaller,
        id: DraftId,
        seal: Sha256Hex,
        comments: Vec<LineComment>,
    ) -> Result<Vec<Draft>, DraftError> {
        let mut recorded = Vec::new();
        for comment in comments {
            let text = sanitize(&comment.text);
            let text = text.trim();
            if text.is_empty() {
                return Err(DraftError::Input("the comment is empty".to_owned()));
            }
            if text.chars().count() > MAX_TEXT_CHARS {
                let message =
                    format!("the comment is too long (limit: {MAX_TEXT_CHARS} characters)");
                return Err(DraftError::Input(message));
            }
            recorded.push(LineComment { text: self.recordable(text), ..comment });
        }
        if recorded.is_empty() {
            return Err(DraftError::Input("no comments given".to_owned()));
        }
        self.with(|store, inner| {
            let command = DraftOperation::Comment { draft: id, seal, comments: recorded.clone() };
            store.require_allowed(inner, caller, command.clone())?;
            let ids = store.submitted_with(&store.draft_by_id(inner, id)?);
            for comment in &recorded {
                store.require_line(inner, &ids, comment)?;
            }
            store.execute_command(inner, caller, command)?;
            ids.iter().map(|id| store.draft_by_id(inner, *id)).collect()
        })
    }

    fn require_line(
        &self,
        inner: &DraftStoreState,
        ids: &[DraftId],
        comment: &LineComment,
    ) -> Result<(), DraftError> {
        for id in ids {
            let draft = self.draft_by_id(inner, *id)?;
            let is_about = draft.path == comment.path
                || draft.change.rename_to.as_ref() == Some(&comment.path);
            if !is_about {
                continue;
            }
            let file = self.prepare_file(inner, &draft)?;
            let side = match comment.side {
                CommentSide::Old => file.base,
                CommentSide::New => file.after,
            };
            let lines =
                side.map_or(0, |(bytes, _)| lines_of(&String::from_utf8_lossy(&bytes)).len());
            if (1..=lines).contains(&comment.line) {
                return Ok(());
            }
        }
        let LineComment { path, line, side, .. } = comment;
        let version = match side {
            CommentSide::Old => "file",
            CommentSide::New => "draft",
        };
        Err(DraftError::Input(format!("the {version} of {path} has no line {line}")))
    }

    /// Reads the submission if the caller may approve it.
    fn read_shown(
        &self,
        caller: &DraftCaller,
        id: DraftId,
        seal: Sha256Hex,
    ) -> Result<ShownSubmission, DraftError> {
        self.with(|store, inner| {
            let command = DraftOperation::Review {
                draft: id,
                seal,
                policy: store.policy.hash(),
                say: ReviewDecision::Approve,
                reason: String::new(),
            };
            store.require_allowed(inner, caller, command)?;
            let first = store.draft_by_id(inner, id)?;
            let (mut drafts, mut proposals) = (Vec::new(), Vec::new());
            for id in store.submitted_with(&first) {
                let draft = store.draft_by_id(inner, id)?;
                let file = store.prepare_file(inner, &draft)?;
                proposals.push(DraftProposal {
                    path: draft.path.clone(),
                    rename_to: draft.change.rename_to.clone(),
                    base: version_of(&draft, file.base)?,
                    after: version_of(&draft, file.after)?,
                });
                drafts.push(draft);
            }
            let submission = first.submission.ok_or(DraftRefusal::Unknown)?;
            let (findings, summary) = (submission.findings, submission.summary);
            Ok(ShownSubmission { drafts, proposals, findings, summary })
        })
    }

    fn amended(
        &self,
        shown: &ShownSubmission,
        amendments: &BTreeMap<DraftId, FileAmendment>,
    ) -> Result<AmendedSubmission, DraftError> {
        if amendments.keys().any(|id| shown.drafts.iter().all(|draft| draft.id != *id)) {
            return Err(DraftRefusal::Unknown.into());
        }
        let (mut files, mut approved, mut number) = (Vec::new(), Vec::new(), 0);
        let mut has_selection = false;
        for (draft, proposal) in shown.drafts.iter().zip(&shown.proposals) {
            let hunks = proposal.hunks();
            let numbers = number + 1..=number + hunks.len();
            number += hunks.len();
            let (rename_to, file, edited) = match amendments.get(&draft.id) {
                None => {
                    approved.extend(numbers);
                    (draft.change.rename_to.clone(), proposal.after.clone(), false)
                }
                Some(FileAmendment::Hunks(chosen)) => {
                    has_selection = true;
                    let result = apply_hunks(proposal, chosen)?;
                    approved.extend(chosen_numbers(numbers, &hunks, chosen));
                    (result.rename_to, result.file, false)
                }
                Some(FileAmendment::Content { text, approved: chosen }) => {
                    self.fits(text.len())?;
                    let all = hunks.iter().map(|hunk| hunk.id).collect();
                    let result = apply_hunks(proposal, chosen.as_ref().unwrap_or(&all))?;
                    let version = match chosen {
                        Some(_) => result.file,
                        None => proposal.after.clone().or_else(|| proposal.base.clone()),
                    };
                    let executable = version.is_some_and(|file| file.executable);
                    let file = FileVersion { text: text.clone(), executable };
                    let edited = proposal.after.as_ref() != Some(&file);
                    (result.rename_to, Some(file), edited)
                }
            };
            let state = file.as_ref().map(|file| FileState {
                sha256: Sha256Hex::of(file.text.as_bytes()),
                executable: file.executable,
            });
            let change = ProposedChange { file: state, rename_to };
            let proposed = draft.change.clone();
            files.push((AmendedFile { draft: draft.id, proposed, change, edited }, file));
        }
        let hunks = has_selection.then_some(HunkSelection { approved, of: number });
        Ok(AmendedSubmission { files, hunks })
    }

    /// Judges the result as one change, as if the worker had submitted it.
    fn judge_amended(
        &self,
        shown: &ShownSubmission,
        amended: &AmendedSubmission,
        prepared: &PreparedDrafts,
    ) -> Result<AmendReport, DraftError> {
        let found = self.run_checks(prepared, &shown.summary)?;
        let mut judged = self.gate_report(prepared, found);
        // The gate does not see the copy of a guarded agent, so its findings are kept.
        let is_of_copy = |rule: GateRule| {
            matches!(
                rule,
                GateRule::CopyConflict | GateRule::CopyGitSettings | GateRule::CheckFailed
            )
        };
        for finding in shown.findings.iter().filter(|one| is_of_copy(one.rule)) {
            let is_known =
                |one: &GateFinding| (one.rule, &one.path) == (finding.rule, &finding.path);
            if !judged.verdict.findings.iter().any(is_known) {
                judged.verdict.action = judged.verdict.action.max(finding.action);
                judged.verdict.findings.push(gate_finding(finding.clone()));
            }
        }
        let edited: BTreeSet<DraftId> = amended
            .files
            .iter()
            .filter(|(file, _)| file.edited)
            .map(|(file, _)| file.draft)
            .collect();
        // Hunks move lines, but their text was shown. An edited text was not.
        let is_edited = |path: &RelPath| {
            let drafts = shown.drafts.iter().filter(|draft| edited.contains(&draft.id));
            let mut paths = drafts
                .flat_map(|draft| std::iter::once(&draft.path).chain(&draft.change.rename_to));
            paths.any(|one| one == path)
        };
        let is_shown = |one: &JournalFinding| {
            let same = |other: &JournalFinding| {
                (other.rule, &other.path, &other.message) == (one.rule, &one.path, &one.message)
                    && other.action >= one.action
                    && (other.line == one.line || !is_edited(&one.path))
            };
            shown.findings.iter().any(same)
        };
        let findings = judged.verdict.findings.iter().map(journal_finding);
        let unconfirmed: Vec<JournalFinding> =
            findings.filter(|one| one.action >= GateAction::Escalate && !is_shown(one)).collect();
        let mut whole = format!("moothall amendment 1\n{}\n", prepared.seal);
        for one in &unconfirmed {
            let line = one.line.map(|line| line.to_string()).unwrap_or_default();
            // Messages are fixed texts, so each line is one finding.
            let _ =
                writeln!(whole, "{} {} {line} {} {}", one.action, one.rule, one.path, one.message);
        }
        let confirm = Sha256Hex::of(whole.as_bytes());
        Ok(AmendReport { seal: prepared.seal, confirm, judged, unconfirmed })
    }
}

fn apply_hunks(
    proposal: &DraftProposal,
    chosen: &BTreeSet<Sha256Hex>,
) -> Result<HunkResult, DraftError> {
    let unknown = |fault: UnknownHunk| DraftError::Input(fault.to_string());
    proposal.with_hunks(chosen).map_err(unknown)
}

fn chosen_numbers(
    numbers: RangeInclusive<usize>,
    hunks: &[ReviewHunk],
    chosen: &BTreeSet<Sha256Hex>,
) -> Vec<usize> {
    let all = numbers.zip(hunks);
    all.filter(|(_, hunk)| chosen.contains(&hunk.id)).map(|(number, _)| number).collect()
}

fn version_of(
    draft: &Draft,
    side: Option<(Vec<u8>, bool)>,
) -> Result<Option<FileVersion>, DraftError> {
    let read = |(bytes, executable): (Vec<u8>, bool)| {
        let text = String::from_utf8(bytes)
            .map_err(|_| DraftError::file(&draft.path, FileFault::NotText))?;
        Ok(FileVersion { text, executable })
    };
    side.map(read).transpose()
}

fn bytes_of(file: &Option<FileVersion>) -> Option<(Vec<u8>, bool)> {
    file.as_ref().map(|file| (file.text.clone().into_bytes(), file.executable))
}
