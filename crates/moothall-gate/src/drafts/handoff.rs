//! Exports drafts as files for other tools, in the layout of the sandbox draft pattern. Write-only:
//! Moothall never reads these files back.

use std::collections::BTreeMap;

use serde_json::json;

use super::identity::{DraftId, TaskId};
use super::notifications::DraftNotification;
use super::state::{Draft, DraftSet, DraftSubmission};
use crate::Sha256Hex;

/// Directory of the export in a workspace.
pub const VIEW: &str = "_handoff";

/// Only the most recently submitted tasks are exported.
const MAX_TASKS: usize = 100;
/// File names up to this length work on every file system.
const MAX_NAME_BYTES: usize = 200;

/// A file of the export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandoffFile {
    /// Content of a draft.
    Draft(Sha256Hex),
    /// Submissions of a task, as JSON.
    Submissions(String),
}

/// Files below `_handoff/drafts` by name: every open draft with content, and the latest
/// submissions.
pub fn handoff_files(drafts: &DraftSet) -> BTreeMap<String, HandoffFile> {
    let names = names(drafts);
    let mut files = BTreeMap::new();
    for (id, name) in &names {
        if let Some(sha256) = drafts.all.get(id).and_then(Draft::head) {
            files.insert(name.clone(), HandoffFile::Draft(sha256));
        }
    }
    for (task, of_task) in tasks(drafts) {
        let text = format!("{:#}\n", submissions(drafts, &names, task, &of_task));
        files.insert(format!("{task}.submission.json"), HandoffFile::Submissions(text));
    }
    files
}

/// A line of `transition.ndjson`, with its line ending.
pub fn transition(seq: u64, at_ms: u64, news: &DraftNotification) -> String {
    let line = json!({
        "seq": seq,
        "at_ms": at_ms,
        "event": news.kind,
        "draft_id": news.draft,
        "task_id": news.task,
        "path": news.path,
        "reasons": news.reasons,
    });
    format!("{line}\n")
}

/// Names drafts as in `watchdog.py.phase10.draft`. Uses the draft ID instead if two drafts would
/// share a name or the name would be too long.
fn names(drafts: &DraftSet) -> BTreeMap<DraftId, String> {
    let shown = |draft: &&Draft| draft.state.is_open() && !draft.content_removed;
    let mut by_name: BTreeMap<String, Vec<DraftId>> = BTreeMap::new();
    for draft in drafts.all().filter(shown) {
        let name = format!("{}.{}.draft", draft.path.name(), draft.task);
        by_name.entry(name).or_default().push(draft.id);
    }
    let mut names = BTreeMap::new();
    for (name, ids) in by_name {
        match ids.as_slice() {
            [id] if name.len() <= MAX_NAME_BYTES => {
                names.insert(*id, name);
            }
            ids => names.extend(ids.iter().map(|id| (*id, format!("{id}.draft")))),
        }
    }
    names
}

/// The most recently submitted tasks with their drafts.
fn tasks(drafts: &DraftSet) -> Vec<(&TaskId, Vec<&Draft>)> {
    let mut by_task: BTreeMap<&TaskId, Vec<&Draft>> = BTreeMap::new();
    for draft in drafts.all().filter(|draft| draft.submission.is_some()) {
        by_task.entry(&draft.task).or_default().push(draft);
    }
    let mut tasks: Vec<(&TaskId, Vec<&Draft>)> = by_task.into_iter().collect();
    let last = |of: &[&Draft]| of.iter().filter_map(|one| Some(one.submission.as_ref()?.at)).max();
    tasks.sort_by_key(|(_, drafts)| std::cmp::Reverse(last(drafts)));
    tasks.truncate(MAX_TASKS);
    tasks
}

fn submissions(
    drafts: &DraftSet,
    names: &BTreeMap<DraftId, String>,
    task: &TaskId,
    of_task: &[&Draft],
) -> serde_json::Value {
    let file = |draft: &Draft| {
        json!({
            "draft_id": draft.id,
            "draft_path": draft.id,
            "file": names.get(&draft.id).filter(|_| draft.head().is_some()),
            "original_path": draft.path,
            "rename_to": draft.change.rename_to,
            "original_hash": draft.base.map(|file| file.sha256),
            "new_hash": draft.head(),
            "state": draft.state,
        })
    };
    // Drafts submitted together share a seal and a time.
    let mut together = BTreeMap::new();
    for one in of_task.iter().filter_map(|draft| draft.submission.as_ref()) {
        together.insert((one.at, one.seal.to_string()), one);
    }
    let submission = |one: &DraftSubmission| {
        let all = one.drafts.iter().filter_map(|id| drafts.all.get(id));
        let mut row = json!({
            "drafts": all.map(file).collect::<Vec<_>>(),
            "change_summary": one.summary,
            "submitted_at_ms": one.at,
            "seal": one.seal,
            "verdict": one.action,
            "findings": one.findings,
            "reviewed": one.reviewed,
        });
        if !one.comments.is_empty() {
            let comments = one.comments.iter().map(|one| &one.comment);
            row["comments"] = json!(comments.collect::<Vec<_>>());
        }
        row
    };
    json!({
        "task_id": task,
        "submissions": together.into_values().map(submission).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
#[path = "handoff_tests.rs"]
mod tests;
