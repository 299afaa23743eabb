//! Requests that start, resume or change runs, and their responses.

use std::collections::BTreeMap;

use moothall_core::consult::{ForkPoint, Proposal, VerdictMode};
use moothall_core::evidence::CalendarDay;
use moothall_core::model::ModelChoice;
use moothall_core::{RunId, Sha256Hex};
use moothall_store::RunState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Request to start a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "workflow", rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum StartRunRequest {
    /// A consultation.
    Consult(StartConsultRequest),
    /// A program that a model writes for a task.
    Reflexion(StartProgramRequest),
}

// Fields that were added later are not serialized when they are unset, because the hash of a
// request with an idempotency key is stored.

/// Request to start or estimate a consultation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct StartConsultRequest {
    /// Ticker of the company; omit it with `name`.
    pub ticker: String,
    /// Name of an unlisted company; requires the source `files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Model for all members (default: the configured model). After a comma, models to use when it
    /// is unavailable.
    pub model: Option<String>,
    /// Models by role (`inference`, `analyst`, `critic`, `decision-maker`, `panel`) or member (`F1`,
    /// `D2`, `P3`). A
    /// list names models to use when the ones before them are unavailable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, ts(as = "Option<BTreeMap<String, ModelChoice>>", optional))]
    pub models: BTreeMap<String, ModelChoice>,
    /// Name of a committee from `GET /api/committees`.
    pub committee: Option<String>,
    /// A committee as TOML, in the format of `moothall committee show`, instead of `committee`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committee_file: Option<String>,
    /// How moves are judged (default: `full`; with fewer than six moves, `panel`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictMode>,
    /// Models of the blind panel, dealt to its members in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>", optional))]
    pub panel: Vec<String>,
    /// How many of the best moves are debated again, stage by stage; requires a panel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<u32>>", optional))]
    pub again: Vec<u32>,
    /// How often debates and panel happen for the same moves (1 to 5; default: 1); requires a panel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Rounds per debate.
    pub rounds: Option<u32>,
    /// Total number of moves.
    pub moves: Option<u32>,
    /// Number of moves debated in parallel.
    pub parallel_moves: Option<u32>,
    /// Source of the evidence (default: `filings`).
    pub source: Option<ConsultSource>,
    /// Your own documents: Markdown, text, CSV, TSV or PDF. With the source `filings` they are read
    /// in addition to the filings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<RequestFile>>", optional))]
    pub documents: Vec<RequestFile>,
    /// Adds news headlines: `gdelt`, or `rss:URL` if the server has no other users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub news: Option<String>,
    /// Adds the headlines of this feed or GDELT response, instead of `news`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub news_file: Option<RequestFile>,
    /// Use only filings made on or before this day.
    #[cfg_attr(test, ts(type = "string | null"))]
    #[schemars(with = "Option<String>")]
    pub as_of: Option<CalendarDay>,
    /// Accept a company that has filed no annual report for 18 months.
    pub allow_stale: bool,
    /// Goal of the moves, in the user's words.
    pub brief: Option<String>,
    /// Your own moves as TOML or JSON, in the format of `moothall consult --add-moves`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_moves: Option<String>,
    /// Pause for review after the moves have been proposed.
    pub pause_after_moves: bool,
    /// Also score every move without a debate.
    pub baseline: bool,
    /// Let critic and decision makers attach calculations that run in sandboxes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub calculations: bool,
    /// Also rank moves with wrong numbers or bad citations.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub accept_findings: bool,
    /// Spend limit in dollars, such as `2.50`.
    pub budget_usd: Option<String>,
    /// Limit of tokens, prompts and answers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
    /// `auto`, `microvm`, `runsc`, or `none` if the configuration allows it.
    pub isolation: Option<String>,
}

/// Source of the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ConsultSource {
    /// Real filings, and `documents` if there are any.
    Filings,
    /// Only `documents`.
    Files,
    /// Generated by a model; every page is marked accordingly.
    Synthetic,
}

/// A file in a request. Exactly one of `text` and `base64` has its content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct RequestFile {
    /// File name without directories, such as `plan.md`. Its ending determines how it is read.
    pub name: String,
    /// Content of a text file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Content of any file, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// Request to write and test a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct StartProgramRequest {
    /// What the program should do.
    pub task: String,
    /// Model that writes the program (default: the configured model).
    pub model: Option<String>,
    /// Files that the program can read as `/inputs/NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<RequestFile>>", optional))]
    pub inputs: Vec<RequestFile>,
    /// Regular expression that must match the program's output.
    pub expect_regex: Option<String>,
    /// Text that the output must equal, ignoring trailing white space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_text: Option<String>,
    /// JSON schema that the output must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(type = "unknown", optional))]
    pub expect_schema: Option<Value>,
    /// Python script that checks the results in a separate sandbox; it must exit with 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Files that the program must create in `/workspace/out`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>", optional))]
    pub expect_files: Vec<String>,
    /// Maximum number of attempts.
    pub attempts: Option<u32>,
    /// Image of the sandbox (default: `python`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Time limit of the program in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Memory limit of the program in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// `auto`, `microvm` or `runsc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// Spend limit in dollars.
    pub budget_usd: Option<String>,
    /// Limit of tokens, prompts and answers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
}

/// Request to fork a consultation: a new run that reuses its results up to a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct ForkRunRequest {
    /// The first stage to execute again.
    #[cfg_attr(test, ts(type = "\"moves\" | \"debates\""))]
    pub from: ForkPoint,
    /// Model for every role that is executed again.
    #[serde(default)]
    pub model: Option<String>,
    /// Changed settings: the model of a role (`analyst`, `critic`, `decision-maker`, `panel`) or
    /// member, or `rounds`.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<BTreeMap<String, String>>"))]
    pub set: BTreeMap<String, String>,
    /// Name of another committee from `GET /api/committees`.
    #[serde(default)]
    pub committee: Option<String>,
    /// How moves are judged (default: as before).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictMode>,
    /// Models of the blind panel, dealt to its members in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>"))]
    pub panel: Vec<String>,
    /// How many of the best moves are debated again, stage by stage; requires a panel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<u32>>"))]
    pub again: Vec<u32>,
    /// How often debates and panel happen for the same moves (1 to 5); requires a panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Another goal of the moves; only from the moves.
    #[serde(default)]
    pub brief: Option<String>,
    /// New texts of moves; only from the debates.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<Vec<ForkMoveEdit>>"))]
    pub edits: Vec<ForkMoveEdit>,
    /// Spend limit of the fork in dollars.
    #[serde(default)]
    pub budget_usd: Option<String>,
}

/// A new text of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct ForkMoveEdit {
    /// Id of the move.
    #[serde(rename = "move")]
    pub move_id: String,
    /// The complete move, in the form of `GET /api/runs/{run}/moves`.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    #[cfg_attr(test, ts(type = "Record<string, unknown>"))]
    pub proposal: Proposal,
}

/// Response to a started run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct StartRunResponse {
    /// Id of the run.
    #[cfg_attr(test, ts(type = "string"))]
    #[schemars(with = "String")]
    pub run_id: RunId,
}

/// Request to resume a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ResumeRunRequest {
    /// New total spend limit in dollars.
    pub budget_usd: Option<String>,
}

/// Response to an accepted control request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunControlResponse {
    /// Id of the run.
    #[cfg_attr(test, ts(type = "string"))]
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// Current state; the request may take a moment to take effect.
    #[cfg_attr(test, ts(type = "RunState"))]
    #[schemars(with = "crate::openapi::RunStateSchema")]
    pub state: RunState,
}

/// Approval of a held-back move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ApproveMoveRequest {
    /// Id of the move; `verdict` for the verdict of a panel that failed its controls.
    #[serde(rename = "move")]
    pub move_id: String,
    /// Reason for the approval.
    pub note: Option<String>,
    /// Name of the approver. Ignored if the caller has a token.
    pub by: Option<String>,
}

/// Response to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ApproveMoveResponse {
    /// Id of the move.
    #[serde(rename = "move")]
    pub move_id: String,
    /// Rank of the move after the approval; null if a panel judged the moves.
    pub rank: Option<u32>,
}

/// One edit of the moves that wait for review. If `seal` is given and the moves have changed since
/// they were read, the edit is refused; without `seal` it is applied in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub enum EditMovesRequest {
    /// Remove a move from the debates.
    Veto {
        /// Id of the move.
        #[serde(rename = "move")]
        move_id: String,
        /// Reason; may be empty.
        why: String,
        /// The `seal` of the move that was read.
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        #[cfg_attr(test, ts(type = "string | null", optional))]
        seal: Option<Sha256Hex>,
    },
    /// Replace a move.
    Edit {
        /// Id of the move.
        #[serde(rename = "move")]
        move_id: String,
        /// The complete move, in the form of `GET /api/runs/{run}/moves`.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        #[cfg_attr(test, ts(type = "Record<string, unknown>"))]
        proposal: Proposal,
        /// The `seal` of the move that was read.
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        #[cfg_attr(test, ts(type = "string | null", optional))]
        seal: Option<Sha256Hex>,
    },
    /// Undo all edits.
    Undo {
        /// The `seal` of the edits that were read.
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        #[cfg_attr(test, ts(type = "string | null", optional))]
        seal: Option<Sha256Hex>,
    },
}
