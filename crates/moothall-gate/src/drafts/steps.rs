//! File steps of a submission, and how long stored contents are needed.

use std::collections::BTreeSet;

use super::event::FileStep;
use super::identity::DraftId;
use super::state::{Draft, DraftSet, DraftState};
use crate::Sha256Hex;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The steps that apply these drafts, in order. A rename creates the new file, then deletes the old
/// one. `staged_as` returns the staging file name for each step.
pub fn steps(
    drafts: &DraftSet,
    ids: &[DraftId],
    staged_as: impl Fn(usize) -> String,
) -> Vec<FileStep> {
    let mut steps: Vec<FileStep> = Vec::new();
    for draft in ids.iter().filter_map(|id| drafts.all.get(id)) {
        let Draft { path, base, change, .. } = draft;
        match &change.rename_to {
            Some(to) if to != path => {
                let added = FileStep {
                    path: to.clone(),
                    from: None,
                    to: change.file,
                    staged_as: String::new(),
                };
                let gone = FileStep {
                    path: path.clone(),
                    from: *base,
                    to: None,
                    staged_as: String::new(),
                };
                steps.extend([added, gone]);
            }
            // A reviewer approved nothing of this file.
            _ if change.is_empty(*base) => {}
            _ => steps.push(FileStep {
                path: path.clone(),
                from: *base,
                to: change.file,
                staged_as: String::new(),
            }),
        }
    }
    for (at, step) in steps.iter_mut().enumerate() {
        step.staged_as = staged_as(at);
    }
    steps
}

/// The inverse steps in reverse order.
pub fn undo_steps(steps: Vec<FileStep>) -> Vec<FileStep> {
    let back =
        |FileStep { path, from, to, staged_as }| FileStep { path, from: to, to: from, staged_as };
    steps.into_iter().rev().map(back).collect()
}

/// How long contents are kept. The journal is kept forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobRetention {
    /// For applied drafts, which can be undone until then.
    pub applied_ms: u64,
    /// For drafts that were rejected, withdrawn or expired.
    pub closed_ms: u64,
}

impl Default for BlobRetention {
    fn default() -> Self {
        Self { applied_ms: 30 * DAY_MS, closed_ms: 7 * DAY_MS }
    }
}

/// Contents that are still needed; all others may be deleted.
pub fn referenced_blobs(
    drafts: &DraftSet,
    retention: BlobRetention,
    now_ms: u64,
) -> BTreeSet<Sha256Hex> {
    let mut kept = BTreeSet::new();
    for draft in drafts.all() {
        let age = now_ms.saturating_sub(draft.touched);
        let needed = match draft.state {
            DraftState::Applied | DraftState::Reverted => age <= retention.applied_ms,
            DraftState::Rejected | DraftState::Withdrawn | DraftState::Expired => {
                age <= retention.closed_ms
            }
            DraftState::Editing
            | DraftState::Submitted
            | DraftState::Escalated
            | DraftState::Accepted
            | DraftState::Applying
            | DraftState::Conflict
            | DraftState::Reverting => true,
        };
        if needed {
            kept.extend(draft.base.map(|file| file.sha256));
            // Content with a credential is never kept.
            kept.extend(draft.head().filter(|_| !draft.content_removed));
        }
    }
    kept
}
