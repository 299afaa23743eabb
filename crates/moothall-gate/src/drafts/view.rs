//! Drafts as files that other tools read: the folder of the sandbox draft pattern, made of what the
//! journal comes to. Nobody reads it back.

use std::collections::BTreeMap;

use serde_json::json;

use super::names::{DraftId, TaskId};
use super::news::News;
use super::state::{Draft, Drafts, Submission};
use crate::Sha256Hex;

/// The folder of the view in a workspace.
pub const VIEW: &str = "_handoff";

/// Tasks whose submissions are shown: those that were handed in last.
const MOST_TASKS: usize = 100;
/// A file of this many bytes in its name can be written everywhere.
const MAX_NAME_BYTES: usize = 200;

/// A file of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewFile {
    /// The text of a draft.
    Draft(Sha256Hex),
    /// What was handed in for a task, as JSON.
    Submissions(String),
}

/// The files below `_handoff/drafts`, by their names: every open draft that has a text, and what was
/// handed in last.
pub fn view(drafts: &Drafts) -> BTreeMap<String, ViewFile> {
    let names = names(drafts);
    let mut files = BTreeMap::new();
    for (id, name) in &names {
        if let Some(sha256) = drafts.all.get(id).and_then(Draft::head) {
            files.insert(name.clone(), ViewFile::Draft(sha256));
        }
    }
    for (task, of_task) in tasks(drafts) {
        let text = format!("{:#}\n", submissions(drafts, &names, task, &of_task));
        files.insert(format!("{task}.submission.json"), ViewFile::Submissions(text));
    }
    files
}

/// A line of `transition.ndjson`, with its end.
pub fn transition(seq: u64, at_ms: u64, news: &News) -> String {
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

/// `watchdog.py.phase10.draft`, as in the pattern. Where two drafts would have one name, or the name
/// would be too long, the handle takes its place.
fn names(drafts: &Drafts) -> BTreeMap<DraftId, String> {
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

/// The tasks of the last submissions, each with its drafts.
fn tasks(drafts: &Drafts) -> Vec<(&TaskId, Vec<&Draft>)> {
    let mut by_task: BTreeMap<&TaskId, Vec<&Draft>> = BTreeMap::new();
    for draft in drafts.all().filter(|draft| draft.submission.is_some()) {
        by_task.entry(&draft.task).or_default().push(draft);
    }
    let mut tasks: Vec<(&TaskId, Vec<&Draft>)> = by_task.into_iter().collect();
    let last = |of: &[&Draft]| of.iter().filter_map(|one| Some(one.submission.as_ref()?.at)).max();
    tasks.sort_by_key(|(_, drafts)| std::cmp::Reverse(last(drafts)));
    tasks.truncate(MOST_TASKS);
    tasks
}

fn submissions(
    drafts: &Drafts,
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
    // What was handed in together has one seal and one time.
    let mut together = BTreeMap::new();
    for one in of_task.iter().filter_map(|draft| draft.submission.as_ref()) {
        together.insert((one.at, one.seal.to_string()), one);
    }
    let submission = |one: &Submission| {
        let all = one.drafts.iter().filter_map(|id| drafts.all.get(id));
        json!({
            "drafts": all.map(file).collect::<Vec<_>>(),
            "change_summary": one.summary,
            "submitted_at_ms": one.at,
            "seal": one.seal,
            "verdict": one.action,
            "findings": one.findings,
            "reviewed": one.reviewed,
        })
    };
    json!({
        "task_id": task,
        "submissions": together.into_values().map(submission).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
