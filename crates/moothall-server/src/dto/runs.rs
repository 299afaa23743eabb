//! Run lists, events and documents.

use moothall_core::consult::ForkChange;
use moothall_core::report::MoveMatch;
use moothall_core::{EventEnvelope, MicroUsd, RunId, RunVerdict};
use moothall_store::RunState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::openapi::AnyEvent;

/// A page of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// Number of runs that match the request, on all pages.
    #[serde(default)]
    pub total: u64,
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
    /// Whether it is paused until a person has reviewed its moves.
    #[serde(default)]
    pub needs_review: bool,
    /// Why it is paused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub detail: Option<String>,
    /// Progress and result of a consultation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub consult: Option<ConsultSummary>,
}

/// Progress and result of a consultation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ConsultSummary {
    /// Ticker; empty for an unlisted company.
    pub ticker: String,
    /// Name of the company, once it is known.
    pub company: Option<String>,
    /// Rounds per debate.
    pub rounds: u32,
    /// The latest stage, from 0; absent if the run has finished.
    pub stage: Option<u8>,
    /// Number of moves to propose.
    pub expected_moves: u32,
    /// The moves, by number.
    pub moves: Vec<MoveProgress>,
    /// The first recommended move.
    pub best: Option<BestMove>,
    /// Score of doing nothing.
    pub do_nothing: Option<u32>,
    /// The verdict of a blind panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub panel: Option<PanelSummary>,
}

/// The verdict of a blind panel in a list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PanelSummary {
    /// The verdict in one sentence.
    pub headline: String,
    /// What the controls show, unless the panel passed.
    pub warning: Option<String>,
    /// Whether the panel failed its controls, so that no move is recommended.
    pub failed: bool,
}

/// A move in the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MoveProgress {
    /// `m7`.
    pub move_id: String,
    /// Sum of its scores.
    pub score: Option<u32>,
    /// Whether it is being debated.
    pub in_debate: bool,
    /// Whether it is recommended.
    pub recommended: bool,
}

/// The first recommended move of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct BestMove {
    /// `m7`.
    pub move_id: String,
    /// Title. It is model output: show it as text, never as markup.
    pub title: String,
    /// Sum of its scores.
    pub score: u32,
    /// Highest possible sum.
    pub out_of: u32,
    /// Difference between the highest and the lowest sum of a decision maker.
    pub spread: u32,
}

/// Two consultations side by side. The first is the earlier state, the second the later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunComparison {
    /// The earlier consultation.
    pub before: ComparedRun,
    /// The later consultation.
    pub after: ComparedRun,
    /// Whether both are about the same company.
    pub same_company: bool,
    /// Settings that differ.
    #[cfg_attr(test, ts(type = "Array<ForkChange>"))]
    pub settings: Vec<ForkChange>,
    /// All moves, matched by similarity, by tier or rank in the second consultation.
    pub moves: Vec<MoveMatch>,
}

/// A consultation in a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ComparedRun {
    /// When it was created.
    pub created_at: String,
    /// The verdict of its panel.
    pub panel: Option<PanelSummary>,
}

/// What the panel expects of later filings, and what they showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunForecasts {
    /// The questions about figures, then those about announcements. Empty if the run has no
    /// forecasts.
    pub questions: Vec<ForecastRow>,
}

/// A question about a later filing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ForecastRow {
    /// Id in the run.
    pub id: String,
    /// The expected statement.
    pub text: String,
    /// The mean of the chances that members stated, in thousandths.
    pub chance: Option<u32>,
    /// The first day on which a filing can answer it; of an announcement, the last day that counts.
    pub day: String,
    /// Whether it came true; `null` while it is open.
    pub happened: Option<bool>,
    /// The filed value with its day and filing, or why the answer is known.
    pub basis: Option<String>,
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
