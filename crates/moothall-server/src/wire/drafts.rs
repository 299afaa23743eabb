//! Drafts, what people say about them, and the journal.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{DraftId, Say, State, TaskId};
use moothall_core::gate::Action;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Drafts of the workspaces that the server keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftList {
    /// The workspaces; none where the server was given none.
    pub workspaces: Vec<WorkspaceRow>,
    /// What was touched last comes first.
    pub drafts: Vec<DraftRow>,
    /// Drafts that wait for a person, whatever was asked for.
    pub waiting: u64,
    /// `after` for whoever follows what becomes of them.
    pub cursor: String,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WorkspaceRow {
    /// As requests name it.
    pub id: String,
    /// The name of its folder.
    pub name: String,
}

/// A draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftRow {
    /// Its handle.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub draft_id: DraftId,
    /// The workspace.
    pub workspace: String,
    /// The task.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub task_id: TaskId,
    /// Whose it is.
    pub owner: String,
    /// Its file.
    pub path: String,
    /// Where the file goes, if not where it is.
    pub rename_to: Option<String>,
    /// What it does to the file.
    pub change: DraftChange,
    /// Where it stands.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "DraftState"))]
    pub state: State,
    /// How often it was written.
    pub revision: u64,
    /// When something last happened to it.
    pub touched_at: String,
    /// When it was handed in.
    pub submitted_at: Option<String>,
    /// What its worker says.
    pub summary: String,
    /// Everything that was handed in together, in order.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "string[]"))]
    pub together: Vec<DraftId>,
    /// The hash of all that is proposed: what a person's word is bound to.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub seal: Option<Sha256Hex>,
    /// What the gate found in everything that was handed in together.
    pub findings: Vec<FindingRow>,
    /// What a person said last.
    pub reviewed: Option<ReviewedRow>,
    /// The file that stood in the way.
    pub conflict: Option<String>,
}

/// What a draft does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum DraftChange {
    /// It is a new one.
    Created,
    /// It is another text, or may be run.
    Edited,
    /// It goes.
    Deleted,
    /// It goes elsewhere.
    Renamed,
}

/// What the gate found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FindingRow {
    /// Which rule.
    pub rule: String,
    /// What the policy does about it.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "GateAction"))]
    pub action: Action,
    /// In which file.
    pub path: String,
    /// In which line of the draft, from 1.
    pub line: Option<usize>,
    /// What was found.
    pub message: String,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ReviewedRow {
    /// What.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "DraftSay"))]
    pub say: Say,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// A draft with everything that was handed in with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftDetail {
    /// The draft.
    pub draft: DraftRow,
    /// File by file.
    pub files: Vec<DraftFile>,
    /// Whether the policy lets people approve here.
    pub may_be_approved_here: bool,
    /// Whether every line that comes or goes is shown. Nobody approves here what they cannot see.
    pub shows_all: bool,
}

/// A file of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftFile {
    /// Its draft.
    pub draft: DraftRow,
    /// Whether its owner may run it from now on, where that changes.
    pub becomes_executable: Option<bool>,
    /// Lines that come.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
    /// The difference.
    pub hunks: Vec<DraftHunk>,
    /// What was found and stands beside none of the lines.
    pub findings: Vec<FindingRow>,
    /// Lines of the difference that are not here, because there are too many.
    pub lines_left: usize,
    /// The contents are not kept any more.
    pub is_gone: bool,
}

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftHunk {
    /// In order.
    pub lines: Vec<DraftLine>,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftLine {
    /// Where it is.
    pub side: DraftSide,
    /// Its number in the file, from 1.
    pub old: Option<usize>,
    /// Its number in the draft, from 1.
    pub new: Option<usize>,
    /// Its text, with control characters and what cannot be seen spelled out.
    pub parts: Vec<DraftPart>,
    /// The line goes on.
    pub is_cut: bool,
    /// The file ends here, without a line break.
    pub has_no_newline: bool,
    /// What was found in it.
    pub findings: Vec<FindingRow>,
}

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum DraftSide {
    /// In the file and in the draft.
    Kept,
    /// In the draft.
    Added,
    /// In the file.
    Removed,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftPart {
    /// What it says.
    pub text: String,
    /// Whether it is what differs.
    pub is_changed: bool,
}

/// A person's word on a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SayOnDraft {
    /// The seal that was shown.
    pub seal: String,
    /// Why.
    pub reason: Option<String>,
}

/// What came of a person's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SaidOnDraft {
    /// Everything that was handed in together, as it stands now.
    pub drafts: Vec<DraftRow>,
}

/// Records of the journal of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AuditPage {
    /// The workspaces that can be asked about.
    pub workspaces: Vec<WorkspaceRow>,
    /// The one that this is about; none where the server was given none.
    pub workspace: Option<String>,
    /// Whether every record follows the one before, no signed checkpoint is missing or differs, and
    /// the journal holds the record that its anchor names.
    pub holds: bool,
    /// What is wrong.
    pub why: Option<String>,
    /// Records that hold.
    pub records: u64,
    /// The hash of the last of them, to keep elsewhere.
    pub head: Option<String>,
    /// Signed checkpoints that agree.
    pub checkpoints: u64,
    /// The public key that signed them.
    pub key: Option<String>,
    /// Files with an unfinished record that a crash left.
    pub torn: Vec<TornRow>,
    /// The newest first.
    pub page: Vec<AuditRow>,
    /// `before` for the page after this one.
    pub next: Option<u64>,
}

/// A file with the unfinished end of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TornRow {
    /// Its name.
    pub file: String,
    /// Its size.
    pub bytes: u64,
}

/// A record of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AuditRow {
    /// Its number, from 1.
    pub seq: u64,
    /// When.
    pub at: String,
    /// Who.
    pub who: String,
    /// What kind of record it is.
    pub kind: String,
    /// About which drafts.
    pub drafts: Vec<String>,
    /// About which file.
    pub path: Option<String>,
    /// What came of it, or what was said.
    pub words: Vec<String>,
    /// Its hash, which the next one holds.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub hash: Sha256Hex,
}
