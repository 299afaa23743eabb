//! Canonical JSON: every value has exactly one encoding, so that equal values have equal hashes.
//!
//! Hand-written because RFC 8785 and its crates mostly deal with floating point, which is rejected
//! here: hashed values contain objects with ASCII keys, arrays, strings, integers, booleans and
//! null. Money is in millionths, temperature in thousandths, and decimals are strings.

use serde::Serialize;
use serde_json::Value;

/// The value has no canonical encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalJsonError {
    /// Floating-point numbers have no unique encoding.
    #[error("a number is not an integer")]
    Float,
    /// Keys are sorted by byte, which is unambiguous only for ASCII.
    #[error("an object key is not ASCII")]
    NonAsciiKey,
    /// The value cannot be serialized to JSON.
    #[error("cannot serialize the value: {0}")]
    Serialise(String),
}

/// Serializes `value` with sorted keys and no whitespace.
pub fn canonical_json<T: Serialize>(value: &T) -> Result<String, CanonicalJsonError> {
    let value = serde_json::to_value(value)
        .map_err(|error| CanonicalJsonError::Serialise(error.to_string()))?;
    let mut text = String::new();
    write(&value, &mut text)?;
    Ok(text)
}

fn write(value: &Value, text: &mut String) -> Result<(), CanonicalJsonError> {
    match value {
        Value::Number(number) if number.is_f64() => return Err(CanonicalJsonError::Float),
        // `serde_json` has one encoding for each of these and escapes only what JSON requires.
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
                    return Err(CanonicalJsonError::NonAsciiKey);
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
