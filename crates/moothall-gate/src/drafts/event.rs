//! Draft events as stored in the journal: hashes and rule names, never content.

use serde::{Deserialize, Serialize};

use super::identity::{ClientInfo, DraftId, Principal, TaskId};
use super::path::RelPath;
use crate::Sha256Hex;
use crate::gate::{GateAction, GateRule};

/// Content hash and mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// Hash of the content.
    pub sha256: Sha256Hex,
    /// Whether the owner's executable bit is set.
    pub executable: bool,
}

/// A draft's proposal for its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedChange {
    /// The new file, or `None` to delete it.
    pub file: Option<FileState>,
    /// New path, if the file is renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename_to: Option<RelPath>,
}

impl ProposedChange {
    /// Whether it leaves the file unchanged.
    pub fn is_empty(&self, base: Option<FileState>) -> bool {
        self.file == base && self.rename_to.is_none()
    }
}

/// One change to one workspace file, with everything needed to finish or revert it after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileStep {
    /// The file.
    pub path: RelPath,
    /// The file expected before the step, or `None` if it must not exist.
    pub from: Option<FileState>,
    /// The file after the step, or `None` to delete it.
    pub to: Option<FileState>,
    /// Name of the staging file in the same directory. Recovery touches no other file.
    pub staged_as: String,
}

/// A finding as stored in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalFinding {
    /// The rule.
    pub rule: GateRule,
    /// The action the policy assigns to it.
    pub action: GateAction,
    /// The file.
    pub path: RelPath,
    /// Line in the draft, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Fixed text of the rule; never quotes the draft.
    pub message: String,
}

/// A person's decision on an escalated submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewDecision {
    /// Apply the drafts.
    Approve,
    /// Close the drafts for good.
    Reject,
    /// Return the drafts to the worker for changes.
    SendBack,
}

/// Hunks of a submission that a reviewer approved. The others are rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HunkSelection {
    /// Numbers of the approved hunks in the whole submission, from 1.
    pub approved: Vec<usize>,
    /// Number of hunks in the submission.
    pub of: usize,
}

/// A file of a submission that a reviewer changed before approving it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AmendedFile {
    /// The draft.
    pub draft: DraftId,
    /// What the worker proposed.
    pub proposed: ProposedChange,
    /// What is applied.
    pub change: ProposedChange,
    /// Whether a person edited the content, as opposed to selecting hunks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// The version of a file that a comment is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommentSide {
    /// The file before the change.
    Old,
    /// The draft.
    New,
}

impl CommentSide {
    /// The serialized name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// A reviewer's comment on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineComment {
    /// The file.
    pub path: RelPath,
    /// The version that has the line.
    pub side: CommentSide,
    /// The line, from 1.
    pub line: usize,
    /// The comment, as plain text.
    pub text: String,
}

/// How applying or reverting drafts ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum ApplyOutcome {
    /// Every step was carried out.
    Done,
    /// A file changed after the draft was made; no step is in effect.
    Conflict {
        /// The file that differs.
        path: RelPath,
        /// Hash of the file that was found, or `None` if it is missing.
        found: Option<Sha256Hex>,
        /// Files that could not be rolled back because someone changed them in the meantime.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<RelPath>,
    },
}

/// One journaled event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DraftEvent {
    /// A draft was opened.
    Requested {
        /// The draft.
        draft: DraftId,
        /// The task.
        task: TaskId,
        /// The file.
        path: RelPath,
        /// The file at that time, or `None` if it did not exist.
        base: Option<FileState>,
    },
    /// The draft has a new revision.
    Written {
        /// The draft.
        draft: DraftId,
        /// The new proposal.
        change: ProposedChange,
        /// Size of the content.
        bytes: u64,
    },
    /// Drafts were submitted together.
    Submitted {
        /// The drafts, in the order in which they are applied.
        drafts: Vec<DraftId>,
        /// Hash of everything the drafts propose.
        seal: Sha256Hex,
        /// The worker's description.
        summary: String,
    },
    /// The gate judged a submission.
    Judged {
        /// The drafts.
        drafts: Vec<DraftId>,
        /// Seal of the version that was judged.
        seal: Sha256Hex,
        /// Hash of the policy.
        policy: Sha256Hex,
        /// The decision.
        action: GateAction,
        /// The findings behind the decision.
        findings: Vec<JournalFinding>,
        /// Whether this rejection closes the drafts.
        last: bool,
    },
    /// A person reviewed a submission.
    Reviewed {
        /// The drafts.
        drafts: Vec<DraftId>,
        /// Seal of the version that was shown.
        seal: Sha256Hex,
        /// Hash of the policy the submission was judged by.
        policy: Sha256Hex,
        /// The decision.
        say: ReviewDecision,
        /// The reviewer's comment.
        reason: String,
    },
    /// A person approved a part of a submission, or edited it before approving it. It has a kind of
    /// its own, so that a version that does not know it stops instead of applying the whole
    /// proposal.
    Amended {
        /// The drafts.
        drafts: Vec<DraftId>,
        /// Seal of the version that was shown.
        seal: Sha256Hex,
        /// Seal of the result, which is applied.
        result: Sha256Hex,
        /// Hash of the policy that judged the submission and the result.
        policy: Sha256Hex,
        /// The gate's decision on the result.
        action: GateAction,
        /// The findings behind the decision.
        findings: Vec<JournalFinding>,
        /// The approved hunks, if the reviewer selected hunks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hunks: Option<HunkSelection>,
        /// The changed files.
        files: Vec<AmendedFile>,
        /// The reviewer's comment.
        reason: String,
    },
    /// A person commented on lines of a submission.
    Commented {
        /// The drafts.
        drafts: Vec<DraftId>,
        /// Seal of the version that was shown.
        seal: Sha256Hex,
        /// The comments.
        comments: Vec<LineComment>,
    },
    /// The workspace is about to change. Durable before the first file changes.
    Applying {
        /// The drafts.
        drafts: Vec<DraftId>,
        /// Whether the drafts are reverted instead of applied.
        undo: bool,
        /// The file steps.
        steps: Vec<FileStep>,
    },
    /// Applying or reverting ended.
    Ended {
        /// The drafts.
        drafts: Vec<DraftId>,
        /// The outcome.
        #[serde(flatten)]
        end: ApplyOutcome,
    },
    /// A file held unexpected content, which was saved under another name.
    Salvaged {
        /// The file it was found in place of.
        path: RelPath,
        /// Name of the saved copy, in the same directory.
        kept_as: String,
        /// Hash of the saved content.
        sha256: Sha256Hex,
    },
    /// A draft was rebased onto the current file and must be submitted again.
    Rebased {
        /// The draft.
        draft: DraftId,
        /// The current file.
        base: Option<FileState>,
        /// The new proposal.
        change: ProposedChange,
        /// False if the merge left conflict markers.
        clean: bool,
    },
    /// The worker discarded the draft.
    Withdrawn {
        /// The draft.
        draft: DraftId,
    },
    /// The draft was idle for too long.
    Expired {
        /// The draft.
        draft: DraftId,
    },
    /// Stored contents were removed; the journal is kept.
    Purged {
        /// Number of removed contents.
        blobs: u64,
    },
    /// The policy on disk differs from the one this process started with, which stays in force.
    PolicyDiffers {
        /// Hash of the policy in force.
        policy: Sha256Hex,
    },
    /// A person trusted the workspace policy, which may now loosen the built-in one.
    PolicyTrusted {
        /// Hash of the policy text.
        text: Sha256Hex,
    },
    /// The journal continues in a new file.
    Rotated {
        /// Number of the new file.
        next: u64,
    },
}

/// One journal line without its hash chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Milliseconds since 1970, for display only. Sequence numbers define the order.
    pub ts: u64,
    /// Who caused the event.
    pub actor: Principal,
    /// The program the actor used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
    /// The event.
    #[serde(flatten)]
    pub event: DraftEvent,
}
