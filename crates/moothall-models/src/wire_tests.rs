use moothall_core::model::{
    CacheDuration, CallPurpose, PromptRole, PromptTurn, ReasoningEffort, Temperature,
};
use serde_json::{Value, json};

use super::*;
use crate::catalog::{Catalog, ModelPrices, SchemaForm};
use crate::settings::AuthScheme;

const SCORE: &str = r##"{
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": 0, "maximum": 10},
        "format": {"type": "string", "maxLength": 80, "description": "How it is written"},
        "aspects": {"type": "array", "items": {"$ref": "#/$defs/Aspect"}, "maxItems": 3}
    },
    "required": ["score", "format", "aspects"],
    "$defs": {"Aspect": {"type": "string", "enum": ["cost", "risk"]}}
}"##;

fn rich(model: &str) -> ModelRequest {
    ModelRequest {
        fallbacks: Vec::new(),
        model: model.parse().unwrap(),
        purpose: CallPurpose::Ask,
        system: vec![
            PromptBlock::new("The dossier of Ada & Sons.").cached(CacheDuration::OneHour),
            PromptBlock::new("You are the critic.\nBe \"brief\".")
                .cached(CacheDuration::FiveMinutes),
        ],
        turns: vec![
            PromptTurn::user("Open the case."),
            PromptTurn::assistant("The plan is thin."),
            PromptTurn {
                role: PromptRole::User,
                block: PromptBlock::new("Go on: 7 → 8?").cached(CacheDuration::FiveMinutes),
            },
        ],
        max_tokens: 512,
        temperature: Temperature::from_thousandths(700),
        effort: Some(ReasoningEffort::Low),
        schema: Some(OutputSchema::parse("score", SCORE).unwrap()),
        timeout_ms: Some(1000),
    }
}

fn built_in(request: &ModelRequest) -> ModelProvider {
    Catalog::built_in().unwrap().provider(request.model.provider()).unwrap().clone()
}

fn encoded(request: &ModelRequest, delivery: ReplyDelivery) -> EncodedRequest {
    let catalog = Catalog::built_in().unwrap();
    encode(&built_in(request), &catalog.card(&request.model), request, delivery).unwrap()
}

fn body(encoded: &EncodedRequest) -> Value {
    serde_json::from_slice(&encoded.body).unwrap()
}

/// A request in reviewable form: URL, headers, window, body, and the differences when streamed.
fn shown(model: &str) -> String {
    let request = rich(model);
    let whole = encoded(&request, ReplyDelivery::Whole);
    let streamed = encoded(&request, ReplyDelivery::Streamed);
    let ApiEndpoint { path, headers, .. } = endpoint(built_in(&request).wire);
    let window = whole.window;
    assert_eq!(window, streamed.window);
    let (whole, mut changed) = (body(&whole), body(&streamed));
    let fields = changed.as_object_mut().unwrap();
    for (field, value) in whole.as_object().unwrap() {
        if fields.get(field).unwrap() == value {
            fields.shift_remove(field);
        }
    }
    format!(
        "POST {path}\nheaders: {headers:?}\nwindow: {window:?}\n\n{whole:#}\n\nwhen streamed: {changed:#}"
    )
}

#[test]
fn a_request_to_anthropic_matches_its_snapshot() {
    insta::assert_snapshot!(shown("anthropic/claude-haiku-5-5"));
}

#[test]
fn a_request_to_openai_matches_its_snapshot() {
    insta::assert_snapshot!(shown("openai/gpt-6-luna"));
}

#[test]
fn a_request_to_google_matches_its_snapshot() {
    insta::assert_snapshot!(shown("google/gemini-3.1-flash-lite"));
}

#[test]
fn a_request_to_groq_matches_its_snapshot() {
    insta::assert_snapshot!(shown("groq/openai/gpt-oss-20b"));
}

#[test]
fn a_request_to_openrouter_matches_its_snapshot() {
    insta::assert_snapshot!(shown("openrouter/anthropic/claude-haiku-5.5"));
}

#[test]
fn a_request_to_ollama_matches_its_snapshot() {
    insta::assert_snapshot!(shown("ollama/qwen3"));
}

#[test]
fn a_schema_described_in_the_prompt_matches_its_snapshot() {
    insta::assert_snapshot!(shown("groq/llama-3.3-70b-versatile"));
}

/// A provider and a model card that support everything, so a test can remove one feature.
fn able(wire: WireFormat) -> (ModelProvider, ModelCard) {
    let catalog = Catalog::built_in().unwrap();
    let name = match wire {
        WireFormat::OpenAiChat => "openai",
        WireFormat::AnthropicMessages => "anthropic",
        WireFormat::OllamaChat => "ollama",
    };
    let card = ModelCard {
        model: format!("{name}/m").parse().unwrap(),
        context: None,
        max_output: None,
        temperature: true,
        effort: true,
        structured: true,
        cache_minimum: None,
        prices: Some(ModelPrices::free()),
        listed: true,
    };
    (catalog.provider(name).unwrap().clone(), card)
}

const WIRES: [WireFormat; 3] =
    [WireFormat::OpenAiChat, WireFormat::AnthropicMessages, WireFormat::OllamaChat];

/// Checks that a card without a feature omits exactly the part at `pointer`.
#[track_caller]
fn check_left_out(wire: WireFormat, lacks: impl Fn(&mut ModelCard), pointer: &str) {
    let (provider, card) = able(wire);
    // Without a schema mode the schema is added to the prompt, so the other cases leave it out.
    let request = ModelRequest { schema: None, ..rich(&card.model.to_string()) };
    let mut less = card.clone();
    lacks(&mut less);
    let json =
        |card: &ModelCard| body(&encode(&provider, card, &request, ReplyDelivery::Whole).unwrap());
    let mut expected = json(&card);
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let removed = expected.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
    assert!(removed.is_some(), "a full card sends {pointer}");
    assert_eq!(json(&less), expected, "{wire:?}");
}

#[test]
fn no_temperature_is_sent_to_a_model_without_support() {
    let lacks = |card: &mut ModelCard| card.temperature = false;
    check_left_out(WireFormat::OpenAiChat, lacks, "/temperature");
    check_left_out(WireFormat::AnthropicMessages, lacks, "/temperature");
    check_left_out(WireFormat::OllamaChat, lacks, "/options/temperature");
}

#[test]
fn no_effort_is_sent_to_a_model_without_support() {
    let lacks = |card: &mut ModelCard| card.effort = false;
    check_left_out(WireFormat::OpenAiChat, lacks, "/reasoning_effort");
    check_left_out(WireFormat::AnthropicMessages, lacks, "/output_config");
    check_left_out(WireFormat::OllamaChat, lacks, "/think");
}

#[test]
fn without_schema_support_the_schema_is_appended_to_the_prompt() {
    for wire in WIRES {
        let (provider, card) = able(wire);
        let request = rich(&card.model.to_string());
        let less = ModelCard { structured: false, ..card.clone() };
        let told = encode(&provider, &less, &request, ReplyDelivery::Whole).unwrap();

        let text = request.schema.as_ref().unwrap().text();
        let words = format!(
            "Answer with one JSON value that follows this JSON schema, and with nothing else:\n{text}"
        );
        let mut by_hand = ModelRequest { schema: None, ..request };
        by_hand.system.push(PromptBlock::new(words));
        let expected = encode(&provider, &card, &by_hand, ReplyDelivery::Whole).unwrap();
        assert_eq!(body(&told), body(&expected), "{wire:?}");
    }
}

#[test]
fn the_same_request_always_gives_the_same_bytes() {
    for wire in WIRES {
        let (provider, card) = able(wire);
        for delivery in [ReplyDelivery::Whole, ReplyDelivery::Streamed] {
            let once = |request: &ModelRequest| encode(&provider, &card, request, delivery);
            let request = rich(&card.model.to_string());
            let read_back: ModelRequest =
                serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
            assert_eq!(once(&request), once(&read_back), "{wire:?} {delivery:?}");
        }
    }
}

#[test]
fn a_request_without_system_blocks_has_no_empty_system_part() {
    for wire in WIRES {
        let (provider, card) = able(wire);
        let request = ModelRequest::ask(card.model.clone(), "Why?", 9);
        let body = body(&encode(&provider, &card, &request, ReplyDelivery::Whole).unwrap());
        let content = match wire {
            WireFormat::AnthropicMessages => json!([{"type": "text", "text": "Why?"}]),
            WireFormat::OpenAiChat | WireFormat::OllamaChat => json!("Why?"),
        };
        assert_eq!(body["messages"], json!([{"role": "user", "content": content}]));
        assert_eq!(body.get("system"), None, "{wire:?}");
    }
}

#[test]
fn strict_decoding_is_demanded_only_where_every_field_is_required() {
    let (mut provider, card) = able(WireFormat::OpenAiChat);
    let strict = |provider: &ModelProvider, schema: &str| {
        let schema = Some(OutputSchema::parse("s", schema).unwrap());
        let request = ModelRequest { schema, ..ModelRequest::ask(card.model.clone(), "?", 9) };
        let encoded = encode(provider, &card, &request, ReplyDelivery::Whole).unwrap();
        body(&encoded)["response_format"]["json_schema"]["strict"].clone()
    };
    let complete = r#"{"type":"object","properties":{"a":{}},"required":["a"]}"#;
    let optional = r#"{"type":"object","properties":{"a":{}}}"#;
    assert_eq!(strict(&provider, complete), json!(true));
    assert_eq!(strict(&provider, optional), json!(false));
    provider.schema = SchemaForm::Full;
    assert_eq!(strict(&provider, optional), json!(true));
}

#[test]
fn each_wire_format_has_its_own_key_header() {
    let schemes = WIRES.map(|wire| endpoint(wire).auth);
    assert_eq!(schemes, [AuthScheme::Bearer, AuthScheme::XApiKey, AuthScheme::Bearer]);
}

#[track_caller]
fn check_window(prompt_letters: usize, max_tokens: u32, context: Option<u64>, expected: u64) {
    let (provider, card) = able(WireFormat::OllamaChat);
    let card = ModelCard { context, ..card };
    let request = ModelRequest::ask(card.model.clone(), "a".repeat(prompt_letters), max_tokens);
    let encoded = encode(&provider, &card, &request, ReplyDelivery::Whole).unwrap();
    let sent = body(&encoded)["options"]["num_ctx"].as_u64();
    assert_eq!((encoded.window, sent), (Some(expected), Some(expected)));
}

#[test]
fn ollama_is_given_a_window_in_steps_that_fits_the_request_and_the_model() {
    check_window(10, 100, None, 4096);
    // 4,000 letters are about 1,040 tokens; 1,340 with framing and a margin of 25 %.
    check_window(4000, 2756, None, 4096);
    check_window(4000, 2757, None, 8192);
    check_window(100_000, 1000, None, 36_864);
    check_window(100_000, 1000, Some(32_768), 32_768);
    check_window(10, u32::MAX, Some(40_960), 40_960);
}

#[track_caller]
fn check(wire: WireFormat, body: &str, expected: RawReply) {
    assert_eq!(decode(wire, 200, None, body.as_bytes()), Ok(expected));
}

fn answer(text: &str, stop: RawStopReason, usage: Option<TokenUsage>, model: &str) -> RawReply {
    RawReply { text: text.to_owned(), stop, usage, model: Some(model.to_owned()) }
}

#[test]
fn a_whole_answer_of_openai_is_read() {
    check(
        WireFormat::OpenAiChat,
        r#"{
          "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion", "created": 1762000000,
          "model": "gpt-6-luna-2026-08-07",
          "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": "Forty-two.\n\u00c9t\u00e9 \ud83e\udd80", "refusal": null, "annotations": []},
            "logprobs": null, "finish_reason": "stop"
          }],
          "usage": {
            "prompt_tokens": 2006, "completion_tokens": 300, "total_tokens": 2306,
            "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 256, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
          },
          "service_tier": "default", "system_fingerprint": "fp_44709d6fcb"
        }"#,
        answer(
            "Forty-two.\nÉté 🦀",
            RawStopReason::End,
            Some(TokenUsage {
                input: 86,
                cache_read: 1920,
                output: 300,
                reasoning: 256,
                ..TokenUsage::default()
            }),
            "gpt-6-luna-2026-08-07",
        ),
    );
}

#[test]
fn an_openai_refusal_with_a_normal_stop_is_a_refusal() {
    check(
        WireFormat::OpenAiChat,
        r#"{
          "id": "chatcmpl-1", "object": "chat.completion", "created": 1762000000, "model": "gpt-4.1-mini-2025-04-14",
          "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": null, "refusal": "I'm sorry, I cannot assist with that request.", "annotations": []},
            "logprobs": null, "finish_reason": "stop"
          }],
          "usage": {
            "prompt_tokens": 81, "completion_tokens": 11, "total_tokens": 92,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}
          }
        }"#,
        answer(
            "I'm sorry, I cannot assist with that request.",
            RawStopReason::Refusal,
            Some(TokenUsage { input: 81, output: 11, ..TokenUsage::default() }),
            "gpt-4.1-mini-2025-04-14",
        ),
    );
}

#[test]
fn google_reasoning_tokens_count_as_output() {
    // Google excludes reasoning from `completion_tokens`, bills it as output, and includes it only
    // in the total.
    check(
        WireFormat::OpenAiChat,
        r#"{
          "choices": [{"finish_reason": "stop", "index": 0, "message": {"content": "36", "role": "assistant"}}],
          "created": 1762000000, "id": "0f4HaYHkL", "model": "gemini-3.1-flash-lite", "object": "chat.completion",
          "usage": {"completion_tokens": 198, "prompt_tokens": 20, "total_tokens": 623}
        }"#,
        answer(
            "36",
            RawStopReason::End,
            Some(TokenUsage { input: 20, output: 603, ..TokenUsage::default() }),
            "gemini-3.1-flash-lite",
        ),
    );
}

#[test]
fn a_whole_answer_of_groq_is_read() {
    check(
        WireFormat::OpenAiChat,
        r#"{
          "id": "chatcmpl-34a9110d-c39d-423b-9ab9-9c748747b204", "object": "chat.completion", "created": 1762000000,
          "model": "openai/gpt-oss-20b", "system_fingerprint": "fp_dbffcd8265",
          "choices": [{
            "index": 0, "message": {"role": "assistant", "content": "Low latency", "reasoning": "The user asks."},
            "finish_reason": "length", "logprobs": null
          }],
          "usage": {
            "queue_time": 0.0376, "prompt_tokens": 18, "prompt_time": 0.00068, "completion_tokens": 64,
            "completion_time": 0.463, "total_tokens": 82, "total_time": 0.464,
            "completion_tokens_details": {"reasoning_tokens": 40}
          },
          "x_groq": {"id": "req_01jbd6g2qdfw2adyrt2az8hz4w"}, "service_tier": "on_demand"
        }"#,
        answer(
            "Low latency",
            RawStopReason::MaxTokens,
            Some(TokenUsage { input: 18, output: 64, reasoning: 40, ..TokenUsage::default() }),
            "openai/gpt-oss-20b",
        ),
    );
}

#[test]
fn a_whole_answer_of_openrouter_is_read() {
    check(
        WireFormat::OpenAiChat,
        r#"{
          "id": "gen-1762000000-abc", "provider": "Anthropic", "model": "anthropic/claude-haiku-5.5", "object": "chat.completion", "created": 1762000000,
          "choices": [{
            "logprobs": null, "finish_reason": "stop", "native_finish_reason": "end_turn", "index": 0,
            "message": {"role": "assistant", "content": "Done.", "refusal": null, "reasoning": null}
          }],
          "usage": {
            "prompt_tokens": 5200, "completion_tokens": 7, "total_tokens": 5207, "cost": 0.00071, "is_byok": false,
            "prompt_tokens_details": {"cached_tokens": 4100, "cache_write_tokens": 1000, "audio_tokens": 0, "video_tokens": 0},
            "cost_details": {"upstream_inference_cost": null},
            "completion_tokens_details": {"reasoning_tokens": 0, "image_tokens": 0}
          }
        }"#,
        answer(
            "Done.",
            RawStopReason::End,
            Some(TokenUsage {
                input: 100,
                cache_read: 4100,
                cache_write_5m: 1000,
                output: 7,
                ..TokenUsage::default()
            }),
            "anthropic/claude-haiku-5.5",
        ),
    );
}

#[test]
fn a_whole_answer_of_anthropic_is_read_without_its_thinking() {
    check(
        WireFormat::AnthropicMessages,
        r#"{
          "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "model": "claude-haiku-5-5",
          "content": [
            {"type": "thinking", "thinking": "They want a number.", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"},
            {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
            {"type": "text", "text": "Forty-"},
            {"type": "text", "text": "two.", "citations": null}
          ],
          "stop_reason": "end_turn", "stop_sequence": null, "stop_details": null,
          "usage": {
            "input_tokens": 12, "cache_creation_input_tokens": 700, "cache_read_input_tokens": 4096,
            "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 500},
            "output_tokens": 90, "output_tokens_details": {"thinking_tokens": 80},
            "service_tier": "standard", "server_tool_use": null
          }
        }"#,
        answer(
            "Forty-two.",
            RawStopReason::End,
            Some(TokenUsage {
                input: 12,
                cache_read: 4096,
                cache_write_5m: 200,
                cache_write_1h: 500,
                output: 90,
                reasoning: 80,
            }),
            "claude-haiku-5-5",
        ),
    );
}

#[test]
fn a_refusal_of_anthropic_is_a_refusal() {
    check(
        WireFormat::AnthropicMessages,
        r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"I can't"}],
            "stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#,
        answer(
            "I can't",
            RawStopReason::Refusal,
            Some(TokenUsage { input: 9, output: 3, ..TokenUsage::default() }),
            "claude-opus-5-5",
        ),
    );
}

#[test]
fn a_whole_answer_of_ollama_is_read_without_its_thinking() {
    check(
        WireFormat::OllamaChat,
        r#"{
          "model": "qwen3", "created_at": "2026-11-15T02:00:00.123456789Z",
          "message": {"role": "assistant", "content": "Forty-two.", "thinking": "Okay, the user wants a number."},
          "done": true, "done_reason": "stop", "total_duration": 4883583458, "load_duration": 1334875,
          "prompt_eval_count": 26, "prompt_eval_duration": 342546000, "eval_count": 282, "eval_duration": 4535599000
        }"#,
        answer(
            "Forty-two.",
            RawStopReason::End,
            Some(TokenUsage { input: 26, output: 282, ..TokenUsage::default() }),
            "qwen3",
        ),
    );
}

#[test]
fn an_answer_of_ollama_without_all_counts_has_no_usage() {
    check(
        WireFormat::OllamaChat,
        r#"{"model":"qwen3","message":{"role":"assistant","content":"a"},"done":true,"done_reason":"length","eval_count":1}"#,
        answer("a", RawStopReason::MaxTokens, None, "qwen3"),
    );
}

#[test]
fn stop_reasons_of_every_wire_format_are_recognised() {
    let openai = |word: &str| {
        format!(r#"{{"choices":[{{"message":{{"content":"a"}},"finish_reason":"{word}"}}]}}"#)
    };
    let anthropic = |word: &str| {
        format!(r#"{{"content":[{{"type":"text","text":"a"}}],"stop_reason":"{word}"}}"#)
    };
    let ollama = |word: &str| {
        format!(r#"{{"message":{{"content":"a"}},"done":true,"done_reason":"{word}"}}"#)
    };
    for (wire, body, expected) in [
        (WireFormat::OpenAiChat, openai("stop"), RawStopReason::End),
        (WireFormat::OpenAiChat, openai("length"), RawStopReason::MaxTokens),
        (WireFormat::OpenAiChat, openai("content_filter"), RawStopReason::Refusal),
        (WireFormat::OpenAiChat, openai("tool_calls"), RawStopReason::Other),
        (WireFormat::AnthropicMessages, anthropic("end_turn"), RawStopReason::End),
        (WireFormat::AnthropicMessages, anthropic("stop_sequence"), RawStopReason::End),
        (WireFormat::AnthropicMessages, anthropic("max_tokens"), RawStopReason::MaxTokens),
        (
            WireFormat::AnthropicMessages,
            anthropic("model_context_window_exceeded"),
            RawStopReason::MaxTokens,
        ),
        (WireFormat::AnthropicMessages, anthropic("refusal"), RawStopReason::Refusal),
        (WireFormat::AnthropicMessages, anthropic("pause_turn"), RawStopReason::Other),
        (WireFormat::OllamaChat, ollama("stop"), RawStopReason::End),
        (WireFormat::OllamaChat, ollama("length"), RawStopReason::MaxTokens),
        (WireFormat::OllamaChat, ollama("unload"), RawStopReason::Other),
    ] {
        let expected = RawReply { text: "a".to_owned(), stop: expected, usage: None, model: None };
        check(wire, &body, expected);
    }
}

#[track_caller]
fn check_fails(wire: WireFormat, body: &str, expected: FailureKind) {
    let failure = decode(wire, 200, None, body.as_bytes()).unwrap_err();
    assert_eq!((failure.kind, failure.status), (expected, Some(200)), "{body}: {failure}");
}

#[test]
fn a_body_in_another_format_is_malformed() {
    for wire in WIRES {
        for body in [
            "",
            "null",
            "{}",
            "[]",
            "\"text\"",
            "<html><body>Welcome</body></html>",
            r#"{"choices": [{"message": {"content": "cut of"#,
        ] {
            check_fails(wire, body, FailureKind::Malformed);
        }
    }
    check_fails(WireFormat::OpenAiChat, r#"{"choices":[]}"#, FailureKind::Malformed);
    check_fails(
        WireFormat::OpenAiChat,
        r#"{"choices":[{"message":{"content":"a"},"finish_reason":null}]}"#,
        FailureKind::Malformed,
    );
    check_fails(
        WireFormat::AnthropicMessages,
        r#"{"content":[{"type":"text","text":"a"}],"stop_reason":null}"#,
        FailureKind::Malformed,
    );
    check_fails(
        WireFormat::OllamaChat,
        r#"{"message":{"content":"a"},"done":false}"#,
        FailureKind::Malformed,
    );
}

#[test]
fn an_error_with_a_good_status_is_still_an_error() {
    check_fails(
        WireFormat::OpenAiChat,
        r#"{"error":{"message":"Provider returned error","code":502}}"#,
        FailureKind::Server,
    );
    check_fails(
        WireFormat::AnthropicMessages,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        FailureKind::Overloaded,
    );
    check_fails(
        WireFormat::OllamaChat,
        r#"{"error":"llama runner process has terminated"}"#,
        FailureKind::Server,
    );
}

#[test]
fn an_answer_that_ended_in_an_upstream_error_is_a_failure() {
    // OpenRouter reports a failed upstream provider in the choice, beside a partial text.
    check_fails(
        WireFormat::OpenAiChat,
        r#"{"id":"gen-1","choices":[{"index":0,"message":{"role":"assistant","content":"The plan"},"finish_reason":"error",
            "native_finish_reason":"error","error":{"code":502,"message":"Upstream idle timeout exceeded"}}]}"#,
        FailureKind::Server,
    );
}
