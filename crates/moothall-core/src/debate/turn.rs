//! The answers of the critic and the decision makers: their schemas and parsing.
//!
//! Every question has one schema with every bound that is checked later. In the first revision the
//! schema was the same for a whole chain, including scoring, with `scores` null until the end; small
//! models then answered null when scores were due.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::calculation::{CalculationRequest, MAX_CODE_BYTES, MAX_PURPOSE_CHARS};
use super::input::CallSettings;
use super::result::{DebateStance, ObjectionSeverity};
use crate::PromptRevision;
use crate::consult::committee::{ScoreMetric, TOP_LEVEL};
use crate::model::{ModelReply, OutputSchema};
use crate::output_schema::{any_text, integer, list, object, one_of, text};
use crate::structured::{MAX_PROBLEMS, OutputFault, read_json};
use crate::text::{is_hidden, one_line};

/// The maximum size of an answer. The token limit of a request is much lower; this bound also holds
/// if a provider ignores it.
const MAX_REPLY_BYTES: usize = 12 * 1024;

/// Maximum number of objections per answer, and of entries in any other list.
const MAX_OBJECTIONS: usize = 8;
const MAX_LISTED: usize = 16;

/// Maximum lengths in the schema. Longer texts are cut when they are read.
pub(crate) const MAX_OBJECTION_CHARS: usize = 600;
pub(crate) const MAX_REASONING_CHARS: usize = 800;
const MAX_ID_CHARS: usize = 80;

/// The maximum length of a message is the requested number of words times this.
const MAX_CHARS_PER_WORD: usize = 10;

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
    /// The scores after a debate of the first revision; null or missing otherwise.
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

/// The field of an answer with a calculation. Answers have it only if calculations are allowed.
pub(crate) const CALCULATION: &str = "calculation";

/// The schema of a calculation or null, if the speakers may attach one.
fn calculation_field(is_allowed: bool) -> Option<(&'static str, Value)> {
    let fields = [("purpose", text(MAX_PURPOSE_CHARS)), ("code", text(MAX_CODE_BYTES))];
    is_allowed.then(|| (CALCULATION, json!({"anyOf": [object(fields), {"type": "null"}]})))
}

/// The schema of every critic answer.
pub(crate) fn critic_schema(calls: &CallSettings, calculations: bool) -> OutputSchema {
    let bounds = TextBounds(calls);
    let objection = object([
        ("id", bounds.id()),
        ("severity", one_of(&["minor", "major", "fatal"])),
        ("text", bounds.text(MAX_OBJECTION_CHARS)),
        ("evidence", bounds.ids()),
    ]);
    let turn = [
        ("message", bounds.message()),
        ("objections", list(objection, 0..=MAX_OBJECTIONS)),
        ("withdrawn", bounds.ids()),
    ];
    let turn = object(turn.into_iter().chain(calculation_field(calculations)));
    OutputSchema::of_object("critic_turn", turn)
}

/// Bounds of texts, which schemas of the first revision did not have.
struct TextBounds<'a>(&'a CallSettings);

impl TextBounds<'_> {
    fn text(&self, most: usize) -> Value {
        match self.0.prompts {
            PromptRevision::V1 => any_text(),
            PromptRevision::V2 => text(most),
        }
    }

    fn id(&self) -> Value {
        self.text(MAX_ID_CHARS)
    }

    fn ids(&self) -> Value {
        list(self.id(), 0..=MAX_LISTED)
    }

    fn message(&self) -> Value {
        self.text(self.0.message_words() * MAX_CHARS_PER_WORD)
    }
}

/// The schema of a decision maker's answer in the debate.
pub(crate) fn decision_maker_schema(
    calls: &CallSettings,
    metrics: &[ScoreMetric],
    calculations: bool,
) -> OutputSchema {
    let bounds = TextBounds(calls);
    let answer = object([("objection", bounds.id()), ("evidence", bounds.ids())]);
    let turn = [
        ("message", bounds.message()),
        ("stance", one_of(&["hold", "partial", "concede"])),
        ("answers", list(answer, 0..=MAX_LISTED)),
        ("conceded", bounds.ids()),
    ];
    let scores = match calls.prompts {
        PromptRevision::V1 => {
            let scores = metric_fields(metrics).chain([(REASONING, any_text())]);
            Some(("scores", json!({"anyOf": [object(scores), {"type": "null"}]})))
        }
        PromptRevision::V2 => None,
    };
    let turn = turn.into_iter().chain(scores).chain(calculation_field(calculations));
    OutputSchema::of_object("decision_maker_turn", object(turn))
}

/// The schema of a decision maker's scores: the reasoning first, because models score better after
/// they have given their reasons.
pub(crate) fn score_schema(calls: &CallSettings, metrics: &[ScoreMetric]) -> OutputSchema {
    if calls.prompts == PromptRevision::V1 {
        return decision_maker_schema(calls, metrics, false);
    }
    let fields = [(REASONING, text(MAX_REASONING_CHARS))].into_iter().chain(metric_fields(metrics));
    OutputSchema::of_object("scores", object(fields))
}

fn metric_fields(metrics: &[ScoreMetric]) -> impl Iterator<Item = (&str, Value)> {
    metrics.iter().map(|metric| (metric.id.as_str(), integer(1..=TOP_LEVEL)))
}

/// Splits a calculation off an answer, so that the rest has the form of answers without one.
pub(crate) fn split_calculation(
    reply: &ModelReply,
) -> Result<(ModelReply, Option<CalculationRequest>), OutputFault> {
    let mut fields: Map<String, Value> = read(reply)?;
    let calculation = fields.remove(CALCULATION).map_or(Ok(None), from_value)?;
    let rest = ModelReply { text: Value::Object(fields).to_string(), ..reply.clone() };
    Ok((rest, calculation))
}

/// Parses and validates a critic answer.
pub(crate) fn read_critic(reply: &ModelReply) -> Result<CriticTurn, OutputFault> {
    let turn: CriticTurn = read(reply)?;
    let mut problems = message_problems(&turn.message);
    problems.extend(length_problem("objections", turn.objections.len(), MAX_OBJECTIONS));
    problems.extend(length_problem("withdrawn", turn.withdrawn.len(), MAX_LISTED));
    if turn.objections.iter().any(|objection| is_blank(&objection.text)) {
        problems.push("an objection has an empty `text`".to_owned());
    }
    accept_if_valid(turn, problems)
}

/// Parses and validates a decision maker's answer during the debate. Premature scores are ignored.
pub(crate) fn read_decision_maker(reply: &ModelReply) -> Result<DecisionMakerTurn, OutputFault> {
    let turn: DecisionMakerTurn = read(reply)?;
    let mut problems = message_problems(&turn.message);
    problems.extend(length_problem("answers", turn.answers.len(), MAX_LISTED));
    problems.extend(length_problem("conceded", turn.conceded.len(), MAX_LISTED));
    accept_if_valid(turn, problems)
}

/// Parses the scores by metric and the reasoning. An out-of-range score is an error; it is not
/// clamped.
pub(crate) fn read_scores(
    revision: PromptRevision,
    reply: &ModelReply,
    metrics: &[ScoreMetric],
) -> Result<(BTreeMap<String, u8>, String), OutputFault> {
    let given = match revision {
        PromptRevision::V1 => read::<DecisionMakerTurn>(reply)?.scores,
        // A model that is not held to the schema may answer in the form of the debate.
        PromptRevision::V2 => {
            let mut fields: Map<String, Value> = read(reply)?;
            match fields.remove("scores") {
                Some(nested) => from_value(nested)?,
                None => Some(from_value(Value::Object(fields))?),
            }
        }
    };
    let Some(given) = given else {
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
    accept_if_valid((scores, given.reasoning), problems)
}

fn read<T: DeserializeOwned>(reply: &ModelReply) -> Result<T, OutputFault> {
    if reply.text.len() > MAX_REPLY_BYTES {
        return Err(invalid(vec![format!("the answer has more than {MAX_REPLY_BYTES} bytes")]));
    }
    from_value(read_json(reply, &|_: &Value| Vec::new())?)
}

fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, OutputFault> {
    // The error may quote model output.
    serde_json::from_value(value).map_err(|error| invalid(vec![one_line(&error.to_string(), 200)]))
}

fn accept_if_valid<T>(turn: T, problems: Vec<String>) -> Result<T, OutputFault> {
    if problems.is_empty() { Ok(turn) } else { Err(invalid(problems)) }
}

fn invalid(mut problems: Vec<String>) -> OutputFault {
    problems.truncate(MAX_PROBLEMS);
    OutputFault::Invalid { problems }
}

/// Whether the text has no visible characters.
fn is_blank(text: &str) -> bool {
    text.chars().all(|sign| sign.is_whitespace() || is_hidden(sign))
}

fn message_problems(message: &str) -> Vec<String> {
    if is_blank(message) { vec!["`message` is empty".to_owned()] } else { Vec::new() }
}

fn length_problem(list: &str, length: usize, most: usize) -> Option<String> {
    (length > most).then(|| format!("`{list}` has {length} entries; there may be {most} at most"))
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
