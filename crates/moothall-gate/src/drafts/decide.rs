//! Turns commands into events. Pure: the same drafts, command, rules and time give the same events.

use std::collections::BTreeSet;

use super::event::{
    AmendedFile, ApplyOutcome, DraftEvent, FileState, FileStep, HunkSelection, JournalFinding,
    LineComment, ProposedChange, ReviewDecision,
};
use super::identity::{DraftId, Principal, PrincipalAccount, PrincipalKind, TaskId};
use super::path::RelPath;
use super::state::{Draft, DraftSet, DraftState, DraftSubmission};
use crate::Sha256Hex;
use crate::gate::GateAction;

/// Summaries and review reasons are truncated to this many characters.
pub const MAX_TEXT_CHARS: usize = 2_000;
/// Comments on one submission.
pub const MAX_COMMENTS: usize = 100;
/// Open drafts per worker. A worker can invent any number of tasks, so the limit per task alone
/// bounds nothing.
const MAX_OPEN_DRAFTS: usize = 256;

/// Limits of the policy on the number and the lifetime of drafts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftLimits {
    /// Open drafts in one task.
    pub open_per_task: usize,
    /// Drafts in one submission.
    pub per_submission: usize,
    /// A draft is closed after this many rejections.
    pub rejections: u32,
    /// An open draft expires after this idle time, in milliseconds.
    pub draft_ttl_ms: u64,
    /// The same for a draft that is waiting for review.
    pub escalation_ttl_ms: u64,
}

/// Who may approve drafts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalRules {
    /// Accounts of people. If empty, anyone who can open the store may approve. Plain names match
    /// no one.
    pub approvers: Vec<String>,
    /// Whether authors may approve their own drafts.
    pub author_may_approve: bool,
}

impl ApprovalRules {
    /// Approvers given as plain names. People choose their own names, so these match no one.
    pub fn plain_names(&self) -> impl Iterator<Item = &str> {
        let names = self.approvers.iter().filter(|one| PrincipalAccount::parse(one).is_none());
        names.map(String::as_str)
    }

    fn may_approve(&self, who: &Principal) -> bool {
        let Some(account) = &who.account else { return self.approvers.is_empty() };
        let mut accounts = self.approvers.iter().filter_map(|one| PrincipalAccount::parse(one));
        self.approvers.is_empty() || accounts.any(|one| one == *account)
    }
}

/// A request to change the state of drafts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftOperation {
    /// Open a draft.
    Request {
        /// The ID of the new draft.
        id: DraftId,
        /// The task.
        task: TaskId,
        /// The file.
        path: RelPath,
        /// The current file, or `None` if it does not exist.
        base: Option<FileState>,
    },
    /// Add a revision.
    Write {
        /// The draft.
        draft: DraftId,
        /// The new proposal.
        change: ProposedChange,
        /// Size of the content.
        bytes: u64,
        /// The content hash that the writer expects the draft to have now.
        if_match: Option<Sha256Hex>,
    },
    /// Submit drafts together.
    Submit {
        /// In the order in which they are applied.
        drafts: Vec<DraftId>,
        /// The worker's description.
        summary: String,
    },
    /// Record the gate's decision on submitted drafts.
    Judge {
        /// The submitted drafts.
        drafts: Vec<DraftId>,
        /// Hash of the policy.
        policy: Sha256Hex,
        /// The decision.
        action: GateAction,
        /// The findings behind the decision.
        findings: Vec<JournalFinding>,
    },
    /// Record a person's decision on an escalated submission.
    Review {
        /// Any draft of the submission.
        draft: DraftId,
        /// Seal of the version that the reviewer was shown.
        seal: Sha256Hex,
        /// Hash of the policy in force.
        policy: Sha256Hex,
        /// The decision.
        say: ReviewDecision,
        /// The reviewer's comment.
        reason: String,
    },
    /// Record that a person approved a changed version of an escalated submission, which the gate
    /// judged.
    Amend {
        /// Any draft of the submission.
        draft: DraftId,
        /// Seal of the version that the reviewer was shown.
        seal: Sha256Hex,
        /// Hash of the policy in force.
        policy: Sha256Hex,
        /// The gate's decision on the result.
        action: GateAction,
        /// The findings behind the decision.
        findings: Vec<JournalFinding>,
        /// The approved hunks, if the reviewer selected hunks.
        hunks: Option<HunkSelection>,
        /// The changed files.
        files: Vec<AmendedFile>,
        /// The reviewer's comment.
        reason: String,
    },
    /// Record a person's comments on an escalated submission.
    Comment {
        /// Any draft of the submission.
        draft: DraftId,
        /// Seal of the version that the reviewer was shown.
        seal: Sha256Hex,
        /// The comments.
        comments: Vec<LineComment>,
    },
    /// Start applying drafts to the workspace.
    Apply {
        /// The drafts.
        drafts: Vec<DraftId>,
        /// The file steps.
        steps: Vec<FileStep>,
    },
    /// Start reverting applied drafts.
    Undo {
        /// The drafts.
        drafts: Vec<DraftId>,
        /// The inverse file steps.
        steps: Vec<FileStep>,
    },
    /// Record how applying or reverting ended.
    End {
        /// The drafts.
        drafts: Vec<DraftId>,
        /// The outcome.
        end: ApplyOutcome,
    },
    /// Rebase a draft onto the current file.
    Rebase {
        /// The draft.
        draft: DraftId,
        /// The current file.
        base: Option<FileState>,
        /// The merged proposal.
        change: ProposedChange,
        /// False if the merge left conflict markers.
        clean: bool,
    },
    /// Discard a draft.
    Withdraw {
        /// The draft.
        draft: DraftId,
    },
    /// Close drafts that have been idle for too long.
    Expire,
}

/// Why a command is refused. A normal reply to the caller, not a failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftRefusal {
    /// The draft does not exist or belongs to another principal. Both get the same message so that
    /// IDs cannot be probed.
    #[error("draft not found")]
    Unknown,
    /// The draft's state does not allow the command.
    #[error("draft is {} and cannot be {what}", state.as_str())]
    State {
        /// The current state.
        state: DraftState,
        /// What the command tried, as a past participle.
        what: &'static str,
    },
    /// The draft was written since the caller last read it.
    #[error("draft changed since you read it: its content hash is now {head}")]
    Stale {
        /// Current content hash, or `absent`.
        head: String,
    },
    /// The draft differs from the version that the reviewer was shown.
    #[error("draft changed since it was shown: its seal is now {seal}")]
    Seal {
        /// The current seal.
        seal: Sha256Hex,
    },
    /// The policy changed after the submission was judged.
    #[error("the policy changed after the draft was judged")]
    Policy,
    /// A limit of the policy or the store is reached.
    #[error("too many {what} (limit: {limit})")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A submission that is empty, has several owners, or touches one path more than once.
    #[error("drafts submitted together must have one owner and different files")]
    Set,
    /// Only the gate may issue this command.
    #[error("only the gate can judge, apply or close drafts")]
    NotGate,
    /// Only a person may issue this command.
    #[error("only a person can review drafts")]
    NotHuman,
    /// The reviewer is not in the list of approvers.
    #[error("{who} is not an approver in the policy")]
    NotApprover {
        /// The reviewer.
        who: Box<Principal>,
    },
    /// A person whose name is also the name of a worker.
    #[error("`{id}` is the name of a worker, which cannot review drafts")]
    WorkerName {
        /// The name.
        id: String,
    },
    /// The reviewer is the author, and the policy forbids that.
    #[error("you cannot approve your own draft")]
    Author,
    /// The gate rejects what a reviewer made of a submission.
    #[error("the gate rejects the result")]
    ResultRejected,
    /// A changed version that is not about this submission, or that changes nothing.
    #[error("the result changes nothing: reject the draft instead")]
    EmptyResult,
    /// A comment on a file that the submission does not contain.
    #[error("the submission does not contain {path}")]
    CommentPath {
        /// The file.
        path: RelPath,
    },
    /// The content contained a credential and was removed.
    #[error("content was removed because it contained a credential: write it again")]
    ContentRemoved,
}

/// Returns the events that a command leads to, or why it is refused.
pub fn decide(
    drafts: &DraftSet,
    who: &Principal,
    command: DraftOperation,
    limits: &DraftLimits,
    reviewers: &ApprovalRules,
    now_ms: u64,
) -> Result<Vec<DraftEvent>, DraftRefusal> {
    let find = |id: DraftId| drafts.of(who, id).ok_or(DraftRefusal::Unknown);
    check_role(who, &command)?;
    match command {
        DraftOperation::Request { id, task, path, base } => {
            if drafts.open_for(who, &task, &path).is_some() {
                return Ok(Vec::new());
            }
            let open = || drafts.all().filter(|one| one.state.is_open() && one.owner == *who);
            let limit = limits.open_per_task;
            if open().filter(|one| one.task == task).count() >= limit {
                return Err(DraftRefusal::Limit { what: "open drafts in the task", limit });
            }
            if open().count() >= MAX_OPEN_DRAFTS {
                return Err(DraftRefusal::Limit {
                    what: "open drafts for the worker",
                    limit: MAX_OPEN_DRAFTS,
                });
            }
            Ok(vec![DraftEvent::Requested { draft: id, task, path, base }])
        }
        DraftOperation::Write { draft, change, bytes, if_match } => {
            let one = find(draft)?;
            in_state(one, "written", |state| {
                matches!(state, DraftState::Editing | DraftState::Escalated | DraftState::Conflict)
            })?;
            if let Some(wanted) = if_match
                && one.head() != Some(wanted)
            {
                let head = one.head().map_or_else(|| "absent".to_owned(), |head| head.to_string());
                return Err(DraftRefusal::Stale { head });
            }
            Ok(vec![DraftEvent::Written { draft, change, bytes }])
        }
        DraftOperation::Submit { drafts: ids, summary } => {
            submittable(drafts, who, &ids, limits)?;
            let seal = drafts.seal(&ids);
            let summary = summary.chars().take(MAX_TEXT_CHARS).collect();
            Ok(vec![DraftEvent::Submitted { drafts: ids, seal, summary }])
        }
        DraftOperation::Judge { drafts: ids, policy, action, findings } => {
            let mut last = false;
            for id in &ids {
                let one = find(*id)?;
                in_state(one, "judged", |state| {
                    matches!(state, DraftState::Submitted | DraftState::Escalated)
                })?;
                last |= one.rejections + 1 >= limits.rejections;
            }
            let seal = drafts.seal(&ids);
            let last = last && action == GateAction::Reject;
            Ok(vec![DraftEvent::Judged { drafts: ids, seal, policy, action, findings, last }])
        }
        DraftOperation::Review { draft, seal, policy, say, reason } => {
            let one = find(draft)?;
            let submission = reviewable(drafts, who, one, seal)?;
            if say == ReviewDecision::Approve {
                approvable(who, one, submission, policy, reviewers)?;
            }
            let reason = reason.chars().take(MAX_TEXT_CHARS).collect();
            let ids = submission.drafts.clone();
            Ok(vec![DraftEvent::Reviewed { drafts: ids, seal, policy, say, reason }])
        }
        DraftOperation::Amend { draft, seal, policy, action, findings, hunks, files, reason } => {
            let one = find(draft)?;
            let submission = reviewable(drafts, who, one, seal)?;
            approvable(who, one, submission, policy, reviewers)?;
            if action == GateAction::Reject {
                return Err(DraftRefusal::ResultRejected);
            }
            let ids = submission.drafts.clone();
            amendable(drafts, &ids, &files)?;
            let result = drafts.amended_seal(&ids, &files);
            let reason = reason.chars().take(MAX_TEXT_CHARS).collect();
            Ok(vec![DraftEvent::Amended {
                drafts: ids,
                seal,
                result,
                policy,
                action,
                findings,
                hunks,
                files,
                reason,
            }])
        }
        DraftOperation::Comment { draft, seal, mut comments } => {
            let one = find(draft)?;
            let submission = reviewable(drafts, who, one, seal)?;
            if submission.comments.len() + comments.len() > MAX_COMMENTS {
                return Err(DraftRefusal::Limit {
                    what: "comments on the submission",
                    limit: MAX_COMMENTS,
                });
            }
            for comment in &mut comments {
                let is_known =
                    submission.drafts.iter().filter_map(|id| drafts.all.get(id)).any(|one| {
                        one.path == comment.path
                            || one.change.rename_to.as_ref() == Some(&comment.path)
                    });
                if !is_known {
                    return Err(DraftRefusal::CommentPath { path: comment.path.clone() });
                }
                comment.text = comment.text.chars().take(MAX_TEXT_CHARS).collect();
            }
            let ids = submission.drafts.clone();
            Ok(vec![DraftEvent::Commented { drafts: ids, seal, comments }])
        }
        DraftOperation::Apply { drafts: ids, steps } => {
            require_state(drafts, who, &ids, "applied", DraftState::Accepted)?;
            Ok(vec![DraftEvent::Applying { drafts: ids, undo: false, steps }])
        }
        DraftOperation::Undo { drafts: ids, steps } => {
            require_state(drafts, who, &ids, "undone", DraftState::Applied)?;
            Ok(vec![DraftEvent::Applying { drafts: ids, undo: true, steps }])
        }
        DraftOperation::End { drafts: ids, end } => {
            for id in &ids {
                in_state(find(*id)?, "ended", |state| {
                    matches!(state, DraftState::Applying | DraftState::Reverting)
                })?;
            }
            Ok(vec![DraftEvent::Ended { drafts: ids, end }])
        }
        DraftOperation::Rebase { draft, base, change, clean } => {
            in_state(find(draft)?, "rebased", |state| {
                matches!(state, DraftState::Editing | DraftState::Escalated | DraftState::Conflict)
            })?;
            Ok(vec![DraftEvent::Rebased { draft, base, change, clean }])
        }
        DraftOperation::Withdraw { draft } => {
            in_state(find(draft)?, "withdrawn", |state| {
                matches!(state, DraftState::Editing | DraftState::Escalated | DraftState::Conflict)
            })?;
            Ok(vec![DraftEvent::Withdrawn { draft }])
        }
        DraftOperation::Expire => Ok(overdue(drafts, limits, now_ms)),
    }
}

/// Checks whether this kind of principal may issue the command. Workers never judge, apply or
/// review.
fn check_role(who: &Principal, command: &DraftOperation) -> Result<(), DraftRefusal> {
    let is_gate = matches!(who.kind, PrincipalKind::Gate | PrincipalKind::Recovery);
    match command {
        DraftOperation::Judge { .. }
        | DraftOperation::Apply { .. }
        | DraftOperation::End { .. }
        | DraftOperation::Expire => {
            if is_gate {
                Ok(())
            } else {
                Err(DraftRefusal::NotGate)
            }
        }
        DraftOperation::Review { .. }
        | DraftOperation::Amend { .. }
        | DraftOperation::Comment { .. }
        | DraftOperation::Undo { .. } => {
            if who.kind == PrincipalKind::Human {
                Ok(())
            } else {
                Err(DraftRefusal::NotHuman)
            }
        }
        DraftOperation::Request { .. }
        | DraftOperation::Write { .. }
        | DraftOperation::Submit { .. }
        | DraftOperation::Rebase { .. }
        | DraftOperation::Withdraw { .. } => Ok(()),
    }
}

/// The submission of a draft that waits for this reviewer, if it is the version that was shown.
fn reviewable<'a>(
    drafts: &DraftSet,
    who: &Principal,
    one: &'a Draft,
    seal: Sha256Hex,
) -> Result<&'a DraftSubmission, DraftRefusal> {
    in_state(one, "reviewed", |state| state == DraftState::Escalated)?;
    let is_worker = |owner: &Principal| owner.kind == PrincipalKind::Worker;
    if drafts.all().any(|one| is_worker(&one.owner) && one.owner.id == who.id) {
        return Err(DraftRefusal::WorkerName { id: who.id.clone() });
    }
    let submission = one.submission.as_ref().ok_or(DraftRefusal::Unknown)?;
    let shown = drafts.seal(&submission.drafts);
    if shown != seal || submission.seal != seal {
        return Err(DraftRefusal::Seal { seal: shown });
    }
    Ok(submission)
}

/// Whether this reviewer may approve a submission that this policy judged.
fn approvable(
    who: &Principal,
    one: &Draft,
    submission: &DraftSubmission,
    policy: Sha256Hex,
    reviewers: &ApprovalRules,
) -> Result<(), DraftRefusal> {
    if submission.policy != Some(policy) {
        return Err(DraftRefusal::Policy);
    }
    if !reviewers.may_approve(who) {
        return Err(DraftRefusal::NotApprover { who: Box::new(who.clone()) });
    }
    let is_author =
        one.owner == *who || (one.owner.account.is_some() && one.owner.account == who.account);
    if is_author && !reviewers.author_may_approve {
        return Err(DraftRefusal::Author);
    }
    Ok(())
}

/// Whether these are changes of drafts of the submission that leave something to apply. A reviewer
/// can change contents, but not choose other paths.
fn amendable(
    drafts: &DraftSet,
    ids: &[DraftId],
    files: &[AmendedFile],
) -> Result<(), DraftRefusal> {
    let mut seen = BTreeSet::new();
    for file in files {
        let one = drafts.all.get(&file.draft).filter(|one| ids.contains(&one.id));
        let one = one.ok_or(DraftRefusal::Unknown)?;
        let keeps_path =
            file.change.rename_to.is_none() || file.change.rename_to == one.change.rename_to;
        if !seen.insert(file.draft) || file.proposed != one.change || !keeps_path {
            return Err(DraftRefusal::Seal { seal: drafts.seal(ids) });
        }
    }
    let has_change = |id: &DraftId| {
        let Some(one) = drafts.all.get(id) else { return false };
        let amended = files.iter().find(|file| file.draft == *id);
        !amended.map_or(&one.change, |file| &file.change).is_empty(one.base)
    };
    if ids.iter().any(has_change) { Ok(()) } else { Err(DraftRefusal::EmptyResult) }
}

fn in_state(
    draft: &Draft,
    what: &'static str,
    fits: impl Fn(DraftState) -> bool,
) -> Result<(), DraftRefusal> {
    if fits(draft.state) { Ok(()) } else { Err(DraftRefusal::State { state: draft.state, what }) }
}

fn require_state(
    drafts: &DraftSet,
    who: &Principal,
    ids: &[DraftId],
    what: &'static str,
    wanted: DraftState,
) -> Result<(), DraftRefusal> {
    for id in ids {
        let one = drafts.of(who, *id).ok_or(DraftRefusal::Unknown)?;
        in_state(one, what, |state| state == wanted)?;
    }
    Ok(())
}

fn submittable(
    drafts: &DraftSet,
    who: &Principal,
    ids: &[DraftId],
    limits: &DraftLimits,
) -> Result<(), DraftRefusal> {
    if ids.len() > limits.per_submission {
        let limit = limits.per_submission;
        return Err(DraftRefusal::Limit { what: "drafts in one submission", limit });
    }
    let mut places = BTreeSet::new();
    let mut owners = BTreeSet::new();
    for id in ids {
        let one = drafts.of(who, *id).ok_or(DraftRefusal::Unknown)?;
        in_state(one, "submitted", |state| {
            matches!(state, DraftState::Editing | DraftState::Conflict)
        })?;
        if one.content_removed {
            return Err(DraftRefusal::ContentRemoved);
        }
        let fresh = places.insert(&one.path)
            && one.change.rename_to.as_ref().is_none_or(|to| places.insert(to));
        owners.insert(&one.owner);
        if !fresh {
            return Err(DraftRefusal::Set);
        }
    }
    if owners.len() == 1 { Ok(()) } else { Err(DraftRefusal::Set) }
}

fn overdue(drafts: &DraftSet, limits: &DraftLimits, now_ms: u64) -> Vec<DraftEvent> {
    let late = |draft: &&Draft| {
        let idle = now_ms.saturating_sub(draft.touched);
        match draft.state {
            DraftState::Editing | DraftState::Conflict => idle > limits.draft_ttl_ms,
            DraftState::Escalated => idle > limits.escalation_ttl_ms,
            DraftState::Submitted
            | DraftState::Accepted
            | DraftState::Applying
            | DraftState::Applied
            | DraftState::Rejected
            | DraftState::Withdrawn
            | DraftState::Expired
            | DraftState::Reverting
            | DraftState::Reverted => false,
        }
    };
    drafts.all().filter(late).map(|one| DraftEvent::Expired { draft: one.id }).collect()
}
