//! What a command leads to. Pure: the same drafts, command, rules and time give the same events.

use std::collections::BTreeSet;

use super::event::{Change, End, Event, FileState, JudgedFinding, Say, Step};
use super::names::{Account, DraftId, Principal, PrincipalKind, TaskId};
use super::path::RelPath;
use super::state::{Draft, Drafts, State};
use crate::Sha256Hex;
use crate::gate::Action;

/// Characters of a summary or a reason that are kept; the rest is cut.
pub const MAX_TEXT_CHARS: usize = 2_000;
/// Open drafts of one worker: tasks are free, and their number bounds nothing.
const MAX_OPEN: usize = 256;

/// Numbers of the policy that say how many and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open drafts of one task.
    pub open_per_task: usize,
    /// Drafts that are submitted together.
    pub per_submission: usize,
    /// Rejections after which a draft is closed.
    pub rejections: u32,
    /// Idle time after which an open draft expires, in milliseconds.
    pub draft_ttl_ms: u64,
    /// The same while a person is waited for.
    pub escalation_ttl_ms: u64,
}

/// Who may say yes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reviewers {
    /// Accounts of people; empty: everybody who can open the store. A plain name matches nobody.
    pub approvers: Vec<String>,
    /// Whether one may approve a draft of one's own.
    pub author_may_approve: bool,
}

impl Reviewers {
    /// Approvers that are plain names: people choose their names themselves, so these match nobody.
    pub fn plain_names(&self) -> impl Iterator<Item = &str> {
        let names = self.approvers.iter().filter(|one| Account::parse(one).is_none());
        names.map(String::as_str)
    }

    fn may_approve(&self, who: &Principal) -> bool {
        let Some(account) = &who.account else { return self.approvers.is_empty() };
        let mut accounts = self.approvers.iter().filter_map(|one| Account::parse(one));
        self.approvers.is_empty() || accounts.any(|one| one == *account)
    }
}

/// What somebody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Open a draft.
    Request {
        /// The handle it would get.
        id: DraftId,
        /// The task.
        task: TaskId,
        /// The file.
        path: RelPath,
        /// The file as it is; none: it does not exist.
        base: Option<FileState>,
    },
    /// Give it a new revision.
    Write {
        /// Which.
        draft: DraftId,
        /// What it shall propose.
        change: Change,
        /// Bytes of the content.
        bytes: u64,
        /// What the writer thinks the content is now.
        if_match: Option<Sha256Hex>,
    },
    /// Hand drafts in together.
    Submit {
        /// Which, in the order in which they are to be applied.
        drafts: Vec<DraftId>,
        /// What the worker says about them.
        summary: String,
    },
    /// The gate's word on what was handed in.
    Judge {
        /// Which.
        drafts: Vec<DraftId>,
        /// The policy's hash.
        policy: Sha256Hex,
        /// What comes of it.
        action: Action,
        /// Why.
        findings: Vec<JudgedFinding>,
    },
    /// A person's word on what was escalated.
    Review {
        /// One of the drafts.
        draft: DraftId,
        /// What the person was shown.
        seal: Sha256Hex,
        /// The policy in force.
        policy: Sha256Hex,
        /// What the person says.
        say: Say,
        /// And why.
        reason: String,
    },
    /// Start changing the workspace.
    Apply {
        /// Which drafts.
        drafts: Vec<DraftId>,
        /// Their steps.
        steps: Vec<Step>,
    },
    /// Start taking back what was applied.
    Undo {
        /// Which drafts.
        drafts: Vec<DraftId>,
        /// The steps back.
        steps: Vec<Step>,
    },
    /// What came of it.
    End {
        /// Which drafts.
        drafts: Vec<DraftId>,
        /// How.
        end: End,
    },
    /// Move a draft onto the present file.
    Rebase {
        /// Which.
        draft: DraftId,
        /// The file as it is.
        base: Option<FileState>,
        /// The merged proposal.
        change: Change,
        /// Whether the merge was clean.
        clean: bool,
    },
    /// Give a draft up.
    Withdraw {
        /// Which.
        draft: DraftId,
    },
    /// Close what nobody touched for too long.
    Expire,
}

/// Why a command is not obeyed. An answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such draft, or another principal's: the same words for both.
    #[error("there is no such draft")]
    Unknown,
    /// Not in this state.
    #[error("the draft is {}: it cannot be {what}", state.word())]
    State {
        /// Where it stands.
        state: State,
        /// What was wanted.
        what: &'static str,
    },
    /// Somebody wrote it meanwhile.
    #[error("the draft has changed meanwhile: its content is {head} now")]
    Stale {
        /// What is there.
        head: String,
    },
    /// A person approves what was shown, and this is something else.
    #[error("the draft is not what was shown: its seal is {seal} now")]
    Seal {
        /// What it is now.
        seal: Sha256Hex,
    },
    /// It was judged by another policy.
    #[error("the policy has changed since the draft was judged")]
    Policy,
    /// Too many.
    #[error("{what}: {limit} are the most")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
    },
    /// A draft twice, two drafts of one file, or none at all.
    #[error("drafts that are submitted together are of one owner, and each of another file")]
    Set,
    /// Only the gate judges and applies.
    #[error("only the gate does that")]
    NotGate,
    /// Only people review.
    #[error("only a person may review")]
    NotHuman,
    /// Not on the list.
    #[error("{who} is not among the approvers of the policy")]
    NotApprover {
        /// Who.
        who: Box<Principal>,
    },
    /// A person under the name of a worker.
    #[error("`{id}` is the name of a worker and cannot review")]
    WorkerName {
        /// The name.
        id: String,
    },
    /// Nobody approves a draft of one's own.
    #[error("the author of a draft may not approve it")]
    Author,
    /// It held a credential.
    #[error("the content was removed because it held a credential: write it again")]
    ContentRemoved,
}

/// What a command leads to, or why it leads to nothing.
pub fn decide(
    drafts: &Drafts,
    who: &Principal,
    command: Command,
    limits: &Limits,
    reviewers: &Reviewers,
    now_ms: u64,
) -> Result<Vec<Event>, Refusal> {
    let find = |id: DraftId| drafts.of(who, id).ok_or(Refusal::Unknown);
    may(who, &command)?;
    match command {
        Command::Request { id, task, path, base } => {
            if drafts.open_for(who, &task, &path).is_some() {
                return Ok(Vec::new());
            }
            let open = || drafts.all().filter(|one| one.state.is_open() && one.owner == *who);
            let limit = limits.open_per_task;
            if open().filter(|one| one.task == task).count() >= limit {
                return Err(Refusal::Limit { what: "open drafts of a task", limit });
            }
            if open().count() >= MAX_OPEN {
                return Err(Refusal::Limit { what: "open drafts of a worker", limit: MAX_OPEN });
            }
            Ok(vec![Event::Requested { draft: id, task, path, base }])
        }
        Command::Write { draft, change, bytes, if_match } => {
            let one = find(draft)?;
            in_state(one, "written", |state| {
                matches!(state, State::Editing | State::Escalated | State::Conflict)
            })?;
            if let Some(wanted) = if_match
                && one.head() != Some(wanted)
            {
                let head = one.head().map_or_else(|| "absent".to_owned(), |head| head.to_string());
                return Err(Refusal::Stale { head });
            }
            Ok(vec![Event::Written { draft, change, bytes }])
        }
        Command::Submit { drafts: ids, summary } => {
            submittable(drafts, who, &ids, limits)?;
            let seal = drafts.seal(&ids);
            let summary = summary.chars().take(MAX_TEXT_CHARS).collect();
            Ok(vec![Event::Submitted { drafts: ids, seal, summary }])
        }
        Command::Judge { drafts: ids, policy, action, findings } => {
            let mut last = false;
            for id in &ids {
                let one = find(*id)?;
                in_state(one, "judged", |state| {
                    matches!(state, State::Submitted | State::Escalated)
                })?;
                last |= one.rejections + 1 >= limits.rejections;
            }
            let seal = drafts.seal(&ids);
            let last = last && action == Action::Reject;
            Ok(vec![Event::Judged { drafts: ids, seal, policy, action, findings, last }])
        }
        Command::Review { draft, seal, policy, say, reason } => {
            let one = find(draft)?;
            in_state(one, "reviewed", |state| state == State::Escalated)?;
            let is_worker = |owner: &Principal| owner.kind == PrincipalKind::Worker;
            if drafts.all().any(|one| is_worker(&one.owner) && one.owner.id == who.id) {
                return Err(Refusal::WorkerName { id: who.id.clone() });
            }
            let submission = one.submission.as_ref().ok_or(Refusal::Unknown)?;
            let shown = drafts.seal(&submission.drafts);
            if shown != seal || submission.seal != seal {
                return Err(Refusal::Seal { seal: shown });
            }
            if say == Say::Approve {
                if submission.policy != Some(policy) {
                    return Err(Refusal::Policy);
                }
                if !reviewers.may_approve(who) {
                    return Err(Refusal::NotApprover { who: Box::new(who.clone()) });
                }
                let is_author = one.owner == *who
                    || (one.owner.account.is_some() && one.owner.account == who.account);
                if is_author && !reviewers.author_may_approve {
                    return Err(Refusal::Author);
                }
            }
            let reason = reason.chars().take(MAX_TEXT_CHARS).collect();
            let ids = submission.drafts.clone();
            Ok(vec![Event::Reviewed { drafts: ids, seal, policy, say, reason }])
        }
        Command::Apply { drafts: ids, steps } => {
            all_in(drafts, who, &ids, "applied", State::Accepted)?;
            Ok(vec![Event::Applying { drafts: ids, undo: false, steps }])
        }
        Command::Undo { drafts: ids, steps } => {
            all_in(drafts, who, &ids, "undone", State::Applied)?;
            Ok(vec![Event::Applying { drafts: ids, undo: true, steps }])
        }
        Command::End { drafts: ids, end } => {
            for id in &ids {
                in_state(find(*id)?, "ended", |state| {
                    matches!(state, State::Applying | State::Reverting)
                })?;
            }
            Ok(vec![Event::Ended { drafts: ids, end }])
        }
        Command::Rebase { draft, base, change, clean } => {
            in_state(find(draft)?, "rebased", |state| {
                matches!(state, State::Editing | State::Escalated | State::Conflict)
            })?;
            Ok(vec![Event::Rebased { draft, base, change, clean }])
        }
        Command::Withdraw { draft } => {
            in_state(find(draft)?, "given up", |state| {
                matches!(state, State::Editing | State::Escalated | State::Conflict)
            })?;
            Ok(vec![Event::Withdrawn { draft }])
        }
        Command::Expire => Ok(overdue(drafts, limits, now_ms)),
    }
}

/// Who may say what at all. Workers never judge, apply or review, whatever they hold.
fn may(who: &Principal, command: &Command) -> Result<(), Refusal> {
    let is_gate = matches!(who.kind, PrincipalKind::Gate | PrincipalKind::Recovery);
    match command {
        Command::Judge { .. } | Command::Apply { .. } | Command::End { .. } | Command::Expire => {
            if is_gate {
                Ok(())
            } else {
                Err(Refusal::NotGate)
            }
        }
        Command::Review { .. } | Command::Undo { .. } => {
            if who.kind == PrincipalKind::Human {
                Ok(())
            } else {
                Err(Refusal::NotHuman)
            }
        }
        Command::Request { .. }
        | Command::Write { .. }
        | Command::Submit { .. }
        | Command::Rebase { .. }
        | Command::Withdraw { .. } => Ok(()),
    }
}

fn in_state(
    draft: &Draft,
    what: &'static str,
    fits: impl Fn(State) -> bool,
) -> Result<(), Refusal> {
    if fits(draft.state) { Ok(()) } else { Err(Refusal::State { state: draft.state, what }) }
}

fn all_in(
    drafts: &Drafts,
    who: &Principal,
    ids: &[DraftId],
    what: &'static str,
    wanted: State,
) -> Result<(), Refusal> {
    for id in ids {
        let one = drafts.of(who, *id).ok_or(Refusal::Unknown)?;
        in_state(one, what, |state| state == wanted)?;
    }
    Ok(())
}

fn submittable(
    drafts: &Drafts,
    who: &Principal,
    ids: &[DraftId],
    limits: &Limits,
) -> Result<(), Refusal> {
    if ids.len() > limits.per_submission {
        let limit = limits.per_submission;
        return Err(Refusal::Limit { what: "drafts that are submitted together", limit });
    }
    let mut places = BTreeSet::new();
    let mut owners = BTreeSet::new();
    for id in ids {
        let one = drafts.of(who, *id).ok_or(Refusal::Unknown)?;
        in_state(one, "submitted", |state| matches!(state, State::Editing | State::Conflict))?;
        if one.content_removed {
            return Err(Refusal::ContentRemoved);
        }
        let fresh = places.insert(&one.path)
            && one.change.rename_to.as_ref().is_none_or(|to| places.insert(to));
        owners.insert(&one.owner);
        if !fresh {
            return Err(Refusal::Set);
        }
    }
    if owners.len() == 1 { Ok(()) } else { Err(Refusal::Set) }
}

fn overdue(drafts: &Drafts, limits: &Limits, now_ms: u64) -> Vec<Event> {
    let late = |draft: &&Draft| {
        let idle = now_ms.saturating_sub(draft.touched);
        match draft.state {
            State::Editing | State::Conflict => idle > limits.draft_ttl_ms,
            State::Escalated => idle > limits.escalation_ttl_ms,
            State::Submitted
            | State::Accepted
            | State::Applying
            | State::Applied
            | State::Rejected
            | State::Withdrawn
            | State::Expired
            | State::Reverting
            | State::Reverted => false,
        }
    };
    drafts.all().filter(late).map(|one| Event::Expired { draft: one.id }).collect()
}
