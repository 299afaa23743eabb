//! Bending a JSON schema to what a provider's decoder takes. What is bent away is still checked on our side.

use serde_json::{Map, Value};

use crate::catalog::SchemaForm;

/// Keywords that constrained decoders refuse or ignore.
const BEYOND_DECODERS: [&str; 15] = [
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

/// The schema as this provider takes it.
pub(super) fn bend(schema: &Value, form: SchemaForm) -> Value {
    match form {
        SchemaForm::Full => schema.clone(),
        SchemaForm::Subset | SchemaForm::Strict => bend_schema(schema),
    }
}

/// Whether every object requires all its fields, which strict decoders demand.
pub(super) fn requires_everything(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return true };
    let complete = match (schema.get("properties"), schema.get("required")) {
        (None, _) => true,
        (Some(Value::Object(fields)), Some(Value::Array(required))) => {
            fields.keys().all(|field| required.iter().any(|name| name == field))
        }
        (Some(fields), _) => fields.as_object().is_some_and(Map::is_empty),
    };
    complete && subschemas(schema).all(requires_everything)
}

fn bend_schema(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut bent = Map::new();
    for (keyword, value) in schema {
        if BEYOND_DECODERS.contains(&keyword.as_str()) {
            continue;
        }
        let value = match (keyword.as_str(), value) {
            // The keys of these are names of fields or definitions, not keywords: a field called `format` stays.
            ("properties" | "$defs" | "definitions", Value::Object(named)) => Value::Object(
                named.iter().map(|(name, schema)| (name.clone(), bend_schema(schema))).collect(),
            ),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                Value::Array(schemas.iter().map(bend_schema).collect())
            }
            ("items" | "additionalProperties", schema @ Value::Object(_)) => bend_schema(schema),
            (_, other) => other.clone(),
        };
        bent.insert(keyword.clone(), value);
    }
    if bent.contains_key("properties") {
        bent.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(bent)
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
