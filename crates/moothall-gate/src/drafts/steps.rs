//! What a submission does to the workspace, file by file, and which contents it needs for how long.

use std::collections::BTreeSet;

use super::event::Step;
use super::names::DraftId;
use super::state::{Draft, Drafts, State};
use crate::Sha256Hex;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The changes of these drafts in order. A rename is the new file, then the end of the old one.
/// `staged_as` names the staging file of each step.
pub fn steps(drafts: &Drafts, ids: &[DraftId], staged_as: impl Fn(usize) -> String) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for draft in ids.iter().filter_map(|id| drafts.all.get(id)) {
        let Draft { path, base, change, .. } = draft;
        match &change.rename_to {
            Some(to) if to != path => {
                let added = Step {
                    path: to.clone(),
                    from: None,
                    to: change.file,
                    staged_as: String::new(),
                };
                let gone =
                    Step { path: path.clone(), from: *base, to: None, staged_as: String::new() };
                steps.extend([added, gone]);
            }
            _ => steps.push(Step {
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

/// The way back: the same steps in reverse.
pub fn undo_steps(steps: Vec<Step>) -> Vec<Step> {
    let back = |Step { path, from, to, staged_as }| Step { path, from: to, to: from, staged_as };
    steps.into_iter().rev().map(back).collect()
}

/// How long contents are kept. The journal is kept forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Of applied drafts: as long as they can be undone.
    pub applied_ms: u64,
    /// Of drafts that came to nothing.
    pub closed_ms: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { applied_ms: 30 * DAY_MS, closed_ms: 7 * DAY_MS }
    }
}

/// The contents that something may still need; everything else may go.
pub fn kept_blobs(drafts: &Drafts, retention: Retention, now_ms: u64) -> BTreeSet<Sha256Hex> {
    let mut kept = BTreeSet::new();
    for draft in drafts.all() {
        let age = now_ms.saturating_sub(draft.touched);
        let needed = match draft.state {
            State::Applied | State::Reverted => age <= retention.applied_ms,
            State::Rejected | State::Withdrawn | State::Expired => age <= retention.closed_ms,
            State::Editing
            | State::Submitted
            | State::Escalated
            | State::Accepted
            | State::Applying
            | State::Conflict
            | State::Reverting => true,
        };
        if needed {
            kept.extend(draft.base.map(|file| file.sha256));
            // What held a credential is not kept for a moment.
            kept.extend(draft.head().filter(|_| !draft.content_removed));
        }
    }
    kept
}
