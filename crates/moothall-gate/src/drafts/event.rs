//! What happened to drafts, as the journal keeps it: hashes and rule names, never content.

use serde::{Deserialize, Serialize};

use super::names::{Client, DraftId, Principal, TaskId};
use super::path::RelPath;
use crate::Sha256Hex;
use crate::gate::{Action, Rule};

/// A file as far as a draft is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// What is in it.
    pub sha256: Sha256Hex,
    /// Whether its owner may run it.
    pub executable: bool,
}

/// What a draft proposes for its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The file afterwards; none deletes it.
    pub file: Option<FileState>,
    /// Where it goes, if not where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename_to: Option<RelPath>,
}

/// One change of one file of the workspace, with everything that is needed to finish it or take it
/// back after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Which file.
    pub path: RelPath,
    /// What must be there; none: nothing.
    pub from: Option<FileState>,
    /// What shall be there; none: nothing.
    pub to: Option<FileState>,
    /// The name of the staging file beside it, so that recovery touches no other.
    pub staged_as: String,
}

/// A finding as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgedFinding {
    /// Which rule.
    pub rule: Rule,
    /// What the policy does about it.
    pub action: Action,
    /// Which file.
    pub path: RelPath,
    /// Which line of the draft, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What was observed, in words of ours only.
    pub message: String,
}

/// What a person says about an escalated submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Say {
    /// Apply it.
    Approve,
    /// Never.
    Reject,
    /// Not like this; the worker may go on.
    SendBack,
}

/// How an attempt to change the workspace ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum End {
    /// All of it is done.
    Done,
    /// None of it is done: a file is not what the draft was made for.
    Conflict {
        /// Which file stood in the way.
        path: RelPath,
        /// What was found; none: nothing.
        found: Option<Sha256Hex>,
        /// Files that could not be put back, because somebody changed them meanwhile.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<RelPath>,
    },
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A draft was opened.
    Requested {
        /// Its handle.
        draft: DraftId,
        /// The task.
        task: TaskId,
        /// The file.
        path: RelPath,
        /// The file as it was; none: it does not exist.
        base: Option<FileState>,
    },
    /// It has a new revision.
    Written {
        /// Which.
        draft: DraftId,
        /// What it proposes now.
        change: Change,
        /// Bytes of the content.
        bytes: u64,
    },
    /// Drafts were handed in together.
    Submitted {
        /// Which.
        drafts: Vec<DraftId>,
        /// The hash of all they propose.
        seal: Sha256Hex,
        /// What the worker says about them.
        summary: String,
    },
    /// The gate judged.
    Judged {
        /// Which drafts.
        drafts: Vec<DraftId>,
        /// What was judged.
        seal: Sha256Hex,
        /// By which policy.
        policy: Sha256Hex,
        /// What comes of it.
        action: Action,
        /// Why.
        findings: Vec<JudgedFinding>,
        /// Whether a rejection was the last one.
        last: bool,
    },
    /// A person said something.
    Reviewed {
        /// Which drafts.
        drafts: Vec<DraftId>,
        /// What the person saw.
        seal: Sha256Hex,
        /// By which policy it had been judged.
        policy: Sha256Hex,
        /// What the person says.
        say: Say,
        /// And why.
        reason: String,
    },
    /// The workspace is about to be changed. Durable before the first change.
    Applying {
        /// Which drafts.
        drafts: Vec<DraftId>,
        /// Whether they are taken back instead of put in place.
        undo: bool,
        /// File by file.
        steps: Vec<Step>,
    },
    /// It was changed, or it was not.
    Ended {
        /// Which drafts.
        drafts: Vec<DraftId>,
        /// How.
        #[serde(flatten)]
        end: End,
    },
    /// Somebody's bytes were found where ours should have been, and kept under another name.
    Salvaged {
        /// Beside which file.
        path: RelPath,
        /// Under which name.
        kept_as: String,
        /// What they are.
        sha256: Sha256Hex,
    },
    /// A draft was moved onto the present file; it has to be submitted again.
    Rebased {
        /// Which.
        draft: DraftId,
        /// The file as it is now.
        base: Option<FileState>,
        /// What the draft proposes now.
        change: Change,
        /// Whether the merge left conflict markers.
        clean: bool,
    },
    /// The worker gave it up.
    Withdrawn {
        /// Which.
        draft: DraftId,
    },
    /// Nobody touched it for too long.
    Expired {
        /// Which.
        draft: DraftId,
    },
    /// Stored contents were removed; the journal stays.
    Purged {
        /// How many.
        blobs: u64,
    },
    /// The policy on the disk is no longer the one that this process started with; the old one
    /// stays in force.
    PolicyDiffers {
        /// The one in force.
        policy: Sha256Hex,
    },
    /// A person trusted the policy of the workspace, which may loosen the built-in one from now on.
    PolicyTrusted {
        /// The hash of its text.
        text: Sha256Hex,
    },
    /// The file goes on in another one.
    Rotated {
        /// The number of the next one.
        next: u64,
    },
}

/// One line of the journal without its chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Milliseconds since 1970, for people. Order is the sequence number's alone.
    pub ts: u64,
    /// Who.
    pub actor: Principal,
    /// Through what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}
