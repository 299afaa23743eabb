//! The answers of the critic and the decision makers: their schemas and parsing.
//!
//! The schema is the same for a whole chain, including scoring, because a schema change misses the
//! provider's cache. Every field is required; optional values are null or empty.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::result::{DebateStance, ObjectionSeverity};
use crate::consult::committee::{ScoreMetric, TOP_LEVEL};
use crate::model::{InvalidSchema, ModelReply, OutputSchema};
use crate::structured::{MAX_PROBLEMS, OutputFault, read_json};
use crate::text::{is_hidden, one_line};

/// The maximum size of an answer. The token limit of a request is much lower; this bound also holds
/// if a provider ignores it.
const MAX_REPLY_BYTES: usize = 12 * 1024;

/// Maximum number of objections per answer, and of entries in any other list.
const MAX_OBJECTIONS: usize = 8;
const MAX_LISTED: usize = 16;

/// The field next to the metrics in `scores`.
pub(crate) const REASONING: &str = "reasoning";

/// The critic's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CriticTurn {
    /// The text shown to the decision maker.
    pub message: String,
    /// Objections raised or pressed again in this turn.
    pub objections: Vec<RaisedObjection>,
    /// Ids of withdrawn objections.
    pub withdrawn: Vec<String>,
}

/// An objection as written by the critic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaisedObjection {
    /// The id of an existing objection that is pressed again. Any other value means a new
    /// objection, which is numbered by code.
    pub id: String,
    /// The severity.
    pub severity: ObjectionSeverity,
    /// The objection in one sentence.
    pub text: String,
    /// The cited evidence, such as `F0:Revenue:FY2025`.
    pub evidence: Vec<String>,
}

/// A decision maker's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionMakerTurn {
    /// The text shown to the critic.
    pub message: String,
    /// The current stance.
    pub stance: DebateStance,
    /// The objections answered in this message.
    pub answers: Vec<ObjectionAnswer>,
    /// Ids of conceded objections.
    pub conceded: Vec<String>,
    /// Null until the debate is over.
    pub scores: Option<RawScores>,
}

/// An answer to one objection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectionAnswer {
    /// The objection's id.
    pub objection: String,
    /// The cited evidence.
    pub evidence: Vec<String>,
}

/// A decision maker's scores, not yet range-checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawScores {
    /// Scores by metric.
    #[serde(flatten)]
    pub metrics: BTreeMap<String, i64>,
    /// The reasoning.
    pub reasoning: String,
}

/// The schema of every critic answer.
pub(crate) fn critic_schema() -> Result<OutputSchema, InvalidSchema> {
    let objection = object([
        ("id", json!({"type": "string"})),
        ("severity", json!({"type": "string", "enum": ["minor", "major", "fatal"]})),
        ("text", json!({"type": "string"})),
        ("evidence", strings()),
    ]);
    let turn = object([
        ("message", json!({"type": "string"})),
        ("objections", list(objection, MAX_OBJECTIONS)),
        ("withdrawn", strings()),
    ]);
    OutputSchema::parse("critic_turn", &turn.to_string())
}

/// The schema of every decision maker answer.
pub(crate) fn decision_maker_schema(
    metrics: &[ScoreMetric],
) -> Result<OutputSchema, InvalidSchema> {
    let answer = object([("objection", json!({"type": "string"})), ("evidence", strings())]);
    let score = json!({"type": "integer", "minimum": 1, "maximum": TOP_LEVEL});
    let scores = metrics
        .iter()
        .map(|metric| (metric.id.as_str(), score.clone()))
        .chain([(REASONING, json!({"type": "string"}))]);
    let turn = object([
        ("message", json!({"type": "string"})),
        ("stance", json!({"type": "string", "enum": ["hold", "partial", "concede"]})),
        ("answers", list(answer, MAX_LISTED)),
        ("conceded", strings()),
        ("scores", json!({"anyOf": [object(scores), {"type": "null"}]})),
    ]);
    OutputSchema::parse("decision_maker_turn", &turn.to_string())
}

/// Parses and validates a critic answer.
pub(crate) fn read_critic(reply: &ModelReply) -> Result<CriticTurn, OutputFault> {
    let turn: CriticTurn = read(reply)?;
    let mut problems = message_problems(&turn.message);
    problems.extend(length_problem("objections", turn.objections.len(), MAX_OBJECTIONS));
    problems.extend(length_problem("withdrawn", turn.withdrawn.len(), MAX_LISTED));
    if turn.objections.iter().any(|objection| says_nothing(&objection.text)) {
        problems.push("an objection has an empty `text`".to_owned());
    }
    as_asked(turn, problems)
}

/// Parses and validates a decision maker's answer during the debate. Premature scores are ignored.
pub(crate) fn read_decision_maker(reply: &ModelReply) -> Result<DecisionMakerTurn, OutputFault> {
    let turn: DecisionMakerTurn = read(reply)?;
    let mut problems = message_problems(&turn.message);
    problems.extend(length_problem("answers", turn.answers.len(), MAX_LISTED));
    problems.extend(length_problem("conceded", turn.conceded.len(), MAX_LISTED));
    as_asked(turn, problems)
}

/// Parses the scores by metric and the reasoning. An out-of-range score is an error; it is not
/// clamped.
pub(crate) fn read_scores(
    reply: &ModelReply,
    metrics: &[ScoreMetric],
) -> Result<(BTreeMap<String, u8>, String), OutputFault> {
    let turn: DecisionMakerTurn = read(reply)?;
    let Some(given) = turn.scores else {
        return Err(invalid(vec!["`scores` is null; this is the time to score".to_owned()]));
    };
    let mut scores = BTreeMap::new();
    let mut problems = Vec::new();
    for ScoreMetric { id, .. } in metrics {
        let score = given.metrics.get(id).copied();
        match score.and_then(|score| u8::try_from(score).ok()) {
            Some(in_range) if (1..=TOP_LEVEL).contains(&in_range) => {
                scores.insert(id.clone(), in_range);
            }
            _ => problems.push(match score {
                Some(score) => format!("`scores.{id}` is {score}; it is from 1 to {TOP_LEVEL}"),
                None => format!("`scores.{id}` is missing"),
            }),
        }
    }
    let unknown = given.metrics.keys().find(|id| !metrics.iter().any(|metric| metric.id == **id));
    problems.extend(unknown.map(|id| format!("there is no metric `{}`", one_line(id, 40))));
    as_asked((scores, given.reasoning), problems)
}

fn read<T: DeserializeOwned>(reply: &ModelReply) -> Result<T, OutputFault> {
    if reply.text.len() > MAX_REPLY_BYTES {
        return Err(invalid(vec![format!("the answer has more than {MAX_REPLY_BYTES} bytes")]));
    }
    let value = read_json(reply, &|_: &Value| Vec::new())?;
    // The error may quote model output.
    serde_json::from_value(value).map_err(|error| invalid(vec![one_line(&error.to_string(), 200)]))
}

fn as_asked<T>(turn: T, problems: Vec<String>) -> Result<T, OutputFault> {
    if problems.is_empty() { Ok(turn) } else { Err(invalid(problems)) }
}

fn invalid(mut problems: Vec<String>) -> OutputFault {
    problems.truncate(MAX_PROBLEMS);
    OutputFault::Invalid { problems }
}

/// Whether the text has no visible characters.
fn says_nothing(text: &str) -> bool {
    text.chars().all(|sign| sign.is_whitespace() || is_hidden(sign))
}

fn message_problems(message: &str) -> Vec<String> {
    if says_nothing(message) { vec!["`message` is empty".to_owned()] } else { Vec::new() }
}

fn length_problem(list: &str, length: usize, most: usize) -> Option<String> {
    (length > most).then(|| format!("`{list}` has {length} entries; there may be {most} at most"))
}

/// The schema of an object with exactly these fields, in this order.
fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let required: Vec<&String> = fields.keys().collect();
    json!({
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": false,
    })
}

fn list(items: Value, most: usize) -> Value {
    json!({"type": "array", "items": items, "maxItems": most})
}

fn strings() -> Value {
    list(json!({"type": "string"}), MAX_LISTED)
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
