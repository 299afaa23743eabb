use serde_json::json;

use super::*;

fn schema(text: &str) -> OutputSchema {
    OutputSchema::parse("s", text).unwrap()
}

#[track_caller]
fn check(text: &str, value: Value, expected: &[&str]) {
    assert_eq!(SchemaCheck::new(&schema(text)).unwrap().problems(&value), expected);
}

const SCORE: &str = r#"{
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 10}, "why": {"type": "string"}},
    "required": ["score", "why"]
}"#;

#[test]
fn a_value_that_follows_the_schema_has_no_problems() {
    check(SCORE, json!({"score": 10, "why": ""}), &[]);
    check("{}", json!([null]), &[]);
}

#[test]
fn every_schema_problem_names_its_location() {
    check(
        SCORE,
        json!({"score": 11}),
        &["\"why\" is a required property", "/score: 11 is greater than the maximum of 10"],
    );
    check(SCORE, json!("three"), &["\"three\" is not of type \"object\""]);
}

#[test]
fn the_same_value_always_has_the_same_problems() {
    let check = SchemaCheck::new(&schema(SCORE)).unwrap();
    let value = json!({"score": -1, "why": 7});
    assert_eq!(check.problems(&value), check.problems(&value));
}

#[track_caller]
fn check_unusable(text: &str) {
    assert!(SchemaCheck::new(&schema(text)).is_err(), "{text}");
}

#[test]
fn an_invalid_schema_is_refused() {
    check_unusable(r#"{"type": 5}"#);
    check_unusable(r#"{"type": "strin"}"#);
    check_unusable(r##"{"$ref": "#/$defs/Missing"}"##);
    check_unusable(r#"{"pattern": "("}"#);
}

#[test]
fn remote_schema_references_are_refused() {
    check_unusable(r#"{"$ref": "https://example.com/schema.json"}"#);
    check_unusable(r#"{"$ref": "file:///etc/passwd"}"#);
    check_unusable(r#"{"$schema": "https://example.com/own-draft"}"#);
}

#[test]
fn a_schema_that_refers_only_to_itself_neither_hangs_nor_crashes() {
    check(r##"{"$ref": "#"}"##, json!(1), &[]);
    check(
        r##"{"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}"##,
        json!(1),
        &[],
    );
    check(r##"{"anyOf": [{"$ref": "#"}, {"type": "null"}]}"##, json!(1), &[]);
}

#[test]
fn a_problem_does_not_repeat_a_long_answer() {
    // The validator quotes the faulty value, which may be the model's whole reply, and its message
    // is sent in the next prompt.
    let text = r#"{"type": "object", "properties": {"a": {"maxLength": 3}}}"#;
    let long = "é".repeat(100_000);
    let problems = SchemaCheck::new(&schema(text)).unwrap().problems(&json!({"a": long}));
    assert_eq!(problems, [format!("/a: \"{}…", "é".repeat(MAX_PROBLEM_CHARS - 5))]);
}

#[test]
fn the_number_of_reported_schema_problems_is_limited() {
    let problems = SchemaCheck::new(&schema(r#"{"items": {"type": "null"}}"#))
        .unwrap()
        .problems(&json!(vec![1; 1000]));
    let expected: Vec<_> =
        (0..MAX_PROBLEMS).map(|item| format!("/{item}: 1 is not of type \"null\"")).collect();
    assert_eq!(problems, expected);
}
