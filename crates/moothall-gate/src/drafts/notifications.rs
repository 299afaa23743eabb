//! Notifications about draft state changes.

use serde::{Deserialize, Serialize};

use super::event::{ApplyOutcome, AuditRecord, DraftEvent, FileState, ReviewDecision};
use super::identity::{DraftId, TaskId};
use super::path::RelPath;
use super::state::{Draft, DraftSet, DraftState};
use crate::gate::GateAction;

/// The kinds of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftNotificationKind {
    /// The draft was submitted.
    DraftReady,
    /// The draft was applied to the workspace.
    DraftAccepted,
    /// The gate or a reviewer returned the draft or rejected it for good.
    DraftRejected,
    /// The draft needs review.
    DraftEscalated,
    /// The file changed after the draft was made.
    DraftConflict,
}

impl DraftNotificationKind {
    /// The name on the wire.
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

/// A state change of one draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftNotification {
    /// The kind of notification.
    pub kind: DraftNotificationKind,
    /// The draft.
    pub draft: DraftId,
    /// The task.
    pub task: TaskId,
    /// The file.
    pub path: RelPath,
    /// Rule findings, or the reviewer's comment.
    pub reasons: Vec<String>,
    /// The file before the change.
    pub base: Option<FileState>,
    /// The file after the change.
    pub after: Option<FileState>,
}

/// Returns the notifications for a record that `drafts` has already applied.
pub fn notifications_for(drafts: &DraftSet, record: &AuditRecord) -> Vec<DraftNotification> {
    let state = |id: DraftId| drafts.all.get(&id).map(|draft| draft.state);
    let rejected: Vec<DraftId>;
    let (kind, ids, reasons) = match &record.event {
        DraftEvent::Submitted { drafts, .. } => {
            (DraftNotificationKind::DraftReady, drafts, Vec::new())
        }
        DraftEvent::Judged { drafts, action, findings, .. } => {
            let kind = match action {
                GateAction::Escalate => DraftNotificationKind::DraftEscalated,
                GateAction::Reject => DraftNotificationKind::DraftRejected,
                // Reported later, when the draft is applied to the workspace.
                GateAction::Allow | GateAction::Warn => return Vec::new(),
            };
            let weighty = findings.iter().filter(|one| one.action >= *action);
            let reasons = weighty.map(|one| format!("{}: {}", one.rule, one.message));
            (kind, drafts, reasons.collect())
        }
        DraftEvent::Reviewed {
            drafts,
            say: ReviewDecision::Reject | ReviewDecision::SendBack,
            reason,
            ..
        } => {
            let reasons = Some(reason.clone()).filter(|reason| !reason.is_empty());
            (DraftNotificationKind::DraftRejected, drafts, reasons.into_iter().collect())
        }
        // The approved files are reported later, when they are applied to the workspace.
        DraftEvent::Amended { drafts: ids, reason, .. } => {
            let is_rejected = |id: &&DraftId| state(**id) == Some(DraftState::Rejected);
            rejected = ids.iter().filter(is_rejected).copied().collect::<Vec<_>>();
            let reasons = Some(reason.clone()).filter(|reason| !reason.is_empty());
            (DraftNotificationKind::DraftRejected, &rejected, reasons.into_iter().collect())
        }
        // Reverts do not produce notifications, whether they succeed or not.
        DraftEvent::Ended { drafts: ids, end } => {
            match (end, ids.first().and_then(|id| state(*id))) {
                (ApplyOutcome::Done, Some(DraftState::Applied)) => {
                    (DraftNotificationKind::DraftAccepted, ids, Vec::new())
                }
                (ApplyOutcome::Conflict { path, .. }, Some(DraftState::Conflict)) => {
                    let reasons = vec![format!("{path} changed after the draft was made")];
                    (DraftNotificationKind::DraftConflict, ids, reasons)
                }
                _ => return Vec::new(),
            }
        }
        DraftEvent::Reviewed { say: ReviewDecision::Approve, .. }
        | DraftEvent::Commented { .. }
        | DraftEvent::Requested { .. }
        | DraftEvent::Written { .. }
        | DraftEvent::Rebased { .. }
        | DraftEvent::Applying { .. }
        | DraftEvent::Withdrawn { .. }
        | DraftEvent::Expired { .. }
        | DraftEvent::Salvaged { .. }
        | DraftEvent::Purged { .. }
        | DraftEvent::PolicyDiffers { .. }
        | DraftEvent::PolicyTrusted { .. }
        | DraftEvent::Rotated { .. } => return Vec::new(),
    };
    let of = |draft: &Draft| DraftNotification {
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
