//! Checks a reply against a user-provided JSON schema.
//!
//! Not in core because the validator depends on a source of randomness; core checks its own types
//! with serde and ranges.

use jsonschema::Validator;
use moothall_core::model::OutputSchema;
use moothall_core::structured::{MAX_PROBLEMS, OutputCheck};
use serde_json::Value;

/// Limit of one problem's text. The validator quotes the faulty value, which may be the whole
/// reply.
const MAX_PROBLEM_CHARS: usize = 200;

/// The schema cannot be used for checking.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid JSON schema: {0}")]
pub struct UnusableSchema(String);

/// Checks replies against a JSON schema.
#[derive(Debug)]
pub struct SchemaCheck {
    validator: Validator,
}

impl SchemaCheck {
    /// Compiles the schema. Rejects references to other documents, so nothing is fetched.
    pub fn new(schema: &OutputSchema) -> Result<Self, UnusableSchema> {
        let unusable = |error: String| UnusableSchema(error);
        let value: Value =
            serde_json::from_str(schema.text()).map_err(|error| unusable(error.to_string()))?;
        let validator =
            jsonschema::validator_for(&value).map_err(|error| unusable(error.to_string()))?;
        Ok(Self { validator })
    }
}

impl OutputCheck for SchemaCheck {
    fn problems(&self, value: &Value) -> Vec<String> {
        let describe = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string();
            let text =
                if place.is_empty() { error.to_string() } else { format!("{place}: {error}") };
            match text.char_indices().nth(MAX_PROBLEM_CHARS) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        };
        self.validator.iter_errors(value).take(MAX_PROBLEMS).map(describe).collect()
    }
}

#[cfg(test)]
#[path = "schema_check_tests.rs"]
mod tests;
