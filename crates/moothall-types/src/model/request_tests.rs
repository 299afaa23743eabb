use super::*;

#[track_caller]
fn check_name(text: &str, expected: Option<(&str, &str)>) {
    let parsed = text.parse::<ModelName>().ok();
    assert_eq!(parsed.as_ref().map(|model| (model.provider(), model.name())), expected, "{text:?}");
}

#[test]
fn a_model_is_a_provider_and_a_name_or_demo() {
    check_name("anthropic/claude-haiku-5-5", Some(("anthropic", "claude-haiku-5-5")));
    check_name(
        "openrouter/anthropic/claude-haiku-5.5",
        Some(("openrouter", "anthropic/claude-haiku-5.5")),
    );
    check_name("ollama/qwen3:8b", Some(("ollama", "qwen3:8b")));
    check_name("demo", Some(("demo", "demo")));
    check_name("demo/other", Some(("demo", "other")));
    check_name("demo/", None);
    check_name("claude", None);
    check_name("/claude", None);
    check_name("openai/", None);
    check_name("openai/a b", None);
    check_name("openai/a\r\nx-header: 1", None);
}

fn request() -> ModelRequest {
    ModelRequest::ask("openai/gpt-5-mini".parse().unwrap(), "What is a moot hall?", 100)
}

#[test]
fn purpose_and_timeout_do_not_change_the_request_hash() {
    let same = ModelRequest { purpose: CallPurpose::Probe, timeout_ms: Some(1), ..request() };
    assert_eq!(request().hash(), same.hash());
}

#[test]
fn the_hashed_form_of_a_request_is_canonical() {
    let schema = OutputSchema::parse("answer", r#"{"type": "object"}"#).unwrap();
    let whole = ModelRequest {
        system: vec![
            PromptBlock::new("Be terse.").cached(CacheDuration::OneHour),
            PromptBlock::new("Be kind."),
        ],
        turns: vec![PromptTurn::user("\"What?\""), PromptTurn::assistant("That.")],
        temperature: Some(Temperature::ZERO),
        effort: Some(ReasoningEffort::High),
        schema: Some(schema),
        fallbacks: vec!["groq/b".parse().unwrap(), "openai/a".parse().unwrap()],
        ..request()
    };
    for request in [request(), whole] {
        let canonical = crate::canonical_json(&request.hashed()).unwrap();
        assert_eq!(request.hash().unwrap(), Sha256Hex::of(canonical.as_bytes()));
    }
}

#[test]
fn everything_the_provider_sees_changes_the_hash() {
    let changed = [
        ModelRequest { model: "openai/gpt-5-nano".parse().unwrap(), ..request() },
        ModelRequest { fallbacks: vec!["openai/gpt-5-nano".parse().unwrap()], ..request() },
        ModelRequest { system: vec![PromptBlock::new("Be brief.")], ..request() },
        ModelRequest { turns: vec![PromptTurn::user("What is a moot hall")], ..request() },
        ModelRequest { max_tokens: 101, ..request() },
        ModelRequest { temperature: Some(Temperature::ZERO), ..request() },
        ModelRequest { effort: Some(ReasoningEffort::Low), ..request() },
        ModelRequest {
            schema: Some(OutputSchema::parse("a", r#"{"type":"object"}"#).unwrap()),
            ..request()
        },
    ];
    let mut hashes: Vec<_> = changed.iter().map(|request| request.hash().unwrap()).collect();
    hashes.push(request().hash().unwrap());
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), changed.len() + 1);
}

#[test]
fn a_schema_keeps_the_order_of_its_fields() {
    let schema = OutputSchema::parse("my score!", r#"{ "z": 1, "a": {"y": 2, "b": 3} }"#).unwrap();
    assert_eq!(schema.text(), r#"{"z":1,"a":{"y":2,"b":3}}"#);
    assert_eq!(schema.name(), "my_score_");
}

#[test]
fn a_schema_must_be_a_json_object() {
    assert_eq!(OutputSchema::parse("a", "[]"), Err(InvalidSchema::NotAnObject));
    assert!(matches!(OutputSchema::parse("a", "{"), Err(InvalidSchema::NotJson(_))));
}

#[test]
fn our_own_types_give_schemas_with_fields_in_the_order_of_the_struct() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is read")]
    struct Message {
        message: String,
        concede: bool,
        aspects: Vec<String>,
    }
    let text = OutputSchema::of::<Message>("message").text().to_owned();
    let at = |field: &str| text.find(&format!("\"{field}\":")).unwrap();
    assert!(at("message") < at("concede") && at("concede") < at("aspects"), "{text}");
}

#[test]
fn temperature_stays_in_the_range_that_providers_share() {
    assert_eq!(Temperature::from_thousandths(700).map(Temperature::as_decimal), Some(0.7));
    assert_eq!(Temperature::from_thousandths(2001), None);
}

#[test]
fn the_expected_prompt_fits_below_the_bound() {
    let request = ModelRequest { system: vec![PromptBlock::new("You are terse.")], ..request() };
    assert!(request.prompt_tokens_expected() <= request.prompt_tokens_at_most());
}

#[test]
fn invalid_request_values_cannot_be_deserialized() {
    assert!(serde_json::from_str::<Temperature>("700").is_ok());
    assert!(serde_json::from_str::<Temperature>("65535").is_err());
    assert!(serde_json::from_str::<OutputSchema>(r#"{"name":"a","text":"{}"}"#).is_ok());
    assert!(serde_json::from_str::<OutputSchema>(r#"{"name":"a","text":"not json"}"#).is_err());
}
