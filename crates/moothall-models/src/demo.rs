//! The demo model: deterministic, without API key and network, and labelled as a demo in every
//! reply. Its replies for a workflow are defined next to that workflow in core.

use moothall_core::model::{CallPurpose, ModelName, ModelRequest, PromptRole, TokenUsage};
use moothall_core::{consult, edit, program, tokens_expected};
use serde_json::{Map, Value, json};

use crate::backend::{AnswerFuture, BackendReply, ModelAttempt, ModelBackend};
use crate::wire::{RawReply, RawStopReason};

/// The demo model's name in replies and wherever a model name is shown.
pub const DEMO_MODEL: &str = "demo (a demonstration, not a model)";

/// Recursion limit for schemas that refer to themselves.
const MAX_DEPTH: usize = 12;

/// Size limit of a generated reply, whatever lengths a schema requires.
const MAX_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, Default)]
pub struct DemoBackend;

impl ModelBackend for DemoBackend {
    fn answer<'a>(&'a self, call: ModelAttempt<'a>) -> AnswerFuture<'a> {
        Box::pin(async move {
            let text = answer_text(call.request);
            if let Some(listener) = call.listener {
                // Send word by word, so that live views look the same as with a real model.
                text.split_inclusive(' ').for_each(|piece| listener.text(piece));
            }
            let output = tokens_expected(&text).min(u64::from(call.request.max_tokens));
            let usage = TokenUsage {
                input: call.request.prompt_tokens_expected(),
                output,
                ..TokenUsage::default()
            };
            let answer = RawReply {
                text,
                stop: RawStopReason::End,
                usage: Some(usage),
                model: Some(DEMO_MODEL.replacen(
                    ModelName::DEMO,
                    &call.request.model.to_string(),
                    1,
                )),
            };
            Ok(BackendReply { answer, window: None })
        })
    }
}

fn answer_text(request: &ModelRequest) -> String {
    let known = match request.purpose {
        CallPurpose::Generate | CallPurpose::Critique => program::demonstration::answer(request),
        CallPurpose::Edit => edit::demonstration::answer(request),
        CallPurpose::Review => Some(r#"{"doubts": []}"#.to_owned()),
        _ => consult::demonstration::answer(request),
    };
    if let Some(answer) = known {
        return answer;
    }
    if let Some(schema) = &request.schema {
        let schema: Value = serde_json::from_str(schema.text()).unwrap_or(Value::Null);
        let example = ExampleGenerator { root: &schema, bytes_left: MAX_BYTES }.of(&schema, 0);
        return example.unwrap_or(Value::Null).to_string();
    }
    let question = request
        .turns
        .iter()
        .rev()
        .find(|turn| turn.role == PromptRole::User)
        .map_or("", |turn| &turn.block.text);
    let characters = question.chars().count();
    format!(
        "This is a demonstration: the demo model makes no API call. Your question has {characters} characters. To get a real answer, set an API key such as ANTHROPIC_API_KEY, \
         or run a local model, and select it with --model."
    )
}

/// Generates a value that matches a JSON schema: the first alternative and the smallest number.
/// Returns `None` for an endless recursion; the enclosing choice, optional field or list then omits
/// the value.
struct ExampleGenerator<'a> {
    root: &'a Value,
    /// Remaining size limit in bytes.
    bytes_left: usize,
}

impl ExampleGenerator<'_> {
    fn of(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        self.bytes_left = self.bytes_left.checked_sub(8)?;
        let schema = match schema {
            Value::Object(schema) if depth < MAX_DEPTH => schema,
            Value::Bool(true) => return Some(json!("demonstration")),
            _ => return None,
        };
        if let Some(value) = schema.get("const") {
            return Some(value.clone());
        }
        if let Some(value) = schema.get("enum").and_then(|choices| choices.get(0)) {
            return Some(value.clone());
        }
        let target = schema.get("$ref").and_then(Value::as_str);
        if let Some(target) = target.and_then(|path| self.root.pointer(path.strip_prefix('#')?)) {
            return self.of(target, depth + 1);
        }
        match self.parts(schema, depth)? {
            parts if parts.is_empty() => self.of_type(schema, depth),
            parts if parts.iter().all(Value::is_object) => {
                let fields = parts.into_iter().filter_map(|part| match part {
                    Value::Object(fields) => Some(fields),
                    _ => None,
                });
                Some(Value::Object(fields.flatten().collect()))
            }
            parts => parts.into_iter().next(),
        }
    }

    /// Values required by `anyOf`, `oneOf` and `allOf`, plus the schema's own properties.
    fn parts(&mut self, schema: &Map<String, Value>, depth: usize) -> Option<Vec<Value>> {
        let mut parts = Vec::new();
        for choices in ["anyOf", "oneOf"].into_iter().filter_map(|keyword| schema.get(keyword)) {
            let choices = choices.as_array().map_or(&[][..], Vec::as_slice);
            if !choices.is_empty() {
                parts.push(choices.iter().find_map(|choice| self.of(choice, depth + 1))?);
            }
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            parts.push(self.of(part, depth + 1)?);
        }
        if !parts.is_empty() && schema.contains_key("properties") {
            parts.push(self.object(schema, depth)?);
        }
        Some(parts)
    }

    fn of_type(&mut self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let kind =
            schema.get("type").map(|kind| kind.get(0).unwrap_or(kind)).and_then(Value::as_str);
        let default_kind = if schema.contains_key("properties") { "object" } else { "string" };
        match kind.unwrap_or(default_kind) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "integer" => Some(json!(smallest_integer(schema))),
            "number" => Some(smallest_number(schema)),
            "boolean" => Some(json!(false)),
            "null" => Some(Value::Null),
            _ => {
                let text = demonstration_text(schema);
                self.bytes_left = self.bytes_left.checked_sub(text.len())?;
                Some(json!(text))
            }
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|required| required.iter().any(|one| one == name));
        let mut fields = Map::new();
        for (name, field) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            match self.of(field, depth + 1) {
                Some(value) => {
                    self.bytes_left = self.bytes_left.checked_sub(name.len())?;
                    fields.insert(name.clone(), value);
                }
                None if is_required(name) => return None,
                None => {}
            }
        }
        Some(Value::Object(fields))
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let count = |keyword: &str| {
            schema
                .get(keyword)
                .and_then(Value::as_u64)
                .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
        };
        let least = count("minItems").unwrap_or(0);
        let length = count("minItems").unwrap_or(1).min(count("maxItems").unwrap_or(usize::MAX));
        let prefix =
            schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let any = Value::Bool(true);
        let rest = schema.get("items").unwrap_or(&any);
        let mut items = Vec::new();
        for item in prefix.iter().chain(std::iter::repeat(rest)).take(length) {
            match self.of(item, depth + 1) {
                Some(value) => items.push(value),
                None => break,
            }
        }
        (items.len() >= least).then_some(Value::Array(items))
    }
}

fn bound(schema: &Map<String, Value>, keyword: &str) -> Option<f64> {
    schema.get(keyword).and_then(Value::as_f64)
}

fn smallest_integer(schema: &Map<String, Value>) -> i64 {
    let bound = |keyword: &str| bound(schema, keyword);
    let above = bound("exclusiveMinimum").map(|above| above.floor() + 1.0);
    let below = bound("exclusiveMaximum").map(|below| below.ceil() - 1.0);
    let from = larger(bound("minimum").map(f64::ceil), above);
    let until = smaller(bound("maximum").map(f64::floor), below);
    in_steps(schema, from, until) as i64
}

fn smallest_number(schema: &Map<String, Value>) -> Value {
    let bound = |keyword: &str| bound(schema, keyword);
    // The midpoint if the upper bound is known, otherwise one above the lower bound.
    let above = bound("exclusiveMinimum").map(|above| {
        let end = smaller(bound("maximum"), bound("exclusiveMaximum"));
        end.map_or(above + 1.0, |end| f64::midpoint(above, end))
    });
    let below = bound("exclusiveMaximum").map(|below| below - 1.0);
    let from = larger(bound("minimum"), above);
    let number = in_steps(schema, from, smaller(bound("maximum"), below));
    if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a.max(b)).or(a).or(b)
}

fn smaller(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a.min(b)).or(a).or(b)
}

/// The lower bound of a range, otherwise 1 or the upper bound; rounded to a multiple of `multipleOf`.
fn in_steps(schema: &Map<String, Value>, from: Option<f64>, until: Option<f64>) -> f64 {
    let step = bound(schema, "multipleOf").filter(|step| *step > 0.0);
    match (from, step) {
        (Some(from), Some(step)) => (from / step).ceil() * step,
        (Some(from), None) => from,
        (None, step) => {
            let number = until.map_or(1.0, |until| until.min(1.0));
            step.map_or(number, |step| (number / step).floor() * step)
        }
    }
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
