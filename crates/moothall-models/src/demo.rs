//! The demonstration model: deterministic, needs no key and no network, and says what it is in every answer.

use moothall_core::model::{ModelRequest, Role, Usage};
use moothall_core::tokens_expected;
use serde_json::{Map, Value, json};

use crate::backend::{AnswerFuture, Answered, Backend, Call};
use crate::wire::{Answer, AnswerStop};

/// The model's name in answers; it stands wherever a model's name is shown.
pub const DEMO_MODEL: &str = "demo (a demonstration, not a model)";

/// How deep a schema may refer to itself before the demonstration stops following it.
const MAX_DEPTH: usize = 12;

/// See the module documentation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Demo;

impl Backend for Demo {
    fn answer<'a>(&'a self, call: Call<'a>) -> AnswerFuture<'a> {
        Box::pin(async move {
            let text = answer_text(call.request);
            if let Some(listener) = call.listener {
                // Word by word, as a model would: live views show the same thing with and without a key.
                text.split_inclusive(' ').for_each(|piece| listener.text(piece));
            }
            let output = tokens_expected(&text).min(u64::from(call.request.max_tokens));
            let usage =
                Usage { input: call.request.prompt_tokens_expected(), output, ..Usage::default() };
            let answer = Answer {
                text,
                stop: AnswerStop::End,
                usage: Some(usage),
                model: Some(DEMO_MODEL.to_owned()),
            };
            Ok(Answered { answer, window: None })
        })
    }
}

fn answer_text(request: &ModelRequest) -> String {
    if let Some(schema) = &request.schema {
        let schema: Value = serde_json::from_str(schema.text()).unwrap_or(Value::Null);
        return example(&schema, &schema, 0).to_string();
    }
    let question = request
        .turns
        .iter()
        .rev()
        .find(|turn| turn.role == Role::User)
        .map_or("", |turn| &turn.block.text);
    let characters = question.chars().count();
    format!(
        "This is a demonstration: no model was asked. Your question has {characters} characters. To get a real answer, set a key such as ANTHROPIC_API_KEY, \
         or run a local model, and choose it with --model."
    )
}

/// A value that follows a JSON schema: the first of every choice, the smallest of every range.
fn example(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(schema) = schema.as_object().filter(|_| depth < MAX_DEPTH) else { return Value::Null };
    let deeper = |schema: &Value| example(schema, root, depth + 1);
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = schema.get("enum").and_then(|choices| choices.get(0)) {
        return value.clone();
    }
    if let Some(target) = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| root.pointer(path.strip_prefix('#')?))
    {
        return deeper(target);
    }
    if let Some(choice) = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(*keyword)?.get(0))
    {
        return deeper(choice);
    }
    if let Some(Value::Array(parts)) = schema.get("allOf") {
        let parts = parts.iter().map(deeper).filter_map(|part| part.as_object().cloned());
        return Value::Object(parts.flatten().collect());
    }
    let kind = schema.get("type").map(|kind| kind.get(0).unwrap_or(kind)).and_then(Value::as_str);
    let unsaid = if schema.contains_key("properties") { "object" } else { "string" };
    match kind.unwrap_or(unsaid) {
        "object" => {
            let fields =
                schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
            Value::Object(
                fields
                    .iter()
                    .map(|(name, field)| (name.clone(), deeper(field)))
                    .collect::<Map<_, _>>(),
            )
        }
        "array" => {
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).min(100);
            let item = schema.get("items").map_or(Value::Null, deeper);
            json!(vec![item; usize::try_from(count).unwrap_or(1)])
        }
        "integer" | "number" => json!(smallest(schema)),
        "boolean" => json!(false),
        "null" => Value::Null,
        _ => json!(demonstration_text(schema)),
    }
}

fn smallest(schema: &Map<String, Value>) -> i64 {
    let whole = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let from = whole("minimum").or_else(|| whole("exclusiveMinimum").map(|below| below + 1.0));
    let value = from.unwrap_or_else(|| whole("maximum").map_or(1.0, |maximum| maximum.min(1.0)));
    value.ceil() as i64
}

fn demonstration_text(schema: &Map<String, Value>) -> String {
    let length = |keyword: &str| {
        schema.get(keyword).and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok())
    };
    let text = "demonstration ".repeat(length("minLength").unwrap_or(0).min(10_000) / 14 + 1);
    let most = length("maxLength").unwrap_or(text.len());
    let cut: String = text.chars().take(most).collect();
    if length("minLength").is_some_and(|least| cut.trim_end().chars().count() < least) {
        cut
    } else {
        cut.trim_end().to_owned()
    }
}

#[cfg(test)]
#[path = "demo_tests.rs"]
mod tests;
