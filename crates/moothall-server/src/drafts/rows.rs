//! Conversion of drafts to response types.

use moothall_core::drafts::{
    CommentSide, Draft, DraftId, DraftRefusal, JournalFinding, LineComment, Principal,
    ReviewComment, ReviewHunkKind,
};
use moothall_core::gate::{GateFinding, ReviewChannel};
use moothall_core::text::{escaped, escaped_lines, is_hidden};
use moothall_workspace::{
    AmendResult, DiffLine, DiffSide, DraftCaller, DraftError, SubmissionFile, SubmissionHunk,
    difference,
};

use super::ServedWorkspace;
use crate::dto::{
    DraftChangeKind, DraftCommentRow, DraftCommentSide, DraftContent, DraftDetail, DraftFile,
    DraftFileChange, DraftFileChangeKind, DraftHunk, DraftLine, DraftPart, DraftReviewResponse,
    DraftReviewRow, DraftRow, DraftSide, DraftUndecided, FindingRow,
};
use crate::times::rfc3339;

/// Maximum diff lines per file in a response. Larger changes are reviewed in the terminal.
const MAX_LINES: usize = 5_000;
/// Larger contents are edited in the terminal.
const MAX_EDIT_BYTES: usize = 256 << 10;

pub(crate) fn row(workspace: &ServedWorkspace, draft: &Draft) -> DraftRow {
    let submission = draft.submission.as_ref();
    let change = match (&draft.base, &draft.change.file, &draft.change.rename_to) {
        (_, _, Some(_)) => DraftChangeKind::Renamed,
        (None, _, _) => DraftChangeKind::Created,
        (_, None, _) => DraftChangeKind::Deleted,
        _ => DraftChangeKind::Edited,
    };
    DraftRow {
        draft_id: draft.id,
        workspace: workspace.id.clone(),
        task_id: draft.task.clone(),
        owner: escaped(&draft.owner.to_string()),
        path: draft.path.to_string(),
        rename_to: draft.change.rename_to.as_ref().map(ToString::to_string),
        change,
        state: draft.state,
        revision: draft.revision,
        touched_at: rfc3339(draft.touched),
        submitted_at: submission.map(|one| rfc3339(one.at)),
        summary: submission.map_or_else(String::new, |one| escaped(&one.summary)),
        together: submission.map_or_else(|| vec![draft.id], |one| one.drafts.clone()),
        seal: submission.map(|one| one.seal),
        findings: submission.map_or_else(Vec::new, |one| one.findings.iter().map(found).collect()),
        reviewed: submission.and_then(|one| one.reviewed.as_ref()).map(|(say, by, reason)| {
            DraftReviewRow {
                say: *say,
                by: escaped(&by.id),
                reason: escaped(reason),
                has_changes: submission.is_some_and(|one| !one.amended.is_empty()),
            }
        }),
        conflict: draft.conflict.as_ref().map(ToString::to_string),
    }
}

/// Returns a draft with all files of its submission.
pub(crate) fn detail(workspace: &ServedWorkspace, id: DraftId) -> Result<DraftDetail, DraftError> {
    let gate = DraftCaller::new(Principal::gate());
    let mut hunk_count = 0;
    let files: Vec<DraftFile> = match workspace.store.shown(&gate, id) {
        Ok(files) => {
            let hunks = SubmissionFile::hunks(&files);
            hunk_count = hunks.len();
            files.iter().map(|shown| file(workspace, shown, &hunks)).collect()
        }
        Err(DraftError::ContentGone(_) | DraftError::Refused(DraftRefusal::ContentRemoved)) => {
            let draft = workspace.store.status(&gate, id)?;
            let together = draft.submission.map_or_else(|| vec![id], |one| one.drafts);
            let gone = |id: &DraftId| Ok(gone(workspace, &workspace.store.status(&gate, *id)?));
            together.iter().map(gone).collect::<Result<_, DraftError>>()?
        }
        Err(error) => return Err(error),
    };
    // Read the status last, because `shown` may check the draft again.
    let draft = workspace.store.status(&gate, id)?;
    let may_be_approved_here = workspace.store.policy().channels.contains(&ReviewChannel::Web);
    let shows_all = shows_all(&files);
    let draft = row(workspace, &draft);
    Ok(DraftDetail { draft, files, may_be_approved_here, shows_all, hunk_count })
}

/// Whether all lines end the same way. A text field has one kind of line end, so a text with both
/// kinds could not be restored.
fn has_uniform_line_ends(text: &str) -> bool {
    let pairs = text.matches("\r\n").count();
    let [returns, ends] = ['\r', '\n'].map(|end| text.matches(end).count());
    returns == pairs && (pairs == 0 || pairs == ends)
}

/// Returns the proposed content if a text field shows it exactly.
pub(crate) fn content(
    workspace: &ServedWorkspace,
    id: DraftId,
) -> Result<DraftContent, DraftError> {
    let gate = DraftCaller::new(Principal::gate());
    let files = workspace.store.shown(&gate, id)?;
    let file = files.into_iter().find(|file| file.draft.id == id).ok_or(DraftRefusal::Unknown)?;
    let seal = file.draft.submission.map(|one| one.seal);
    let is_plain = |text: &String| {
        let hides = |c: char| !matches!(c, '\n' | '\r' | '\t') && is_hidden(c);
        let is_large = text.len() > MAX_EDIT_BYTES;
        !is_large && has_uniform_line_ends(text) && !text.chars().any(hides)
    };
    let content = Some(file.after.unwrap_or_default()).filter(is_plain);
    Ok(DraftContent { seal, content })
}

/// Converts the result of an approval.
pub(crate) fn review_response(
    workspace: &ServedWorkspace,
    id: DraftId,
    result: &AmendResult,
) -> Result<DraftReviewResponse, DraftError> {
    let (report, is_rejected) = match result {
        AmendResult::Decided(drafts) => {
            let drafts = drafts.iter().map(|draft| row(workspace, draft)).collect();
            return Ok(DraftReviewResponse { drafts, undecided: None });
        }
        AmendResult::Unconfirmed(report) => (report, false),
        AmendResult::Rejected(report) => (report, true),
    };
    let verdict = &report.judged.verdict;
    let of_gate = |one: &GateFinding| FindingRow {
        rule: one.rule.to_string(),
        action: one.action,
        path: one.path.to_string(),
        line: one.line,
        message: one.message.clone(),
    };
    let findings = match is_rejected {
        true => {
            let decisive = verdict.findings.iter().filter(|one| one.action >= verdict.action);
            decisive.map(of_gate).collect()
        }
        false => report.unconfirmed.iter().map(found).collect(),
    };
    let gate = DraftCaller::new(Principal::gate());
    let draft = workspace.store.status(&gate, id)?;
    let undecided = Some(DraftUndecided { is_rejected, confirm: report.confirm, findings });
    Ok(DraftReviewResponse { drafts: vec![row(workspace, &draft)], undecided })
}

/// Reports whether the response contains every added and removed line.
fn shows_all(files: &[DraftFile]) -> bool {
    let is_hidden = |line: &DraftLine| line.is_cut && line.side != DraftSide::Kept;
    files.iter().all(|file| {
        let mut lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
        !file.is_gone && file.lines_left == 0 && !lines.any(is_hidden)
    })
}

fn file(workspace: &ServedWorkspace, shown: &SubmissionFile, all: &[SubmissionHunk]) -> DraftFile {
    let SubmissionFile { draft, base, after } = shown;
    let empty = String::new();
    let different = difference(base.as_ref().unwrap_or(&empty), after.as_ref().unwrap_or(&empty));
    let name = draft.change.rename_to.as_ref().unwrap_or(&draft.path);
    let findings = draft.submission.iter().flat_map(|one| &one.findings);
    let mut findings: Vec<FindingRow> =
        findings.filter(|one| one.path == *name).map(found).collect();
    let comments = draft.submission.iter().flat_map(|one| &one.comments);
    let is_here =
        |one: &&ReviewComment| one.comment.path == *name || one.comment.path == draft.path;
    let mut comments: Vec<DraftCommentRow> = comments.filter(is_here).map(commented).collect();
    let of_lines = shown.hunks_of_diff(&different, all);
    let of_file = all.iter().filter(|one| one.draft == draft.id);
    let changes = of_file.filter(|one| !of_lines.contains(&Some(*one))).map(file_change).collect();
    let mut left = MAX_LINES;
    let mut lines_left = 0;
    let mut hunks = Vec::new();
    for (lines, one) in different.hunks.iter().zip(of_lines) {
        let shown = lines.len().min(left);
        left -= shown;
        lines_left += lines.len() - shown;
        if shown > 0 {
            let lines = lines.iter().take(shown).map(|one| line(one, &mut findings, &mut comments));
            let (hunk_id, number) = one.map(|one| (one.hunk.id, one.number)).unzip();
            hunks.push(DraftHunk { hunk_id, number, lines: lines.collect() });
        }
    }
    let becomes_executable = match (draft.base, draft.change.file) {
        (Some(base), Some(after)) if base.executable != after.executable => Some(after.executable),
        (None, Some(after)) if after.executable => Some(true),
        _ => None,
    };
    DraftFile {
        draft: row(workspace, draft),
        becomes_executable,
        added: different.added,
        removed: different.removed,
        changes,
        hunks,
        findings,
        comments,
        lines_left,
        is_gone: false,
    }
}

fn gone(workspace: &ServedWorkspace, draft: &Draft) -> DraftFile {
    let row = row(workspace, draft);
    DraftFile {
        findings: row.findings.iter().filter(|one| one.path == row.path).cloned().collect(),
        draft: row,
        becomes_executable: None,
        added: 0,
        removed: 0,
        changes: Vec::new(),
        hunks: Vec::new(),
        comments: Vec::new(),
        lines_left: 0,
        is_gone: true,
    }
}

fn file_change(one: &SubmissionHunk) -> DraftFileChange {
    DraftFileChange {
        hunk_id: one.hunk.id,
        number: one.number,
        kind: match one.hunk.kind {
            ReviewHunkKind::Create => DraftFileChangeKind::Create,
            ReviewHunkKind::Delete => DraftFileChangeKind::Delete,
            ReviewHunkKind::Rename => DraftFileChangeKind::Rename,
            ReviewHunkKind::Mode => DraftFileChangeKind::Mode,
            ReviewHunkKind::Lines(_) => DraftFileChangeKind::Lines,
        },
    }
}

fn commented(one: &ReviewComment) -> DraftCommentRow {
    let LineComment { path, side, line, text } = &one.comment;
    DraftCommentRow {
        by: escaped(&one.by.id),
        at: rfc3339(one.at),
        path: path.to_string(),
        side: match side {
            CommentSide::Old => DraftCommentSide::Old,
            CommentSide::New => DraftCommentSide::New,
        },
        line: *line,
        text: escaped_lines(text),
    }
}

/// Converts a line and moves the findings and comments on it out of the lists.
fn line(
    line: &DiffLine,
    findings: &mut Vec<FindingRow>,
    comments: &mut Vec<DraftCommentRow>,
) -> DraftLine {
    let about = |one: &mut FindingRow| one.line.is_some() && one.line == line.new;
    let on_line = |one: &mut DraftCommentRow| match one.side {
        DraftCommentSide::Old => line.old == Some(one.line),
        DraftCommentSide::New => line.new == Some(one.line),
    };
    DraftLine {
        side: match line.side {
            DiffSide::Kept => DraftSide::Kept,
            DiffSide::Added => DraftSide::Added,
            DiffSide::Removed => DraftSide::Removed,
        },
        old: line.old,
        new: line.new,
        parts: line
            .parts
            .iter()
            .map(|part| DraftPart { text: part.text.clone(), is_changed: part.changed })
            .collect(),
        is_cut: line.cut,
        has_no_newline: line.no_newline,
        findings: findings.extract_if(.., about).collect(),
        comments: comments.extract_if(.., on_line).collect(),
    }
}

fn found(finding: &JournalFinding) -> FindingRow {
    FindingRow {
        rule: finding.rule.to_string(),
        action: finding.action,
        path: finding.path.to_string(),
        line: finding.line,
        message: finding.message.clone(),
    }
}
