//! Runs that shall begin, go on or be changed, and what came of it.

use moothall_core::consult::Proposal;
use moothall_core::evidence::Day;
use moothall_core::{RunId, Sha256Hex};
use moothall_store::RunState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// What a person changes about moves that wait for a review. One of these. A `seal` is that of what
/// they saw: where somebody changed it meanwhile, the change is refused. Without one it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub enum ChangeMoves {
    /// A move is not debated.
    Veto {
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// Why; may be empty.
        why: String,
        /// The `seal` of the move that was shown.
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        #[cfg_attr(test, ts(type = "string | null", optional))]
        seal: Option<Sha256Hex>,
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
        /// The `seal` of the move that was shown.
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        #[cfg_attr(test, ts(type = "string | null", optional))]
        seal: Option<Sha256Hex>,
    },
    /// Everything that was changed is taken back.
    Undo {
        /// The `seal` of all changes that were shown.
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        #[cfg_attr(test, ts(type = "string | null", optional))]
        seal: Option<Sha256Hex>,
    },
}
