use serde_json::json;

use super::*;

/// Compared as text, because models answer in the order of the fields.
#[track_caller]
fn check(form: SchemaForm, schema: Value, expected: Value) {
    assert_eq!(adapt(&schema, form).to_string(), expected.to_string());
}

fn ranged() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Score",
        "type": "object",
        "properties": {
            "zeal": {"type": "integer", "minimum": 0, "maximum": 10, "exclusiveMinimum": -1, "exclusiveMaximum": 11, "multipleOf": 1},
            "name": {"type": "string", "description": "who", "minLength": 1, "maxLength": 9, "pattern": "^a", "format": "email"},
            "list": {"type": "array", "items": {"type": "number", "minimum": 1}, "minItems": 1, "maxItems": 2, "uniqueItems": true},
            "map": {"type": "object", "properties": {}, "minProperties": 1, "maxProperties": 3}
        },
        "required": ["zeal", "name", "list", "map"]
    })
}

#[test]
fn a_full_decoder_gets_the_schema_as_it_is() {
    check(SchemaForm::Full, ranged(), ranged());
}

#[test]
fn unsupported_schema_keywords_are_removed_and_objects_closed() {
    for form in [SchemaForm::Subset, SchemaForm::Strict] {
        check(
            form,
            ranged(),
            json!({
                "title": "Score",
                "type": "object",
                "properties": {
                    "zeal": {"type": "integer"},
                    "name": {"type": "string", "description": "who"},
                    "list": {"type": "array", "items": {"type": "number"}},
                    "map": {"type": "object", "properties": {}, "additionalProperties": false}
                },
                "required": ["zeal", "name", "list", "map"],
                "additionalProperties": false
            }),
        );
    }
}

#[test]
fn fields_and_definitions_may_be_called_like_keywords() {
    check(
        SchemaForm::Subset,
        json!({
            "type": "object",
            "properties": {
                "format": {"type": "string", "format": "date"},
                "minimum": {"type": "number", "minimum": 3},
                "properties": {"type": "object", "properties": {"pattern": {"type": "string"}}}
            },
            "$defs": {"maxLength": {"type": "string", "maxLength": 3}},
            "definitions": {"uniqueItems": {"type": "array", "uniqueItems": true}}
        }),
        json!({
            "type": "object",
            "properties": {
                "format": {"type": "string"},
                "minimum": {"type": "number"},
                "properties": {"type": "object", "properties": {"pattern": {"type": "string"}}, "additionalProperties": false}
            },
            "$defs": {"maxLength": {"type": "string"}},
            "definitions": {"uniqueItems": {"type": "array"}},
            "additionalProperties": false
        }),
    );
}

#[test]
fn values_that_look_like_schemas_are_left_alone() {
    let schema = json!({
        "type": "string",
        "enum": ["minimum", "format"],
        "default": {"minimum": 1, "properties": {}},
        "examples": [{"format": "a"}],
        "const": {"maxLength": 2}
    });
    check(SchemaForm::Subset, schema.clone(), schema);
}

#[test]
fn every_nested_schema_is_adapted() {
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "additionalProperties": true});
    for place in ["items", "additionalProperties"] {
        check(SchemaForm::Subset, json!({place: open}), json!({place: closed}));
    }
    for place in ["anyOf", "allOf", "prefixItems"] {
        check(
            SchemaForm::Subset,
            json!({place: [open, {"type": "null"}]}),
            json!({place: [closed, {"type": "null"}]}),
        );
    }
    for place in ["$defs", "definitions"] {
        check(SchemaForm::Subset, json!({place: {"A": open}}), json!({place: {"A": closed}}));
    }
}

#[test]
fn one_of_is_replaced_by_any_of() {
    // schemars uses `oneOf` for enums with documented variants; OpenAI rejects it with "'oneOf' is
    // not permitted".
    for form in [SchemaForm::Subset, SchemaForm::Strict] {
        check(
            form,
            json!({"oneOf": [{"type": "string", "const": "a", "minLength": 1}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]}),
        );
    }
}

#[test]
fn keywords_beside_a_reference_are_removed_in_a_strict_schema() {
    // schemars adds a field's description beside its `$ref`; OpenAI rejects it with "$ref cannot
    // have keywords {'description'}".
    let schema = json!({
        "type": "object",
        "properties": {"tier": {"description": "how high", "$ref": "#/$defs/Tier"}},
        "required": ["tier"],
        "$defs": {"Tier": {"type": "string"}}
    });
    check(
        SchemaForm::Strict,
        schema.clone(),
        json!({
            "type": "object",
            "properties": {"tier": {"$ref": "#/$defs/Tier"}},
            "required": ["tier"],
            "$defs": {"Tier": {"type": "string"}},
            "additionalProperties": false
        }),
    );
    check(
        SchemaForm::Subset,
        schema,
        json!({
            "type": "object",
            "properties": {"tier": {"description": "how high", "$ref": "#/$defs/Tier"}},
            "required": ["tier"],
            "$defs": {"Tier": {"type": "string"}},
            "additionalProperties": false
        }),
    );
}

#[track_caller]
fn check_requires(schema: Value, expected: bool) {
    assert_eq!(requires_everything(&schema), expected, "{schema}");
}

#[test]
fn a_schema_is_strict_only_if_every_object_requires_all_fields() {
    let complete = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["b", "a"]});
    let partial = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]});
    check_requires(json!({"type": "string"}), true);
    check_requires(json!(true), true);
    check_requires(json!({"type": "object", "properties": {}}), true);
    check_requires(json!({"type": "object", "properties": {"a": {}}}), false);
    for (inner, expected) in [(complete, true), (partial, false)] {
        check_requires(inner.clone(), expected);
        check_requires(json!({"items": inner}), expected);
        check_requires(json!({"anyOf": [{"type": "null"}, inner]}), expected);
        check_requires(json!({"$defs": {"A": inner}}), expected);
        check_requires(
            json!({"type": "object", "properties": {"a": inner}, "required": ["a"]}),
            expected,
        );
    }
}

#[test]
fn a_schema_with_an_unsupported_keyword_is_not_strict() {
    for keyword in UNSUPPORTED_BY_STRICT_MODE {
        check_requires(json!({"type": "string", keyword: []}), false);
        check_requires(json!({"$defs": {"A": {keyword: {}}}}), false);
        check_requires(
            json!({"type": "object", "properties": {keyword: {}}, "required": [keyword]}),
            true,
        );
    }
}

#[test]
fn an_object_without_named_fields_is_not_strict() {
    // Regression: OpenAI rejects such a schema in strict mode, so every call with a map in the
    // user's schema failed.
    check_requires(json!({"type": "object"}), false);
    check_requires(json!({"type": "object", "additionalProperties": {"type": "string"}}), false);
    check_requires(json!({"type": ["object", "null"], "additionalProperties": true}), false);
    check_requires(
        json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}}, "required": ["m"]}),
        false,
    );
}
