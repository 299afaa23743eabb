//! Run lists, events and documents.

use moothall_core::{EventEnvelope, MicroUsd, RunId, RunVerdict};
use moothall_store::RunState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::openapi::AnyEvent;

/// A list of runs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunSummary>,
}

/// Summary of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunSummary {
    /// Id of the run.
    #[cfg_attr(test, ts(type = "string"))]
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// `consult` or `reflexion`.
    pub workflow: String,
    /// Title for display.
    pub title: String,
    /// The requested model.
    pub model: String,
    /// State of the run.
    #[cfg_attr(test, ts(type = "RunState"))]
    #[schemars(with = "crate::openapi::RunStateSchema")]
    pub state: RunState,
    /// Whether a process is executing the run.
    pub driven: bool,
    /// Creation time.
    pub created_at: String,
    /// Time of the last change.
    pub updated_at: String,
    /// Number of events.
    pub events: u64,
    /// Verdict of the run, if it has ended.
    #[cfg_attr(test, ts(type = "RunVerdict | null"))]
    #[schemars(with = "Option<String>")]
    pub verdict: Option<RunVerdict>,
    /// Cost so far, in millionths of a dollar.
    #[cfg_attr(test, ts(type = "number | null"))]
    #[schemars(with = "Option<u64>")]
    pub cost_micro_usd: Option<MicroUsd>,
    /// Tokens used so far.
    pub tokens: Option<u64>,
    /// The run that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(type = "string", optional))]
    #[schemars(with = "Option<String>")]
    pub parent: Option<RunId>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EventPage {
    /// Events after the cursor, in order.
    #[cfg_attr(test, ts(type = "Array<EventEnvelope>"))]
    #[schemars(with = "Vec<AnyEvent>")]
    pub events: Vec<EventEnvelope>,
    /// Sequence number of the run's last event.
    pub head_seq: u64,
    /// Whether the run has ended, so no more events will follow.
    pub terminal: bool,
}

/// One conversation of a debate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DebateThread {
    /// Id of the move.
    #[serde(rename = "move")]
    pub move_id: String,
    /// Id of the decision maker.
    pub thread: String,
    /// Messages in order.
    pub turns: Vec<ThreadTurn>,
}

/// A message. It is model output: show it as text, never as markup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ThreadTurn {
    /// `critic` or the id of the decision maker.
    pub role: String,
    /// Round, from 1.
    pub round: u32,
    /// Text of the message.
    pub text: String,
}

/// The documents of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ArtifactList {
    /// Documents, sorted by name.
    pub artifacts: Vec<ArtifactRef>,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ArtifactRef {
    /// `F1.md`.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
}
