//! Conversion of drafts to response types.

use moothall_core::drafts::{Draft, DraftId, DraftRefusal, JournalFinding, Principal};
use moothall_core::gate::ReviewChannel;
use moothall_core::text::escaped;
use moothall_workspace::{DiffLine, DiffSide, DraftCaller, DraftError, SubmissionFile, difference};

use super::ServedWorkspace;
use crate::dto::{
    DraftChangeKind, DraftDetail, DraftFile, DraftHunk, DraftLine, DraftPart, DraftReviewRow,
    DraftRow, DraftSide, FindingRow,
};
use crate::times::rfc3339;

/// Maximum diff lines per file in a response. Larger changes are reviewed in the terminal.
const MAX_LINES: usize = 5_000;

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
            DraftReviewRow { say: *say, by: escaped(&by.id), reason: escaped(reason) }
        }),
        conflict: draft.conflict.as_ref().map(ToString::to_string),
    }
}

/// Returns a draft with all files of its submission.
pub(crate) fn detail(workspace: &ServedWorkspace, id: DraftId) -> Result<DraftDetail, DraftError> {
    let gate = DraftCaller::new(Principal::gate());
    let files: Vec<DraftFile> = match workspace.store.shown(&gate, id) {
        Ok(files) => files.iter().map(|shown| file(workspace, shown)).collect(),
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
    Ok(DraftDetail { draft: row(workspace, &draft), files, may_be_approved_here, shows_all })
}

/// Reports whether the response contains every added and removed line.
fn shows_all(files: &[DraftFile]) -> bool {
    let is_hidden = |line: &DraftLine| line.is_cut && line.side != DraftSide::Kept;
    files.iter().all(|file| {
        let mut lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
        !file.is_gone && file.lines_left == 0 && !lines.any(is_hidden)
    })
}

fn file(workspace: &ServedWorkspace, shown: &SubmissionFile) -> DraftFile {
    let SubmissionFile { draft, base, after } = shown;
    let empty = String::new();
    let different = difference(base.as_ref().unwrap_or(&empty), after.as_ref().unwrap_or(&empty));
    let name = draft.change.rename_to.as_ref().unwrap_or(&draft.path);
    let findings = draft.submission.iter().flat_map(|one| &one.findings);
    let mut findings: Vec<FindingRow> =
        findings.filter(|one| one.path == *name).map(found).collect();
    let mut left = MAX_LINES;
    let mut lines_left = 0;
    let mut hunks = Vec::new();
    for lines in &different.hunks {
        let shown = lines.len().min(left);
        left -= shown;
        lines_left += lines.len() - shown;
        if shown > 0 {
            let lines = lines.iter().take(shown).map(|one| line(one, &mut findings));
            hunks.push(DraftHunk { lines: lines.collect() });
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
        hunks,
        findings,
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
        hunks: Vec::new(),
        lines_left: 0,
        is_gone: true,
    }
}

/// Converts a line and moves the findings on it out of `findings`.
fn line(line: &DiffLine, findings: &mut Vec<FindingRow>) -> DraftLine {
    let about = |one: &mut FindingRow| one.line.is_some() && one.line == line.new;
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
