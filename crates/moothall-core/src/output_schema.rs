//! Builds the JSON schemas of model answers, with every bound that the parsers check.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

/// An object with exactly these fields, in this order.
pub(crate) fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Map<String, Value> {
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let required: Vec<Value> = fields.keys().cloned().map(Value::String).collect();
    let parts: [(&str, Value); 4] = [
        ("type", "object".into()),
        ("properties", fields.into()),
        ("required", required.into()),
        ("additionalProperties", false.into()),
    ];
    parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect()
}

/// A list with a bounded number of items.
pub(crate) fn list(items: impl Into<Value>, count: RangeInclusive<usize>) -> Value {
    let items: Value = items.into();
    match (*count.start(), *count.end()) {
        (0, most) => json!({"type": "array", "items": items, "maxItems": most}),
        (least, most) => {
            json!({"type": "array", "items": items, "minItems": least, "maxItems": most})
        }
    }
}

/// A text of any length.
pub(crate) fn any_text() -> Value {
    json!({"type": "string"})
}

/// A text that is not empty.
pub(crate) fn some_text() -> Value {
    json!({"type": "string", "minLength": 1})
}

/// A text of at most `most` characters that is not empty.
pub(crate) fn text(most: usize) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": most})
}

/// One of these words.
pub(crate) fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// A whole number.
pub(crate) fn integer(range: RangeInclusive<u8>) -> Value {
    json!({"type": "integer", "minimum": range.start(), "maximum": range.end()})
}

/// A schema of the first revision, as stored in a file: its bytes are part of request hashes.
pub(crate) fn v1_schema(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
#[path = "output_schema_tests.rs"]
pub(crate) mod tests;
