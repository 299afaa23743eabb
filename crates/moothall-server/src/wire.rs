//! What requests and answers look like. The web UI has the same types (`web/src/gen/api.ts`).

mod drafts;

use moothall_core::access::{Scope, TeamName, TokenId};
use moothall_core::consult::Proposal;
use moothall_core::evidence::Day;
use moothall_core::{Envelope, MicroUsd, RunId, Verdict};
use moothall_store::RunState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::drafts::{
    AuditPage, AuditRow, DraftChange, DraftDetail, DraftFile, DraftHunk, DraftLine, DraftList,
    DraftPart, DraftRow, DraftSide, FindingRow, ReviewedRow, SaidOnDraft, SayOnDraft, WorkspaceRow,
};
use crate::openapi::AnyEvent;

/// A run that shall begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "workflow", rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum StartRun {
    /// A consultation.
    Consult(StartConsult),
    /// A program for a task.
    Reflexion(StartCode),
}

/// A consultation that shall begin, or be estimated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct StartConsult {
    /// The company.
    pub ticker: String,
    /// The model that speaks for everyone; else the configured one.
    pub model: Option<String>,
    /// One of `GET /api/committees`.
    pub committee: Option<String>,
    /// Rounds of each debate.
    pub rounds: Option<u32>,
    /// Moves in all.
    pub moves: Option<u32>,
    /// Moves that are debated at once.
    pub parallel_moves: Option<u32>,
    /// `filings`, or `synthetic`: a model makes the evidence up.
    pub source: Option<Source>,
    /// Only what was filed on or before this day.
    #[cfg_attr(test, ts(type = "string | null"))]
    #[schemars(with = "Option<String>")]
    pub as_of: Option<Day>,
    /// Takes a company that has filed no annual report for 18 months.
    pub allow_stale: bool,
    /// What the moves are for, in the user's words.
    pub brief: Option<String>,
    /// Stands still when the moves are made, for a person's review.
    pub pause_after_moves: bool,
    /// Scores every move without its debate, too.
    pub baseline: bool,
    /// The most that it may cost, in dollars: `2.50`.
    pub budget_usd: Option<String>,
    /// `auto`, `microvm`, `runsc`, or `none` where the configuration allows it.
    pub isolation: Option<String>,
}

/// Where the evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Source {
    /// Real filings.
    Filings,
    /// A model makes it up, and every page says so.
    Synthetic,
}

/// A program that shall be written and tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct StartCode {
    /// What it shall do.
    pub task: String,
    /// The model that writes it; else the configured one.
    pub model: Option<String>,
    /// A regular expression that is found in what it prints.
    pub expect_regex: Option<String>,
    /// Programs that may be tried.
    pub attempts: Option<u32>,
    /// The most that it may cost, in dollars.
    pub budget_usd: Option<String>,
}

/// A run that began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Started {
    /// The run.
    #[cfg_attr(test, ts(type = "string"))]
    #[schemars(with = "String")]
    pub run_id: RunId,
}

/// A run that shall go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ResumeRun {
    /// The most that it may cost in all, in dollars.
    pub budget_usd: Option<String>,
}

/// Where a run stands after it was asked something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Accepted {
    /// The run.
    #[cfg_attr(test, ts(type = "string"))]
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// Where it stands now; what was asked may take a moment.
    #[cfg_attr(test, ts(type = "RunState"))]
    #[schemars(with = "crate::openapi::State")]
    pub state: RunState,
}

/// A person's word on a move that is held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ApproveMove {
    /// The move.
    #[serde(rename = "move")]
    pub move_id: String,
    /// Why.
    pub note: Option<String>,
    /// Who says so.
    pub by: Option<String>,
}

/// What a person changes about moves that wait for a review. One of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ChangeMoves {
    /// A move is not debated.
    Veto {
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// Why; may be empty.
        why: String,
    },
    /// A move reads like this instead.
    Edit {
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// The whole move, as `GET /api/runs/{run}/moves` shows it.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        #[cfg_attr(test, ts(type = "Record<string, unknown>"))]
        proposal: Proposal,
    },
    /// Everything that was changed is taken back.
    Undo {},
}

/// A move that was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Approved {
    /// The move.
    #[serde(rename = "move")]
    pub move_id: String,
    /// Its place now.
    pub rank: Option<u32>,
}

/// Runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunSummary>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunSummary {
    /// The run.
    #[cfg_attr(test, ts(type = "string"))]
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// `consult` or `reflexion`.
    pub workflow: String,
    /// What people see.
    pub title: String,
    /// The model that was asked for.
    pub model: String,
    /// Where it stands.
    #[cfg_attr(test, ts(type = "RunState"))]
    #[schemars(with = "crate::openapi::State")]
    pub state: RunState,
    /// Whether somebody drives it at the moment.
    pub driven: bool,
    /// When it was made.
    pub created_at: String,
    /// When something last changed.
    pub updated_at: String,
    /// How many events it has.
    pub events: u64,
    /// What the trial came to.
    #[cfg_attr(test, ts(type = "Verdict | null"))]
    #[schemars(with = "Option<String>")]
    pub verdict: Option<Verdict>,
    /// What it has spent.
    #[cfg_attr(test, ts(type = "number | null"))]
    #[schemars(with = "Option<u64>")]
    pub cost_micro_usd: Option<MicroUsd>,
    /// Tokens that it has used.
    pub tokens: Option<u64>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EventPage {
    /// In order, from the one after the cursor.
    #[cfg_attr(test, ts(type = "Array<Envelope>"))]
    #[schemars(with = "Vec<AnyEvent>")]
    pub events: Vec<Envelope>,
    /// The number of the last event there is.
    pub head_seq: u64,
    /// Whether nothing follows that one.
    pub terminal: bool,
}

/// One conversation of a debate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Thread {
    /// The move.
    #[serde(rename = "move")]
    pub move_id: String,
    /// The decision maker.
    pub thread: String,
    /// In order.
    pub turns: Vec<ThreadTurn>,
}

/// A message. Its words are an agent's: text, never markup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ThreadTurn {
    /// `critic` or the decision maker.
    pub role: String,
    /// From 1.
    pub round: u32,
    /// The words.
    pub text: String,
}

/// The documents of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ArtifactList {
    /// By name.
    pub artifacts: Vec<ArtifactRef>,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ArtifactRef {
    /// `F1.md`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// What a citation leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CitedFact {
    /// `F0:Revenue:FY2025`.
    pub id: String,
    /// What it says.
    pub says: String,
    /// The filing that says so.
    pub filed: Option<String>,
    /// The number of that filing.
    pub accession: Option<String>,
    /// Where a person can read it; a company that does not exist has no such place.
    pub link: Option<String>,
    /// How it was computed, where it was.
    pub formula: Option<String>,
    /// What it was computed from.
    pub inputs: Vec<String>,
}

/// A text to check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct CheckText {
    /// The company that it is about.
    pub ticker: String,
    /// The text.
    pub text: String,
    /// Only what was filed on or before this day.
    #[serde(default)]
    #[cfg_attr(test, ts(type = "string | null"))]
    #[schemars(with = "Option<String>")]
    pub as_of: Option<Day>,
}

/// Which facts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FactsQuery {
    /// Only what was filed on or before this day.
    #[schemars(with = "Option<String>")]
    pub as_of: Option<Day>,
    /// Takes a company that has filed no annual report for 18 months.
    pub allow_stale: bool,
}

/// Companies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TickerList {
    /// Those that fit best first.
    pub tickers: Vec<TickerRow>,
}

/// A company.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TickerRow {
    /// As listed.
    pub ticker: String,
    /// Its name.
    pub name: String,
    /// It exists to show how this program works.
    pub fictional: bool,
}

/// Committees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommitteeList {
    /// The usual one first.
    pub committees: Vec<CommitteeRow>,
}

/// A committee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommitteeRow {
    /// As a request names it.
    pub name: String,
    /// Rounds of each debate.
    pub rounds: u32,
    /// Moves that it proposes.
    pub moves: u32,
    /// Who proposes.
    pub analysts: Vec<SeatRow>,
    /// Who attacks.
    pub critic: SeatRow,
    /// Who defends and scores.
    pub decision_makers: Vec<SeatRow>,
    /// What is scored.
    pub metrics: Vec<String>,
}

/// A seat of a committee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SeatRow {
    /// `D1`.
    pub id: String,
    /// What people call it.
    pub name: String,
}

/// What the program has and has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Settings {
    /// The program's version.
    pub version: String,
    /// The model that is asked where nothing else is said, or nothing where there is none.
    pub model: Option<String>,
    /// Why there is none.
    pub model_problem: Option<String>,
    /// Whether keys are there. They are never shown.
    pub keys: Vec<KeyRow>,
    /// Whether the SEC can be asked: it wants to know who asks.
    pub contact: bool,
    /// Recorded filings are used instead of the SEC's service.
    pub offline: bool,
    /// Seconds that an answer of the demonstration takes.
    pub pace_ms: u64,
    /// What the configuration says about walls: `auto`, `microvm`, …
    pub isolation: String,
    /// Images that sandboxes can be made of.
    pub images: Vec<String>,
    /// The configured budget of one run.
    #[cfg_attr(test, ts(type = "number | null"))]
    #[schemars(with = "Option<u64>")]
    pub budget_micro_usd: Option<MicroUsd>,
}

/// A provider and its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct KeyRow {
    /// `anthropic`.
    pub provider: String,
    /// Whether one is needed.
    pub needed: bool,
    /// Whether there is one.
    pub present: bool,
    /// How to set it.
    pub hint: Option<String>,
    /// The model that is asked where only the provider is named.
    pub default_model: Option<String>,
}

/// Who is signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Session {
    /// The team they act for.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub team: TeamName,
    /// The token they came or signed in with.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub token: Option<TokenId>,
    /// What they may do.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "Scope[]"))]
    pub scopes: Vec<Scope>,
    /// Runs they may have at once.
    pub runs_at_once: Option<u32>,
    /// What their runs may cost within 24 hours.
    #[schemars(with = "Option<u64>")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub micro_usd_a_day: Option<MicroUsd>,
    /// Requests they may make in a minute.
    pub requests_a_minute: Option<u32>,
    /// What a page sends as `X-Moothall-Page` when it changes something. Only for sessions.
    pub page_word: Option<String>,
}

/// The tokens of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TokenList {
    /// The oldest first.
    pub tokens: Vec<TokenSummary>,
}

/// A token, without its secret: that is kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct TokenSummary {
    /// What it is called.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub id: TokenId,
    /// What somebody wrote down about it.
    pub label: String,
    /// What it covers.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "Scope[]"))]
    pub scopes: Vec<Scope>,
    /// Whether it counts.
    pub state: TokenState,
    /// When it was made.
    pub created_at: String,
    /// When it ends.
    pub expires_at: Option<String>,
    /// When it was last used.
    pub last_used_at: Option<String>,
    /// Runs it may have at once.
    pub runs_at_once: Option<u32>,
    /// What its runs may cost within 24 hours.
    #[schemars(with = "Option<u64>")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub micro_usd_a_day: Option<MicroUsd>,
    /// Requests it may make in a minute.
    pub requests_a_minute: Option<u32>,
}

/// Whether a token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum TokenState {
    /// It does.
    Active,
    /// It has had its time.
    Expired,
    /// It was taken back.
    Revoked,
}

/// A token that shall be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct MakeToken {
    /// What it is for.
    #[serde(default)]
    pub label: String,
    /// What it covers.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "Scope[]"))]
    pub scopes: Vec<Scope>,
    /// How long it counts.
    pub days: u32,
    /// Runs it may have at once.
    pub runs_at_once: Option<u32>,
    /// What its runs may cost within 24 hours.
    #[schemars(with = "Option<u64>")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub micro_usd_a_day: Option<MicroUsd>,
    /// Requests it may make in a minute.
    pub requests_a_minute: Option<u32>,
}

/// A token that was made. This is the only time it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MadeToken {
    /// What it is called.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub id: TokenId,
    /// The token.
    pub token: String,
}
