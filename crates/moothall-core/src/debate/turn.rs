//! What the critic and the decision makers write, and how it is read.
//!
//! One form for a whole chain, the scoring included: a provider's cache misses where the schema
//! changes. Every field is always there; what may be absent is null or empty.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::debated::{ObjectionSeverity, Stance};
use crate::consult::committee::{Metric, TOP_LEVEL};
use crate::model::{InvalidSchema, ModelReply, OutputSchema};
use crate::structured::{MAX_PROBLEMS, OutputFault, read_json};
use crate::text::{is_hidden, one_line};

/// The longest answer that is taken. The models' own limit is in tokens and much lower; this one
/// holds where a provider does not keep it.
const MAX_REPLY_BYTES: usize = 12 * 1024;

/// The most objections of one answer, and the most entries of any other list.
const MAX_OBJECTIONS: usize = 8;
const MAX_LISTED: usize = 16;

/// The scores' field beside the metrics.
pub(super) const REASONING: &str = "reasoning";

/// What the critic writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CriticTurn {
    /// What the decision maker reads.
    pub message: String,
    /// What is raised now, and what is pressed again.
    pub objections: Vec<RaisedObjection>,
    /// Ids of objections that are taken back.
    pub withdrawn: Vec<String>,
}

/// An objection as the critic writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaisedObjection {
    /// The id of one that is pressed again. Anything else is a new one, which code numbers.
    pub id: String,
    /// How grave it is.
    pub severity: ObjectionSeverity,
    /// In a sentence.
    pub text: String,
    /// What it rests on, such as `F0:Revenue:FY2025`.
    pub evidence: Vec<String>,
}

/// What a decision maker writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionMakerTurn {
    /// What the critic reads.
    pub message: String,
    /// Where the decision maker stands now.
    pub stance: Stance,
    /// Objections that are answered in this message.
    pub answers: Vec<Answer>,
    /// Ids of objections that are granted.
    pub conceded: Vec<String>,
    /// Null until the debate is over.
    pub scores: Option<Scores>,
}

/// An answer to one objection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Its id.
    pub objection: String,
    /// What the answer rests on.
    pub evidence: Vec<String>,
}

/// The scores of a decision maker, before anyone looked at their range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scores {
    /// By metric.
    #[serde(flatten)]
    pub metrics: BTreeMap<String, i64>,
    /// Why.
    pub reasoning: String,
}

/// The form of every answer of the critic.
pub(super) fn critic_schema() -> Result<OutputSchema, InvalidSchema> {
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

/// The form of every answer of a decision maker.
pub(super) fn decision_maker_schema(metrics: &[Metric]) -> Result<OutputSchema, InvalidSchema> {
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

/// The critic's answer, or what is wrong with it.
pub(super) fn read_critic(reply: &ModelReply) -> Result<CriticTurn, OutputFault> {
    let turn: CriticTurn = read(reply)?;
    let mut problems = message_problems(&turn.message);
    problems.extend(length_problem("objections", turn.objections.len(), MAX_OBJECTIONS));
    problems.extend(length_problem("withdrawn", turn.withdrawn.len(), MAX_LISTED));
    if turn.objections.iter().any(|objection| says_nothing(&objection.text)) {
        problems.push("an objection has an empty `text`".to_owned());
    }
    as_asked(turn, problems)
}

/// A decision maker's answer in the debate. Scores that nobody asked for yet do not count.
pub(super) fn read_decision_maker(reply: &ModelReply) -> Result<DecisionMakerTurn, OutputFault> {
    let turn: DecisionMakerTurn = read(reply)?;
    let mut problems = message_problems(&turn.message);
    problems.extend(length_problem("answers", turn.answers.len(), MAX_LISTED));
    problems.extend(length_problem("conceded", turn.conceded.len(), MAX_LISTED));
    as_asked(turn, problems)
}

/// The scores by metric and the reasoning. A score out of range is a problem and is not moved into
/// the range.
pub(super) fn read_scores(
    reply: &ModelReply,
    metrics: &[Metric],
) -> Result<(BTreeMap<String, u8>, String), OutputFault> {
    let turn: DecisionMakerTurn = read(reply)?;
    let Some(given) = turn.scores else {
        return Err(invalid(vec!["`scores` is null; this is the time to score".to_owned()]));
    };
    let mut scores = BTreeMap::new();
    let mut problems = Vec::new();
    for Metric { id, .. } in metrics {
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
    // The error may quote what the model wrote.
    serde_json::from_value(value).map_err(|error| invalid(vec![one_line(&error.to_string(), 200)]))
}

fn as_asked<T>(turn: T, problems: Vec<String>) -> Result<T, OutputFault> {
    if problems.is_empty() { Ok(turn) } else { Err(invalid(problems)) }
}

fn invalid(mut problems: Vec<String>) -> OutputFault {
    problems.truncate(MAX_PROBLEMS);
    OutputFault::Invalid { problems }
}

/// Whether there is nothing that a person could read.
fn says_nothing(text: &str) -> bool {
    text.chars().all(|sign| sign.is_whitespace() || is_hidden(sign))
}

fn message_problems(message: &str) -> Vec<String> {
    if says_nothing(message) { vec!["`message` is empty".to_owned()] } else { Vec::new() }
}

fn length_problem(list: &str, length: usize, most: usize) -> Option<String> {
    (length > most).then(|| format!("`{list}` has {length} entries; there may be {most} at most"))
}

/// An object with exactly these fields, in this order.
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
