//! Adapts a JSON schema to what a provider supports. Removed constraints are still checked on our
//! side.

use serde_json::{Map, Value};

use crate::catalog::SchemaForm;

/// Keywords that constrained decoders reject or ignore.
const UNSUPPORTED_BY_DECODERS: [&str; 15] = [
    "$schema",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// The schema in the form this provider supports.
pub(crate) fn adapt(schema: &Value, form: SchemaForm) -> Value {
    match form {
        SchemaForm::Full => schema.clone(),
        SchemaForm::Subset | SchemaForm::Strict => adapt_schema(schema, form),
    }
}

/// Keywords that make strict decoders reject the whole schema.
const UNSUPPORTED_BY_STRICT_MODE: [&str; 9] = [
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "prefixItems",
    "patternProperties",
    "dependentRequired",
    "dependentSchemas",
];

/// Whether strict decoders accept the schema: every object lists and requires all its fields, and
/// no rejected keyword is used.
pub(crate) fn requires_everything(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return true };
    let is_object = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
        None => false,
    };
    if UNSUPPORTED_BY_STRICT_MODE.iter().any(|keyword| schema.contains_key(*keyword)) {
        return false;
    }
    let complete = match (schema.get("properties"), schema.get("required")) {
        (None, _) => !is_object,
        (Some(Value::Object(fields)), Some(Value::Array(required))) => {
            fields.keys().all(|field| required.iter().any(|name| name == field))
        }
        (Some(fields), _) => fields.as_object().is_some_and(Map::is_empty),
    };
    complete && subschemas(schema).all(requires_everything)
}

fn adapt_schema(schema: &Value, form: SchemaForm) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let adapt_schema = |schema: &Value| adapt_schema(schema, form);
    // Strict decoders allow no keyword beside a reference, not even the description that schemars
    // adds.
    let only_reference = form == SchemaForm::Strict && schema.contains_key("$ref");
    let beyond = |keyword: &str| {
        UNSUPPORTED_BY_DECODERS.contains(&keyword)
            || (only_reference && !matches!(keyword, "$ref" | "$defs" | "definitions"))
    };
    let mut adapted = Map::new();
    for (keyword, value) in schema {
        if beyond(keyword) {
            continue;
        }
        // Decoders support only `anyOf`.
        let keyword = match keyword.as_str() {
            "oneOf" if !schema.contains_key("anyOf") => "anyOf",
            other => other,
        };
        let value = match (keyword, value) {
            // These keys are names of fields or definitions, not keywords: a field called `format`
            // is kept.
            ("properties" | "$defs" | "definitions", Value::Object(named)) => Value::Object(
                named.iter().map(|(name, schema)| (name.clone(), adapt_schema(schema))).collect(),
            ),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                Value::Array(schemas.iter().map(adapt_schema).collect())
            }
            ("items" | "additionalProperties", schema @ Value::Object(_)) => adapt_schema(schema),
            (_, other) => other.clone(),
        };
        adapted.insert(keyword.to_owned(), value);
    }
    if adapted.contains_key("properties") {
        adapted.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(adapted)
}

fn subschemas(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    schema.iter().flat_map(|(keyword, value)| -> Vec<&Value> {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                named.values().collect()
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().collect()
            }
            ("items" | "additionalProperties", schema) => vec![schema],
            _ => Vec::new(),
        }
    })
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
