//! Drafts, reviews and the audit journal.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{DraftId, DraftState, ReviewDecision, TaskId};
use moothall_core::gate::GateAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Drafts of the server's workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftList {
    /// The connected workspaces; empty if the server has none.
    pub workspaces: Vec<WorkspaceRow>,
    /// Most recently changed first.
    pub drafts: Vec<DraftRow>,
    /// Number of drafts that need review, regardless of the filter.
    pub waiting: u64,
    /// Cursor to pass as `after` to the event stream.
    pub cursor: String,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WorkspaceRow {
    /// Id to use in requests.
    pub id: String,
    /// Name of its folder.
    pub name: String,
}

/// A draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftRow {
    /// Id of the draft.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub draft_id: DraftId,
    /// Id of the workspace.
    pub workspace: String,
    /// Id of the task.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub task_id: TaskId,
    /// Owner of the draft.
    pub owner: String,
    /// Path of the file.
    pub path: String,
    /// New path, if the file is renamed.
    pub rename_to: Option<String>,
    /// Kind of change.
    pub change: DraftChangeKind,
    /// State of the draft.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "DraftState"))]
    pub state: DraftState,
    /// Number of times the draft was written.
    pub revision: u64,
    /// Time of the last change.
    pub touched_at: String,
    /// Time of submission.
    pub submitted_at: Option<String>,
    /// The agent's summary of the change.
    pub summary: String,
    /// All drafts submitted together, in order.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "string[]"))]
    pub together: Vec<DraftId>,
    /// Hash of the whole submission. A review applies only to this hash.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub seal: Option<Sha256Hex>,
    /// Findings of the gate for the whole submission.
    pub findings: Vec<FindingRow>,
    /// The last review.
    pub reviewed: Option<DraftReviewRow>,
    /// Path of the conflicting file.
    pub conflict: Option<String>,
}

/// Kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum DraftChangeKind {
    /// The file is new.
    Created,
    /// The content or the executable bit changes.
    Edited,
    /// The file is deleted.
    Deleted,
    /// The file is renamed.
    Renamed,
}

/// A finding of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FindingRow {
    /// Id of the rule.
    pub rule: String,
    /// The policy's action for this finding.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "GateAction"))]
    pub action: GateAction,
    /// Path of the file.
    pub path: String,
    /// Line in the draft, from 1.
    pub line: Option<usize>,
    /// Description of the finding.
    pub message: String,
}

/// A review of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftReviewRow {
    /// The reviewer's decision.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "DraftSay"))]
    pub say: ReviewDecision,
    /// Name of the reviewer.
    pub by: String,
    /// The reviewer's reason.
    pub reason: String,
    /// Whether the reviewer approved a part of the submission, or edited it first.
    pub has_changes: bool,
}

/// A reviewer's comment on a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftCommentRow {
    /// Name of the reviewer.
    pub by: String,
    /// Time of the comment.
    pub at: String,
    /// Path of the file.
    pub path: String,
    /// Version of the file that has the line.
    pub side: DraftCommentSide,
    /// Line, from 1.
    pub line: usize,
    /// The comment, as plain text.
    pub text: String,
}

/// Version of a file that a comment is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum DraftCommentSide {
    /// The file before the change.
    Old,
    /// The draft.
    New,
}

/// A draft with all files of its submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftDetail {
    /// The draft.
    pub draft: DraftRow,
    /// Files of the submission.
    pub files: Vec<DraftFile>,
    /// Whether the policy allows approvals in the web UI.
    pub may_be_approved_here: bool,
    /// Whether every added and removed line is included. If not, the draft cannot be approved here.
    pub shows_all: bool,
    /// Number of hunks in all files, each of which can be approved alone.
    pub hunk_count: usize,
}

/// A file of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftFile {
    /// The draft of this file.
    pub draft: DraftRow,
    /// New value of the executable bit, if it changes.
    pub becomes_executable: Option<bool>,
    /// Number of added lines.
    pub added: usize,
    /// Number of removed lines.
    pub removed: usize,
    /// Changes of the file that can be approved alone and are not a hunk of the diff.
    pub changes: Vec<DraftFileChange>,
    /// The diff.
    pub hunks: Vec<DraftHunk>,
    /// Findings that belong to no line of the diff.
    pub findings: Vec<FindingRow>,
    /// Comments that belong to no line of the diff.
    pub comments: Vec<DraftCommentRow>,
    /// Number of diff lines omitted because the diff is too long.
    pub lines_left: usize,
    /// Whether the content has been deleted.
    pub is_gone: bool,
}

/// A change of a file as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftFileChange {
    /// Id to use in an approval.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub hunk_id: Sha256Hex,
    /// Number in the submission, from 1.
    pub number: usize,
    /// What changes.
    pub kind: DraftFileChangeKind,
}

/// What changes about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum DraftFileChangeKind {
    /// The file is created.
    Create,
    /// The file is deleted.
    Delete,
    /// The file is renamed.
    Rename,
    /// The executable bit changes.
    Mode,
    /// All its lines, because there are too many changes for single hunks.
    Lines,
}

/// A hunk of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftHunk {
    /// Id to use in an approval; absent if the hunk cannot be approved alone.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub hunk_id: Option<Sha256Hex>,
    /// Number in the submission, from 1.
    pub number: Option<usize>,
    /// Lines in order.
    pub lines: Vec<DraftLine>,
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftLine {
    /// Whether the line is unchanged, added or removed.
    pub side: DraftSide,
    /// Line number in the current file, from 1.
    pub old: Option<usize>,
    /// Line number in the draft, from 1.
    pub new: Option<usize>,
    /// Text of the line, with control and invisible characters escaped.
    pub parts: Vec<DraftPart>,
    /// Whether the line is truncated.
    pub is_cut: bool,
    /// Whether the file ends here without a line break.
    pub has_no_newline: bool,
    /// Findings on this line.
    pub findings: Vec<FindingRow>,
    /// Comments on this line.
    pub comments: Vec<DraftCommentRow>,
}

/// Side of a diff on which a line occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum DraftSide {
    /// Unchanged: in the current file and in the draft.
    Kept,
    /// Only in the draft.
    Added,
    /// Only in the current file.
    Removed,
}

/// Part of a diff line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftPart {
    /// The text.
    pub text: String,
    /// Whether this part differs from the other side.
    pub is_changed: bool,
}

/// A review decision on a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct DraftReviewRequest {
    /// The `seal` of the version that was reviewed.
    pub seal: String,
    /// Reason for the decision.
    pub reason: Option<String>,
    /// Files to approve in part or with another content; only for approvals. Other files of the
    /// submission are approved unchanged.
    pub files: Option<Vec<DraftAmendmentRequest>>,
    /// Confirms new findings about the result: `confirm` of an earlier response.
    pub confirm: Option<String>,
}

/// What to approve of one file: hunks, another content, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct DraftAmendmentRequest {
    /// Id of the draft.
    pub draft_id: String,
    /// Ids of the approved hunks. The others are rejected; without any, the file is rejected.
    pub hunks: Option<Vec<String>>,
    /// Content to apply instead of the proposed one. `hunks` then decides only about a new path or
    /// mode.
    pub content: Option<String>,
}

/// A comment on a line of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftCommentRequest {
    /// The `seal` of the version that was reviewed.
    pub seal: String,
    /// Path of the file.
    pub path: String,
    /// Version of the file that has the line.
    pub side: DraftCommentSide,
    /// Line, from 1.
    pub line: usize,
    /// The comment, as plain text.
    pub text: String,
}

/// The proposed content of a draft, for editing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftContent {
    /// Hash of the submission with this content.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub seal: Option<Sha256Hex>,
    /// The content; absent if a text field cannot show it exactly, because it is large, has hidden
    /// characters or lines that end in different ways.
    pub content: Option<String>,
}

/// Result of a review decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftReviewResponse {
    /// All drafts submitted together, in their new state.
    pub drafts: Vec<DraftRow>,
    /// Set if nothing was decided, because of what the gate found in the result of an approval in
    /// part or with another content.
    pub undecided: Option<DraftUndecided>,
}

/// Why an approval was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftUndecided {
    /// Whether the gate rejects the result. If not, it can be confirmed.
    pub is_rejected: bool,
    /// Hash of the result and its findings, to be passed as `confirm` in the same request.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub confirm: Sha256Hex,
    /// The findings that led to this.
    pub findings: Vec<FindingRow>,
}

/// A page of a workspace's audit journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AuditPage {
    /// The available workspaces.
    pub workspaces: Vec<WorkspaceRow>,
    /// Id of the workspace shown; absent if the server has none.
    pub workspace: Option<String>,
    /// Whether the journal is valid: the hash chain is unbroken, all signed checkpoints are present
    /// and match, and the anchored record is in the journal.
    pub holds: bool,
    /// Why the journal is not valid.
    pub why: Option<String>,
    /// Number of valid records.
    pub records: u64,
    /// Hash of the last valid record, to be saved elsewhere.
    pub head: Option<String>,
    /// Number of valid signed checkpoints.
    pub checkpoints: u64,
    /// Public key of the signatures.
    pub key: Option<String>,
    /// Files with incomplete records left by a crash.
    pub torn: Vec<TornFileRow>,
    /// Records, newest first.
    pub page: Vec<AuditRow>,
    /// Value of `before` for the next page.
    pub next: Option<u64>,
}

/// A file with an incomplete record from the end of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TornFileRow {
    /// File name.
    pub file: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// A record of the audit journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AuditRow {
    /// Sequence number, from 1.
    pub seq: u64,
    /// Time of the record.
    pub at: String,
    /// The acting agent or person.
    pub who: String,
    /// Kind of record.
    pub kind: String,
    /// Ids of the drafts concerned.
    pub drafts: Vec<String>,
    /// Path of the file concerned.
    pub path: Option<String>,
    /// Details, such as the result or a reason.
    pub words: Vec<String>,
    /// Hash of the record; the next record includes it.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub hash: Sha256Hex,
}
