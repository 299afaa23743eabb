//! The current state of every draft, derived from the journal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::event::{
    AmendedFile, ApplyOutcome, AuditRecord, DraftEvent, FileState, JournalFinding, LineComment,
    ProposedChange, ReviewDecision,
};
use super::identity::{DraftId, Principal, PrincipalKind, TaskId};
use super::path::RelPath;
use crate::Sha256Hex;
use crate::gate::{GateAction, GateRule};

/// The state of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftState {
    /// The worker may write.
    Editing,
    /// Waiting for the gate.
    Submitted,
    /// Waiting for review by a person.
    Escalated,
    /// Ready to be applied.
    Accepted,
    /// Its files are being changed.
    Applying,
    /// In the workspace.
    Applied,
    /// The file changed after the draft was made.
    Conflict,
    /// Rejected by a person, or too often by the gate.
    Rejected,
    /// Discarded by the worker.
    Withdrawn,
    /// Idle for too long.
    Expired,
    /// Being reverted.
    Reverting,
    /// Reverted.
    Reverted,
}

impl DraftState {
    /// Whether the draft can still be applied.
    pub fn is_open(self) -> bool {
        match self {
            Self::Editing
            | Self::Submitted
            | Self::Escalated
            | Self::Accepted
            | Self::Applying
            | Self::Conflict => true,
            Self::Applied
            | Self::Rejected
            | Self::Withdrawn
            | Self::Expired
            | Self::Reverting
            | Self::Reverted => false,
        }
    }

    /// The serialized name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Editing => "editing",
            Self::Submitted => "submitted",
            Self::Escalated => "escalated",
            Self::Accepted => "accepted",
            Self::Applying => "applying",
            Self::Applied => "applied",
            Self::Conflict => "conflict",
            Self::Rejected => "rejected",
            Self::Withdrawn => "withdrawn",
            Self::Expired => "expired",
            Self::Reverting => "reverting",
            Self::Reverted => "reverted",
        }
    }
}

/// The latest submission of a draft and the decisions on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftSubmission {
    /// All drafts of the submission, in order.
    pub drafts: Vec<DraftId>,
    /// Hash of everything the drafts propose.
    pub seal: Sha256Hex,
    /// The worker's description.
    pub summary: String,
    /// Submission time, in milliseconds since 1970.
    pub at: u64,
    /// The policy it was judged by, if it was judged.
    pub policy: Option<Sha256Hex>,
    /// The gate's decision, if it was judged.
    pub action: Option<GateAction>,
    /// The gate's findings.
    pub findings: Vec<JournalFinding>,
    /// The latest review: decision, reviewer and comment.
    pub reviewed: Option<(ReviewDecision, Principal, String)>,
    /// Comments on lines, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<ReviewComment>,
    /// Files that a reviewer changed before approving the submission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amended: Vec<AmendedFile>,
}

/// A comment on a line of a submission, with its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewComment {
    /// The reviewer.
    pub by: Principal,
    /// Time of the comment, in milliseconds since 1970.
    pub at: u64,
    /// The comment.
    pub comment: LineComment,
}

/// One draft. It is stored in snapshots: a new field requires a new snapshot version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The draft's ID.
    pub id: DraftId,
    /// The task.
    pub task: TaskId,
    /// The principal that opened it.
    pub owner: Principal,
    /// The file.
    pub path: RelPath,
    /// The file the draft is based on, or `None` if it did not exist.
    pub base: Option<FileState>,
    /// The proposal.
    pub change: ProposedChange,
    /// Number of revisions so far.
    pub revision: u64,
    /// The current state.
    pub state: DraftState,
    /// How often the gate rejected it.
    pub rejections: u32,
    /// The content contained a credential and was removed, so it must be written again.
    pub content_removed: bool,
    /// The latest submission.
    pub submission: Option<DraftSubmission>,
    /// The file that caused the conflict, in state `conflict`.
    pub conflict: Option<RelPath>,
    /// Time of the last event, in milliseconds since 1970.
    pub touched: u64,
}

impl Draft {
    /// Hash of the proposed content, or `None` if the draft deletes its file.
    pub fn head(&self) -> Option<Sha256Hex> {
        self.change.file.map(|file| file.sha256)
    }
}

/// All drafts of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DraftSet {
    pub(crate) all: BTreeMap<DraftId, Draft>,
}

impl FromIterator<Draft> for DraftSet {
    fn from_iter<T: IntoIterator<Item = Draft>>(drafts: T) -> Self {
        Self { all: drafts.into_iter().map(|draft| (draft.id, draft)).collect() }
    }
}

impl DraftSet {
    /// All drafts, ordered by ID.
    pub fn all(&self) -> impl Iterator<Item = &Draft> {
        self.all.values()
    }

    /// Returns the draft if this principal may see it.
    pub fn of(&self, who: &Principal, id: DraftId) -> Option<&Draft> {
        let draft = self.all.get(&id)?;
        match who.kind {
            PrincipalKind::Worker => (draft.owner == *who).then_some(draft),
            PrincipalKind::Human | PrincipalKind::Gate | PrincipalKind::Recovery => Some(draft),
        }
    }

    /// The principal's open draft for a file in a task; there is at most one.
    pub fn open_for(&self, who: &Principal, task: &TaskId, path: &RelPath) -> Option<&Draft> {
        self.all.values().find(|draft| {
            draft.state.is_open()
                && draft.owner == *who
                && draft.task == *task
                && draft.path == *path
        })
    }

    /// Hash of everything these drafts propose; a reviewer approves exactly this. Unknown IDs are
    /// skipped.
    pub fn seal(&self, ids: &[DraftId]) -> Sha256Hex {
        self.amended_seal(ids, &[])
    }

    /// The seal that these drafts would have with the changes of a reviewer.
    pub fn amended_seal(&self, ids: &[DraftId], files: &[AmendedFile]) -> Sha256Hex {
        let mut whole = String::from("moothall draft seal 1\n");
        for draft in ids.iter().filter_map(|id| self.all.get(id)) {
            let amended = files.iter().find(|file| file.draft == draft.id);
            let proposed = amended.map_or(&draft.change, |file| &file.change);
            let file = |file: &Option<FileState>| match file {
                Some(FileState { sha256, executable }) => format!("{sha256} {executable}"),
                None => "absent".to_owned(),
            };
            // Paths contain no line breaks, so each line is one field.
            let to = proposed.rename_to.as_ref().unwrap_or(&draft.path);
            let (base, change) = (file(&draft.base), file(&proposed.file));
            let lines =
                [draft.id.to_string(), base, change, draft.path.to_string(), to.to_string()];
            for line in lines {
                whole.push_str(&line);
                whole.push('\n');
            }
        }
        Sha256Hex::of(whole.as_bytes())
    }

    /// Applies one record. Never fails: a record about an unknown draft changes nothing.
    pub fn evolve(&mut self, record: &AuditRecord) {
        let at = record.ts;
        match &record.event {
            DraftEvent::Requested { draft, task, path, base } => {
                let change = ProposedChange { file: *base, rename_to: None };
                let opened = Draft {
                    id: *draft,
                    task: task.clone(),
                    owner: record.actor.clone(),
                    path: path.clone(),
                    base: *base,
                    change,
                    revision: 0,
                    state: DraftState::Editing,
                    rejections: 0,
                    content_removed: false,
                    submission: None,
                    conflict: None,
                    touched: at,
                };
                self.all.entry(*draft).or_insert(opened);
            }
            DraftEvent::Written { draft, change, .. } => self.reopen_draft(*draft, at, |one| {
                one.change = change.clone();
                one.content_removed = false;
            }),
            DraftEvent::Rebased { draft, base, change, .. } => {
                self.reopen_draft(*draft, at, |one| {
                    one.base = *base;
                    one.change = change.clone();
                    one.conflict = None;
                })
            }
            DraftEvent::Submitted { drafts, seal, summary } => {
                self.update_drafts(drafts, at, |one| {
                    one.state = DraftState::Submitted;
                    one.conflict = None;
                    one.submission = Some(DraftSubmission {
                        drafts: drafts.clone(),
                        seal: *seal,
                        summary: summary.clone(),
                        at,
                        policy: None,
                        action: None,
                        findings: Vec::new(),
                        reviewed: None,
                        comments: Vec::new(),
                        amended: Vec::new(),
                    });
                })
            }
            DraftEvent::Judged { drafts, policy, action, findings, last, .. } => {
                let secret = findings.iter().any(|one| {
                    one.action == GateAction::Reject
                        && matches!(one.rule, GateRule::SecretSpecific | GateRule::SecretGeneric)
                });
                self.update_drafts(drafts, at, |one| {
                    one.state = match action {
                        GateAction::Allow | GateAction::Warn => DraftState::Accepted,
                        GateAction::Escalate => DraftState::Escalated,
                        GateAction::Reject if *last => DraftState::Rejected,
                        GateAction::Reject => DraftState::Editing,
                    };
                    if *action == GateAction::Reject {
                        one.rejections += 1;
                        one.content_removed |= secret;
                    }
                    if let Some(submission) = &mut one.submission {
                        submission.policy = Some(*policy);
                        submission.action = Some(*action);
                        submission.findings = findings.clone();
                    }
                });
            }
            DraftEvent::Reviewed { drafts, say, reason, .. } => {
                self.update_drafts(drafts, at, |one| {
                    one.state = match say {
                        ReviewDecision::Approve => DraftState::Accepted,
                        ReviewDecision::Reject => DraftState::Rejected,
                        ReviewDecision::SendBack => DraftState::Editing,
                    };
                    if let Some(submission) = &mut one.submission {
                        submission.reviewed = Some((*say, record.actor.clone(), reason.clone()));
                    }
                })
            }
            DraftEvent::Amended { drafts, result, action, findings, files, reason, .. } => {
                let by = &record.actor;
                self.update_drafts(drafts, at, |one| {
                    if let Some(file) = files.iter().find(|file| file.draft == one.id) {
                        one.change = file.change.clone();
                        one.revision += 1;
                    }
                    // Nothing of this file was approved.
                    one.state = match one.change.is_empty(one.base) {
                        true => DraftState::Rejected,
                        false => DraftState::Accepted,
                    };
                    if let Some(submission) = &mut one.submission {
                        submission.seal = *result;
                        submission.action = Some(*action);
                        submission.findings = findings.clone();
                        submission.amended = files.clone();
                        submission.reviewed =
                            Some((ReviewDecision::Approve, by.clone(), reason.clone()));
                    }
                })
            }
            DraftEvent::Commented { drafts, comments, .. } => {
                let stored = comments.iter().map(|comment| ReviewComment {
                    by: record.actor.clone(),
                    at,
                    comment: comment.clone(),
                });
                let stored: Vec<ReviewComment> = stored.collect();
                self.update_drafts(drafts, at, |one| {
                    if let Some(submission) = &mut one.submission {
                        submission.comments.extend(stored.iter().cloned());
                    }
                })
            }
            DraftEvent::Applying { drafts, undo, .. } => self.update_drafts(drafts, at, |one| {
                one.state = if *undo { DraftState::Reverting } else { DraftState::Applying };
            }),
            DraftEvent::Ended { drafts, end } => {
                self.update_drafts(drafts, at, |one| match (end, one.state) {
                    (ApplyOutcome::Done, DraftState::Reverting) => one.state = DraftState::Reverted,
                    (ApplyOutcome::Done, _) => one.state = DraftState::Applied,
                    // A failed revert leaves the changes in the workspace.
                    (ApplyOutcome::Conflict { .. }, DraftState::Reverting) => {
                        one.state = DraftState::Applied
                    }
                    (ApplyOutcome::Conflict { path, .. }, _) => {
                        one.state = DraftState::Conflict;
                        one.conflict = Some(path.clone());
                    }
                })
            }
            DraftEvent::Withdrawn { draft } => self.close_draft(*draft, at, DraftState::Withdrawn),
            DraftEvent::Expired { draft } => self.close_draft(*draft, at, DraftState::Expired),
            DraftEvent::Salvaged { .. }
            | DraftEvent::Purged { .. }
            | DraftEvent::PolicyDiffers { .. }
            | DraftEvent::PolicyTrusted { .. }
            | DraftEvent::Rotated { .. } => {}
        }
    }

    fn update_drafts(&mut self, ids: &[DraftId], at: u64, change: impl Fn(&mut Draft)) {
        for id in ids {
            if let Some(draft) = self.all.get_mut(id) {
                draft.touched = at;
                change(draft);
            }
        }
    }

    /// A new revision invalidates the decision on the old one and on all drafts submitted with it.
    fn reopen_draft(&mut self, id: DraftId, at: u64, change: impl Fn(&mut Draft)) {
        self.return_to_worker(id, at);
        self.update_drafts(&[id], at, |one| {
            one.state = DraftState::Editing;
            one.revision += 1;
            change(one);
        });
    }

    fn close_draft(&mut self, id: DraftId, at: u64, state: DraftState) {
        self.return_to_worker(id, at);
        self.update_drafts(&[id], at, |one| one.state = state);
    }

    /// Returns the other drafts of an escalated submission to the worker, because the set that was
    /// judged no longer exists.
    fn return_to_worker(&mut self, id: DraftId, at: u64) {
        let Some(draft) = self.all.get(&id) else { return };
        if draft.state != DraftState::Escalated {
            return;
        }
        let together = draft.submission.as_ref().map_or_else(Vec::new, |one| one.drafts.clone());
        self.update_drafts(&together, at, |one| {
            if one.state == DraftState::Escalated {
                one.state = DraftState::Editing;
            }
        });
    }
}
