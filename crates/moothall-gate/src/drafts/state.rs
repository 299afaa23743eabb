//! What the journal comes to: every draft as it is now.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::event::{Change, End, Event, FileState, JudgedFinding, Record, Say};
use super::names::{DraftId, Principal, PrincipalKind, TaskId};
use super::path::RelPath;
use crate::Sha256Hex;
use crate::gate::{Action, Rule};

/// Where a draft stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The worker may write.
    Editing,
    /// The gate judges.
    Submitted,
    /// A person must decide.
    Escalated,
    /// It may be applied.
    Accepted,
    /// Its files are being changed.
    Applying,
    /// It is in the workspace.
    Applied,
    /// The file is no longer what the draft was made for.
    Conflict,
    /// A person said no, or the gate said it too often.
    Rejected,
    /// The worker gave it up.
    Withdrawn,
    /// Nobody touched it for too long.
    Expired,
    /// It is being taken back.
    Reverting,
    /// It was taken back.
    Reverted,
}

impl State {
    /// Whether something can still become of it.
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

    /// The word for it, as in files.
    pub fn word(self) -> &'static str {
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

/// The last time a draft was handed in, and what was said about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// Everything that was handed in together, in order.
    pub drafts: Vec<DraftId>,
    /// The hash of all that is proposed.
    pub seal: Sha256Hex,
    /// What the worker says.
    pub summary: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The policy by which it was judged, once it was.
    pub policy: Option<Sha256Hex>,
    /// What the gate made of it, once it did.
    pub action: Option<Action>,
    /// Why.
    pub findings: Vec<JudgedFinding>,
    /// What a person said last, and who.
    pub reviewed: Option<(Say, Principal, String)>,
}

/// One draft. Stores keep snapshots of it: a new field needs a new version of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Its handle.
    pub id: DraftId,
    /// The task.
    pub task: TaskId,
    /// Whose it is.
    pub owner: Principal,
    /// Its file.
    pub path: RelPath,
    /// The file it was made for; none: it does not exist.
    pub base: Option<FileState>,
    /// What it proposes.
    pub change: Change,
    /// Revisions so far.
    pub revision: u64,
    /// Where it stands.
    pub state: State,
    /// How often the gate rejected it.
    pub rejections: u32,
    /// The content held a credential and was removed: it has to be written again.
    pub content_removed: bool,
    /// The last submission.
    pub submission: Option<Submission>,
    /// What stood in the way, in state `conflict`.
    pub conflict: Option<RelPath>,
    /// When something last happened to it, in milliseconds since 1970.
    pub touched: u64,
}

impl Draft {
    /// The hash of the drafted content; none where the draft deletes its file.
    pub fn head(&self) -> Option<Sha256Hex> {
        self.change.file.map(|file| file.sha256)
    }
}

/// All drafts of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drafts {
    pub(super) all: BTreeMap<DraftId, Draft>,
}

impl FromIterator<Draft> for Drafts {
    fn from_iter<T: IntoIterator<Item = Draft>>(drafts: T) -> Self {
        Self { all: drafts.into_iter().map(|draft| (draft.id, draft)).collect() }
    }
}

impl Drafts {
    /// Every draft, in the order of handles.
    pub fn all(&self) -> impl Iterator<Item = &Draft> {
        self.all.values()
    }

    /// The draft, if this principal may know of it.
    pub fn of(&self, who: &Principal, id: DraftId) -> Option<&Draft> {
        let draft = self.all.get(&id)?;
        match who.kind {
            PrincipalKind::Worker => (draft.owner == *who).then_some(draft),
            PrincipalKind::Human | PrincipalKind::Gate | PrincipalKind::Recovery => Some(draft),
        }
    }

    /// The open draft of a principal for a file in a task: there is at most one.
    pub fn open_for(&self, who: &Principal, task: &TaskId, path: &RelPath) -> Option<&Draft> {
        self.all.values().find(|draft| {
            draft.state.is_open()
                && draft.owner == *who
                && draft.task == *task
                && draft.path == *path
        })
    }

    /// The hash of everything that these drafts propose: what a person approves. Handles that are
    /// not known count as nothing.
    pub fn seal(&self, ids: &[DraftId]) -> Sha256Hex {
        let mut whole = String::from("moothall draft seal 1\n");
        for draft in ids.iter().filter_map(|id| self.all.get(id)) {
            let file = |file: &Option<FileState>| match file {
                Some(FileState { sha256, executable }) => format!("{sha256} {executable}"),
                None => "absent".to_owned(),
            };
            // Paths hold no line breaks, so a line is one thing.
            let to = draft.change.rename_to.as_ref().unwrap_or(&draft.path);
            let (base, change) = (file(&draft.base), file(&draft.change.file));
            let lines =
                [draft.id.to_string(), base, change, draft.path.to_string(), to.to_string()];
            for line in lines {
                whole.push_str(&line);
                whole.push('\n');
            }
        }
        Sha256Hex::of(whole.as_bytes())
    }

    /// Takes in one record. Total: a record about a draft that nobody knows changes nothing.
    pub fn evolve(&mut self, record: &Record) {
        let at = record.ts;
        match &record.event {
            Event::Requested { draft, task, path, base } => {
                let change = Change { file: *base, rename_to: None };
                let opened = Draft {
                    id: *draft,
                    task: task.clone(),
                    owner: record.actor.clone(),
                    path: path.clone(),
                    base: *base,
                    change,
                    revision: 0,
                    state: State::Editing,
                    rejections: 0,
                    content_removed: false,
                    submission: None,
                    conflict: None,
                    touched: at,
                };
                self.all.entry(*draft).or_insert(opened);
            }
            Event::Written { draft, change, .. } => self.reopened(*draft, at, |one| {
                one.change = change.clone();
                one.content_removed = false;
            }),
            Event::Rebased { draft, base, change, .. } => self.reopened(*draft, at, |one| {
                one.base = *base;
                one.change = change.clone();
                one.conflict = None;
            }),
            Event::Submitted { drafts, seal, summary } => self.each(drafts, at, |one| {
                one.state = State::Submitted;
                one.conflict = None;
                one.submission = Some(Submission {
                    drafts: drafts.clone(),
                    seal: *seal,
                    summary: summary.clone(),
                    at,
                    policy: None,
                    action: None,
                    findings: Vec::new(),
                    reviewed: None,
                });
            }),
            Event::Judged { drafts, policy, action, findings, last, .. } => {
                let secret = findings.iter().any(|one| {
                    one.action == Action::Reject
                        && matches!(one.rule, Rule::SecretSpecific | Rule::SecretGeneric)
                });
                self.each(drafts, at, |one| {
                    one.state = match action {
                        Action::Allow | Action::Warn => State::Accepted,
                        Action::Escalate => State::Escalated,
                        Action::Reject if *last => State::Rejected,
                        Action::Reject => State::Editing,
                    };
                    if *action == Action::Reject {
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
            Event::Reviewed { drafts, say, reason, .. } => self.each(drafts, at, |one| {
                one.state = match say {
                    Say::Approve => State::Accepted,
                    Say::Reject => State::Rejected,
                    Say::SendBack => State::Editing,
                };
                if let Some(submission) = &mut one.submission {
                    submission.reviewed = Some((*say, record.actor.clone(), reason.clone()));
                }
            }),
            Event::Applying { drafts, undo, .. } => self.each(drafts, at, |one| {
                one.state = if *undo { State::Reverting } else { State::Applying };
            }),
            Event::Ended { drafts, end } => self.each(drafts, at, |one| match (end, one.state) {
                (End::Done, State::Reverting) => one.state = State::Reverted,
                (End::Done, _) => one.state = State::Applied,
                // What could not be taken back is still there.
                (End::Conflict { .. }, State::Reverting) => one.state = State::Applied,
                (End::Conflict { path, .. }, _) => {
                    one.state = State::Conflict;
                    one.conflict = Some(path.clone());
                }
            }),
            Event::Withdrawn { draft } => self.closed(*draft, at, State::Withdrawn),
            Event::Expired { draft } => self.closed(*draft, at, State::Expired),
            Event::Salvaged { .. }
            | Event::Purged { .. }
            | Event::PolicyDiffers { .. }
            | Event::PolicyTrusted { .. }
            | Event::Rotated { .. } => {}
        }
    }

    fn each(&mut self, ids: &[DraftId], at: u64, change: impl Fn(&mut Draft)) {
        for id in ids {
            if let Some(draft) = self.all.get_mut(id) {
                draft.touched = at;
                change(draft);
            }
        }
    }

    /// A new revision voids what was said about the old one, and about everything that was handed
    /// in with it.
    fn reopened(&mut self, id: DraftId, at: u64, change: impl Fn(&mut Draft)) {
        self.let_go(id, at);
        self.each(&[id], at, |one| {
            one.state = State::Editing;
            one.revision += 1;
            change(one);
        });
    }

    fn closed(&mut self, id: DraftId, at: u64, state: State) {
        self.let_go(id, at);
        self.each(&[id], at, |one| one.state = state);
    }

    /// The others of an escalated submission go back to their worker: without this one they are
    /// not what was judged.
    fn let_go(&mut self, id: DraftId, at: u64) {
        let Some(draft) = self.all.get(&id) else { return };
        if draft.state != State::Escalated {
            return;
        }
        let together = draft.submission.as_ref().map_or_else(Vec::new, |one| one.drafts.clone());
        self.each(&together, at, |one| {
            if one.state == State::Escalated {
                one.state = State::Editing;
            }
        });
    }
}
