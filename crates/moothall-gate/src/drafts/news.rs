//! What others are told when something becomes of a draft.

use serde::{Deserialize, Serialize};

use super::event::{End, Event, FileState, Record, Say};
use super::names::{DraftId, TaskId};
use super::path::RelPath;
use super::state::{Draft, Drafts, State};
use crate::gate::Action;

/// What became of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewsKind {
    /// It was handed in.
    DraftReady,
    /// It is in the workspace.
    DraftAccepted,
    /// The gate or a person gave it back, or said no for good.
    DraftRejected,
    /// A person must decide.
    DraftEscalated,
    /// The file is no longer what the draft was made for.
    DraftConflict,
}

impl NewsKind {
    /// The name, as it travels.
    pub fn name(self) -> &'static str {
        match self {
            Self::DraftReady => "draft_ready",
            Self::DraftAccepted => "draft_accepted",
            Self::DraftRejected => "draft_rejected",
            Self::DraftEscalated => "draft_escalated",
            Self::DraftConflict => "draft_conflict",
        }
    }
}

/// What became of one draft, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// What.
    pub kind: NewsKind,
    /// Of which draft.
    pub draft: DraftId,
    /// The task.
    pub task: TaskId,
    /// The file.
    pub path: RelPath,
    /// Why: rules and what they found, or a person's words.
    pub reasons: Vec<String>,
    /// The file before.
    pub base: Option<FileState>,
    /// The file after.
    pub after: Option<FileState>,
}

/// What a record is news of. `drafts` has taken it in already.
pub fn news(drafts: &Drafts, record: &Record) -> Vec<News> {
    let state = |id: DraftId| drafts.all.get(&id).map(|draft| draft.state);
    let (kind, ids, reasons) = match &record.event {
        Event::Submitted { drafts, .. } => (NewsKind::DraftReady, drafts, Vec::new()),
        Event::Judged { drafts, action, findings, .. } => {
            let kind = match action {
                Action::Escalate => NewsKind::DraftEscalated,
                Action::Reject => NewsKind::DraftRejected,
                // It is told when it is in the workspace.
                Action::Allow | Action::Warn => return Vec::new(),
            };
            let weighty = findings.iter().filter(|one| one.action >= *action);
            let reasons = weighty.map(|one| format!("{}: {}", one.rule, one.message));
            (kind, drafts, reasons.collect())
        }
        Event::Reviewed { drafts, say: Say::Reject | Say::SendBack, reason, .. } => {
            let reasons = Some(reason.clone()).filter(|reason| !reason.is_empty());
            (NewsKind::DraftRejected, drafts, reasons.into_iter().collect())
        }
        // What was or could not be taken back is no news of these kinds.
        Event::Ended { drafts: ids, end } => match (end, ids.first().and_then(|id| state(*id))) {
            (End::Done, Some(State::Applied)) => (NewsKind::DraftAccepted, ids, Vec::new()),
            (End::Conflict { path, .. }, Some(State::Conflict)) => {
                let reasons = vec![format!("{path} is no longer what the draft was made for")];
                (NewsKind::DraftConflict, ids, reasons)
            }
            _ => return Vec::new(),
        },
        Event::Reviewed { say: Say::Approve, .. }
        | Event::Requested { .. }
        | Event::Written { .. }
        | Event::Rebased { .. }
        | Event::Applying { .. }
        | Event::Withdrawn { .. }
        | Event::Expired { .. }
        | Event::Salvaged { .. }
        | Event::Purged { .. }
        | Event::PolicyDiffers { .. }
        | Event::PolicyTrusted { .. }
        | Event::Rotated { .. } => return Vec::new(),
    };
    let of = |draft: &Draft| News {
        kind,
        draft: draft.id,
        task: draft.task.clone(),
        path: draft.path.clone(),
        reasons: reasons.clone(),
        base: draft.base,
        after: draft.change.file,
    };
    ids.iter().filter_map(|id| drafts.all.get(id)).map(of).collect()
}
