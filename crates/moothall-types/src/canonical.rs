//! Canonical JSON: one value, one spelling, so that its hash means something.
//!
//! By hand because the published schemes (RFC 8785 and its crates) spend their effort on floating
//! point, which we refuse: hashed values hold objects with ASCII keys, arrays, strings, integers,
//! booleans and null. Money is in millionths, temperature in thousandths, decimals are strings.

use serde::Serialize;
use serde_json::Value;

/// A value that has no canonical spelling.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCanonical {
    /// Floating point numbers have many spellings.
    #[error("a number is not an integer")]
    Float,
    /// Keys are sorted by byte, which is only obvious for ASCII.
    #[error("an object key is not ASCII")]
    NonAsciiKey,
    /// The type does not serialise to JSON at all.
    #[error("the value does not serialise: {0}")]
    Serialise(String),
}

/// Writes `value` with sorted keys and no white space.
pub fn canonical_json<T: Serialize>(value: &T) -> Result<String, NotCanonical> {
    let value =
        serde_json::to_value(value).map_err(|error| NotCanonical::Serialise(error.to_string()))?;
    let mut text = String::new();
    write(&value, &mut text)?;
    Ok(text)
}

fn write(value: &Value, text: &mut String) -> Result<(), NotCanonical> {
    match value {
        Value::Number(number) if number.is_f64() => return Err(NotCanonical::Float),
        // serde_json has one spelling for each of these, and escapes only what JSON requires.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string())
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text)?;
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, field)) in sorted.into_iter().enumerate() {
                if !key.is_ascii() {
                    return Err(NotCanonical::NonAsciiKey);
                }
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write(field, text)?;
            }
            text.push('}');
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
