use proptest::prelude::*;

use super::*;

const OPENAI: &str = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1762000000,"model":"gpt-6-luna","service_tier":"default","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x9"}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1762000000,"model":"gpt-6-luna","choices":[{"index":0,"delta":{"content":"Forty-two,"},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1762000000,"model":"gpt-6-luna","choices":[{"index":0,"delta":{"content":" né en \u00e9t\u00e9 \ud83e\udd80 🦀\n"},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1762000000,"model":"gpt-6-luna","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1762000000,"model":"gpt-6-luna","choices":[],"usage":{"prompt_tokens":240,"completion_tokens":9,"total_tokens":249,"prompt_tokens_details":{"cached_tokens":200},"completion_tokens_details":{"reasoning_tokens":4}}}

data: [DONE]

"#;

/// Comments while the model loads, then a refusal.
const OPENROUTER: &str = r#": OPENROUTER PROCESSING

: OPENROUTER PROCESSING

data: {"id":"gen-1","provider":"OpenAI","model":"openai/gpt-4.1-mini","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":"I'm sorry,"},"finish_reason":null,"native_finish_reason":null}]}

data: {"id":"gen-1","provider":"OpenAI","model":"openai/gpt-4.1-mini","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":" no."},"finish_reason":null,"native_finish_reason":null}]}

data: {"id":"gen-1","provider":"OpenAI","model":"openai/gpt-4.1-mini","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop","native_finish_reason":"stop"}]}

data: {"id":"gen-1","provider":"OpenAI","model":"openai/gpt-4.1-mini","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":30,"completion_tokens":5,"total_tokens":35,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":10}}}

data: [DONE]

"#;

/// Usage in every chunk, of which the last one counts; reasoning only in the total; no `[DONE]`.
const GOOGLE: &str = r#"data: {"choices":[{"delta":{"content":"The sum","role":"assistant"},"index":0}],"created":1762000000,"id":"x","model":"gemini-3.1-flash-lite","object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":20,"total_tokens":100}}

data: {"choices":[{"delta":{"content":" is 36.","role":"assistant"},"finish_reason":"stop","index":0}],"created":1762000000,"id":"x","model":"gemini-3.1-flash-lite","object":"chat.completion.chunk","usage":{"completion_tokens":6,"prompt_tokens":20,"total_tokens":104}}

"#;

const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-haiku-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":4096,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},"output_tokens":1,"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"A number."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCg=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Forty-"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"two \"é\" \ud83e\udd80"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":90,"output_tokens_details":{"thinking_tokens":80}}}

event: message_stop
data: {"type":"message_stop"}

"#;

const OLLAMA: &str = r#"{"model":"qwen3","created_at":"2026-11-15T02:00:00Z","message":{"role":"assistant","content":"","thinking":"Okay."},"done":false}
{"model":"qwen3","created_at":"2026-11-15T02:00:00Z","message":{"role":"assistant","content":"Forty-two, "},"done":false}
{"model":"qwen3","created_at":"2026-11-15T02:00:01Z","message":{"role":"assistant","content":"n\u00e9 en été 🦀"},"done":false}
{"model":"qwen3","created_at":"2026-11-15T02:00:01Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":5,"load_duration":1,"prompt_eval_count":26,"prompt_eval_duration":2,"eval_count":9,"eval_duration":2}
"#;

const STREAMS: [(WireFormat, &str); 5] = [
    (WireFormat::OpenAiChat, OPENAI),
    (WireFormat::OpenAiChat, OPENROUTER),
    (WireFormat::OpenAiChat, GOOGLE),
    (WireFormat::AnthropicMessages, ANTHROPIC),
    (WireFormat::OllamaChat, OLLAMA),
];

/// The result of a stream: the streamed text and the reply.
#[derive(Debug, PartialEq)]
struct Heard {
    text: String,
    answer: Result<RawReply, ModelFailure>,
}

fn hear<'a>(wire: WireFormat, pieces: impl IntoIterator<Item = &'a [u8]>) -> Heard {
    let mut decoder = StreamDecoder::new(wire);
    let mut text = String::new();
    for piece in pieces {
        if let Err(failure) = decoder.push(piece, &mut |piece| text.push_str(piece)) {
            return Heard { text, answer: Err(failure) };
        }
    }
    Heard { text, answer: decoder.finish() }
}

fn hear_whole(wire: WireFormat, stream: &str) -> Heard {
    hear(wire, [stream.as_bytes()])
}

#[track_caller]
fn check(wire: WireFormat, stream: &str, expected: RawReply) {
    // The text of a refusal is reported afterwards as the reason and never streamed.
    let text = match expected.stop {
        RawStopReason::Refusal => String::new(),
        RawStopReason::End | RawStopReason::MaxTokens | RawStopReason::Other => {
            expected.text.clone()
        }
    };
    assert_eq!(hear_whole(wire, stream), Heard { text, answer: Ok(expected) });
}

fn answer(text: &str, stop: RawStopReason, usage: TokenUsage, model: &str) -> RawReply {
    RawReply { text: text.to_owned(), stop, usage: Some(usage), model: Some(model.to_owned()) }
}

#[test]
fn streams_of_all_wires_are_read() {
    let usage = TokenUsage::default();
    check(
        WireFormat::OpenAiChat,
        OPENAI,
        answer(
            "Forty-two, né en été 🦀 🦀\n",
            RawStopReason::End,
            TokenUsage { input: 40, cache_read: 200, output: 9, reasoning: 4, ..usage },
            "gpt-6-luna",
        ),
    );
    check(
        WireFormat::OpenAiChat,
        OPENROUTER,
        answer(
            "I'm sorry, no.",
            RawStopReason::Refusal,
            TokenUsage { input: 20, cache_write_5m: 10, output: 5, ..usage },
            "openai/gpt-4.1-mini",
        ),
    );
    check(
        WireFormat::OpenAiChat,
        GOOGLE,
        answer(
            "The sum is 36.",
            RawStopReason::End,
            TokenUsage { input: 20, output: 84, ..usage },
            "gemini-3.1-flash-lite",
        ),
    );
    check(
        WireFormat::AnthropicMessages,
        ANTHROPIC,
        answer(
            "Forty-two \"é\" 🦀",
            RawStopReason::End,
            TokenUsage {
                input: 12,
                cache_read: 4096,
                cache_write_5m: 100,
                cache_write_1h: 200,
                output: 90,
                reasoning: 80,
            },
            "claude-haiku-5-5",
        ),
    );
    check(
        WireFormat::OllamaChat,
        OLLAMA,
        answer(
            "Forty-two, né en été 🦀",
            RawStopReason::End,
            TokenUsage { input: 26, output: 9, ..usage },
            "qwen3",
        ),
    );
}

#[test]
fn chunk_boundaries_do_not_change_the_parsed_stream() {
    for (wire, stream) in STREAMS {
        let expected = hear_whole(wire, stream);
        let bytes = stream.as_bytes();
        for at in 0..=bytes.len() {
            let (front, back) = bytes.split_at(at);
            assert_eq!(hear(wire, [front, back]), expected, "{wire:?} cut at {at}");
        }
        assert_eq!(hear(wire, bytes.chunks(1)), expected, "{wire:?} byte by byte");
        assert_eq!(hear(wire, bytes.chunks(7)), expected, "{wire:?} in sevens");
    }
}

#[test]
fn carriage_returns_at_line_ends_make_no_difference() {
    for (wire, stream) in STREAMS {
        let expected = hear_whole(wire, stream);
        let stream = stream.replace('\n', "\r\n");
        assert_eq!(hear_whole(wire, &stream), expected, "{wire:?}");
        assert_eq!(hear(wire, stream.as_bytes().chunks(1)), expected, "{wire:?} byte by byte");
    }
}

#[test]
fn a_stream_that_stops_early_is_truncated_unless_the_answer_was_complete() {
    for (wire, stream) in STREAMS {
        let complete = hear_whole(wire, stream).answer.unwrap();
        for end in 0..stream.len() {
            let heard = hear(wire, [&stream.as_bytes()[..end]]);
            assert!(complete.text.starts_with(&heard.text), "{wire:?} ended at {end}");
            match heard.answer {
                // A refusal is recognized from its first word.
                Ok(RawReply { text, stop: RawStopReason::Refusal, .. }) => {
                    assert!(complete.text.starts_with(&text), "{wire:?} ended at {end}");
                    assert_eq!(complete.stop, RawStopReason::Refusal, "{wire:?} ended at {end}");
                }
                // A reply that ended early may lack only its usage.
                Ok(answer) => assert_eq!(
                    RawReply { usage: None, ..answer },
                    RawReply { usage: None, ..complete.clone() },
                    "{wire:?} ended at {end}"
                ),
                Err(failure) => {
                    assert_eq!(failure.kind, FailureKind::Truncated, "{wire:?} ended at {end}")
                }
            }
        }
    }
}

#[test]
fn an_empty_stop_reason_does_not_end_a_stream() {
    // Some compatible servers send "" instead of null. Taken as an end, it would make every broken
    // stream look complete.
    let stream =
        "data: {\"choices\":[{\"delta\":{\"content\":\"Half an\"},\"finish_reason\":\"\"}]}\n\n";
    let heard = hear_whole(WireFormat::OpenAiChat, stream);
    assert_eq!(heard.answer.map_err(|failure| failure.kind), Err(FailureKind::Truncated));
}

#[test]
fn multi_line_data_comments_and_empty_events_follow_the_sse_standard() {
    let stream = "\u{3a} a comment\n\
        :another\n\
        id: 7\n\
        retry: 100\n\
        data: {\"choices\":\n\
        data:[{\"delta\":{\"content\":\"one\"},\n\
        data\u{3a}  \"finish_reason\":\"stop\"}]}\n\
        \n\
        \n\
        data:\n\
        \n\
        data: \n\
        \n\
        event: ping\n\
        \n";
    check(
        WireFormat::OpenAiChat,
        stream,
        RawReply { text: "one".to_owned(), stop: RawStopReason::End, usage: None, model: None },
    );
}

#[test]
fn empty_lines_in_an_ollama_stream_are_skipped() {
    let stream = OLLAMA.replace('\n', "\n\n  \r\n");
    assert_eq!(
        hear_whole(WireFormat::OllamaChat, &stream),
        hear_whole(WireFormat::OllamaChat, OLLAMA)
    );
}

#[test]
fn invalid_utf8_is_malformed_in_every_delivery_mode() {
    // Replacement characters would look like the model's own text.
    let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"},\"finish_reason\":\"stop\"}]}\n\n";
    let heard = hear(WireFormat::OpenAiChat, [event.as_slice()]);
    assert_eq!(heard.answer.map_err(|failure| failure.kind), Err(FailureKind::Malformed));
    let whole =
        b"{\"choices\":[{\"message\":{\"content\":\"\xff\xfe\"},\"finish_reason\":\"stop\"}]}";
    let decoded = decode(WireFormat::OpenAiChat, 200, None, whole);
    assert_eq!(decoded.map_err(|failure| failure.kind), Err(FailureKind::Malformed));
}

const MIB: usize = 1024 * 1024;

#[track_caller]
fn check_refused<'a>(wire: WireFormat, pieces: impl IntoIterator<Item = &'a [u8]>, detail: &str) {
    let failure = hear(wire, pieces).answer.unwrap_err();
    assert_eq!(failure, ModelFailure::new(FailureKind::Malformed, detail), "{wire:?}");
}

#[test]
fn a_line_without_an_end_is_refused() {
    let long = vec![b'a'; 17 * MIB];
    for (wire, _) in STREAMS {
        check_refused(wire, [long.as_slice()], "the provider sent a line longer than 16 MiB");
        check_refused(wire, long.chunks(MIB), "the provider sent a line longer than 16 MiB");
    }
}

#[test]
fn an_event_without_an_end_is_refused() {
    let line = format!("data: {}\n", "a".repeat(MIB));
    let lines = std::iter::repeat_n(line.as_bytes(), 17);
    check_refused(WireFormat::OpenAiChat, lines, "the provider sent a line longer than 16 MiB");
}

#[test]
fn a_text_without_an_end_is_refused() {
    let words = "a".repeat(MIB);
    for (wire, piece) in [
        (
            WireFormat::OpenAiChat,
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{words}\"}}}}]}}\n\n"),
        ),
        (
            WireFormat::OpenAiChat,
            format!("data: {{\"choices\":[{{\"delta\":{{\"refusal\":\"{words}\"}}}}]}}\n\n"),
        ),
        (
            WireFormat::AnthropicMessages,
            format!(
                "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"text_delta\",\"text\":\"{words}\"}}}}\n\n"
            ),
        ),
        (
            WireFormat::OllamaChat,
            format!("{{\"message\":{{\"content\":\"{words}\"}},\"done\":false}}\n"),
        ),
    ] {
        let pieces = std::iter::repeat_n(piece.as_bytes(), 17);
        check_refused(wire, pieces, "the reply is larger than 16384 KiB");
    }
}

/// An error after the first words of a reply.
#[track_caller]
fn check_breaks(wire: WireFormat, error: &str, expected: FailureKind, detail: &str) {
    let (first, error) = match wire {
        WireFormat::OpenAiChat => (
            "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\n",
            format!("data: {error}\n\n"),
        ),
        WireFormat::AnthropicMessages => (
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Half\"}}\n\n",
            format!("event: error\ndata: {error}\n\n"),
        ),
        WireFormat::OllamaChat => {
            ("{\"message\":{\"content\":\"Half\"},\"done\":false}\n", format!("{error}\n"))
        }
    };
    let heard = hear(wire, [first.as_bytes(), error.as_bytes()]);
    let expected =
        Heard { text: "Half".to_owned(), answer: Err(ModelFailure::new(expected, detail)) };
    assert_eq!(heard, expected, "{wire:?} {error}");
}

#[test]
fn an_error_within_a_stream_is_classified_by_its_content() {
    check_breaks(
        WireFormat::AnthropicMessages,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        FailureKind::Overloaded,
        "Overloaded",
    );
    check_breaks(
        WireFormat::AnthropicMessages,
        r#"{"type":"error","error":{"details":null,"type":"api_error","message":"Internal server error"},"request_id":"req_1"}"#,
        FailureKind::Server,
        "Internal server error",
    );
    check_breaks(
        WireFormat::AnthropicMessages,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Number of tokens has exceeded your limit"}}"#,
        FailureKind::RateLimited,
        "Number of tokens has exceeded your limit",
    );
    check_breaks(
        WireFormat::OpenAiChat,
        r#"{"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}"#,
        FailureKind::Server,
        "The server had an error while processing your request.",
    );
    // OpenRouter: the code is the status of the upstream provider, and the choice reports the
    // failure.
    check_breaks(
        WireFormat::OpenAiChat,
        r#"{"id":"gen-1","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":429,"message":"Provider returned error"}}"#,
        FailureKind::RateLimited,
        "Provider returned error",
    );
    // Groq and others report it only in the code, as a string.
    check_breaks(
        WireFormat::OpenAiChat,
        r#"{"error":{"message":"Please try again in 2 s","type":"tokens","code":"rate_limit_exceeded"}}"#,
        FailureKind::RateLimited,
        "Please try again in 2 s",
    );
    // llama.cpp, whose errors have the same format in every API.
    for wire in [WireFormat::OpenAiChat, WireFormat::AnthropicMessages, WireFormat::OllamaChat] {
        check_breaks(
            wire,
            r#"{"error":{"code":400,"message":"request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9031,"n_ctx":8192}}"#,
            FailureKind::ContextOverflow,
            "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it",
        );
    }
    for wire in [WireFormat::OpenAiChat, WireFormat::AnthropicMessages, WireFormat::OllamaChat] {
        check_breaks(
            wire,
            r#"{"error":"an error was encountered while running the model: unexpected EOF"}"#,
            FailureKind::Server,
            "an error was encountered while running the model: unexpected EOF",
        );
    }
    check_breaks(
        WireFormat::OllamaChat,
        r#"{"error":"server busy, please try again.  maximum pending requests exceeded; overloaded"}"#,
        FailureKind::Overloaded,
        "server busy, please try again.  maximum pending requests exceeded; overloaded",
    );
    check_breaks(
        WireFormat::OpenAiChat,
        r#"{"error":{}}"#,
        FailureKind::Server,
        "the provider reported an error without a message",
    );
}

#[test]
fn an_html_page_instead_of_a_stream_is_never_an_answer() {
    let page = "<html>\n<body>data: soon</body>\n</html>\n\n";
    for (wire, expected) in [
        (WireFormat::OpenAiChat, FailureKind::Truncated),
        (WireFormat::AnthropicMessages, FailureKind::Truncated),
        (WireFormat::OllamaChat, FailureKind::Malformed),
    ] {
        let heard = hear_whole(wire, page);
        assert_eq!(heard.answer.map_err(|failure| failure.kind), Err(expected), "{wire:?}");
    }
}

fn wires() -> impl Strategy<Value = WireFormat> {
    prop::sample::select(vec![
        WireFormat::OpenAiChat,
        WireFormat::AnthropicMessages,
        WireFormat::OllamaChat,
    ])
}

/// Small damage as caused by networks and faulty servers.
#[derive(Debug, Clone)]
enum Damage {
    Set(prop::sample::Index, u8),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    Insert(prop::sample::Index, &'static str),
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let at = || any::<prop::sample::Index>();
    let words = vec!["null", "{", "}", "\"", "\\", "\n", "\n\n", "data: ", "[DONE]", "1e999", "-1"];
    let damage = prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (at(), 1..40_usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        (at(), 1..40_usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
        (at(), prop::sample::select(words)).prop_map(|(at, text)| Damage::Insert(at, text)),
    ];
    prop::collection::vec(damage, 1..6)
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let place = |at: &prop::sample::Index| at.index(bytes.len().max(1)).min(bytes.len());
        let until = |from: usize, length: usize| (from + length).min(bytes.len());
        match damage {
            Damage::Set(at, byte) => {
                let at = place(at);
                if let Some(old) = bytes.get_mut(at) {
                    *old = *byte;
                }
            }
            Damage::Remove(at, length) => {
                let from = place(at);
                bytes.drain(from..until(from, *length));
            }
            Damage::Repeat(at, length) => {
                let from = place(at);
                let part = bytes[from..until(from, *length)].to_vec();
                bytes.splice(from..from, part);
            }
            Damage::Insert(at, text) => {
                let from = place(at);
                bytes.splice(from..from, text.bytes());
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_read_without_a_panic(
        wire in wires(),
        status in 100..600_u16,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cut in 1..50_usize,
    ) {
        let _ = decode(wire, status, None, &bytes);
        let _ = hear(wire, bytes.chunks(cut));
    }

    #[test]
    fn damaged_streams_are_parsed_the_same_for_any_chunking(
        stream in prop::sample::select(STREAMS.to_vec()),
        damages in damages(),
        cut in 1..200_usize,
    ) {
        let (wire, stream) = stream;
        let bytes = damaged(stream.as_bytes().to_vec(), &damages);
        let whole = hear(wire, [bytes.as_slice()]);
        let cut = hear(wire, bytes.chunks(cut));
        prop_assert_eq!(&cut, &whole);
        if let Ok(answer) = &whole.answer && answer.stop != RawStopReason::Refusal {
            prop_assert_eq!(&answer.text, &whole.text);
        }
    }

    #[test]
    fn damaged_answers_are_read_without_a_panic(
        stream in prop::sample::select(STREAMS.to_vec()),
        line in any::<prop::sample::Index>(),
        damages in damages(),
        status in prop::sample::select(vec![200_u16, 400, 429, 500]),
    ) {
        // Every message of a stream is also a JSON document that a faulty server could send as a
        // complete reply.
        let (wire, stream) = stream;
        let lines: Vec<_> = stream.lines().filter(|line| line.contains('{')).collect();
        let line = lines[line.index(lines.len())].trim_start_matches("data: ");
        let _ = decode(wire, status, None, &damaged(line.as_bytes().to_vec(), &damages));
    }
}
