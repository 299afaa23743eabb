//! Runs as they are listed and read.

use moothall_core::{Envelope, MicroUsd, RunId, Verdict};
use moothall_store::RunState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::openapi::AnyEvent;

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
