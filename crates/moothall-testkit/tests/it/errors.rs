//! Faults that cause an error response: the same for unary and streamed calls, and never billed.

use std::time::{Duration, SystemTime};

use moothall_testkit::{ProviderFault, ProviderProtocol, ProviderStats, ReplyUsage, RetryAfter};
use serde_json::{Value, json};

use crate::client::{Mode, ask_once};

async fn check(fault: ProviderFault, expected: [(u16, Value); 3]) {
    for (wire, (status, body)) in ProviderProtocol::ALL.into_iter().zip(expected) {
        for mode in [Mode::Unary, Mode::Streamed] {
            let (answer, stats) = ask_once(fault.clone(), wire, mode).await;
            assert_eq!(
                (answer.status(), answer.json()),
                (status, body.clone()),
                "{wire:?} {mode:?}"
            );
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(
                stats,
                ProviderStats {
                    received: 1,
                    answered: 1,
                    max_concurrent: 1,
                    billed: ReplyUsage::ZERO,
                    ..ProviderStats::default()
                }
            );
        }
    }
}

fn openai(message: &str, kind: &str, param: Value, code: Value) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

fn anthropic(kind: &str, message: &str) -> Value {
    json!({
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": "req_00000000000000000000",
    })
}

#[tokio::test]
async fn a_rate_limit_is_429_on_every_wire() {
    check(
        ProviderFault::RateLimited { retry_after: None },
        [
            (
                429,
                openai(
                    "Rate limit reached for requests. Please try again later.",
                    "requests",
                    Value::Null,
                    json!("rate_limit_exceeded"),
                ),
            ),
            (
                429,
                anthropic(
                    "rate_limit_error",
                    "This request would exceed your organization's rate limit.",
                ),
            ),
            (429, json!({"error": "too many requests"})),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_server_error_is_500_on_every_wire() {
    check(
        ProviderFault::ServerError,
        [
            (
                500,
                openai(
                    "The server had an error while processing your request. Sorry about that!",
                    "server_error",
                    Value::Null,
                    Value::Null,
                ),
            ),
            (500, anthropic("api_error", "Internal server error")),
            (500, json!({"error": "an error was encountered while running the model"})),
        ],
    )
    .await;
}

#[tokio::test]
async fn overload_is_529_only_on_the_anthropic_wire() {
    check(
        ProviderFault::Overloaded,
        [
            (
                503,
                openai(
                    "The engine is currently overloaded, please try again later.",
                    "server_error",
                    Value::Null,
                    Value::Null,
                ),
            ),
            (529, anthropic("overloaded_error", "Overloaded")),
            (503, json!({"error": "server busy, please try again.  maximum pending requests exceeded"})),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_wrong_key_is_401_on_every_wire() {
    check(
        ProviderFault::Unauthorized,
        [
            (
                401,
                openai(
                    "Incorrect API key provided.",
                    "invalid_request_error",
                    Value::Null,
                    json!("invalid_api_key"),
                ),
            ),
            (401, anthropic("authentication_error", "invalid x-api-key")),
            (401, json!({"error": "unauthorized"})),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_context_overflow_is_400_and_names_both_sizes_on_every_wire() {
    check(
        ProviderFault::ContextOverflow { window: 8192 },
        [
            (
                400,
                openai(
                    "This model's maximum context length is 8192 tokens. However, your messages resulted in 8193 tokens. \
                     Please reduce the length of the messages.",
                    "invalid_request_error",
                    json!("messages"),
                    json!("context_length_exceeded"),
                ),
            ),
            (400, anthropic("invalid_request_error", "prompt is too long: 8193 tokens > 8192 maximum")),
            (
                400,
                json!({"error": "request (8193 tokens) exceeds the available context size (8192 tokens), try increasing it"}),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_rate_limit_has_a_retry_after_in_the_requested_format() {
    let date = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    for (retry_after, name, value) in [
        (RetryAfter::Seconds(7), "retry-after", "7"),
        (RetryAfter::Milliseconds(250), "retry-after-ms", "250"),
        (RetryAfter::Date(date), "retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ] {
        for wire in ProviderProtocol::ALL {
            let fault = ProviderFault::RateLimited { retry_after: Some(retry_after) };
            let (answer, _) = ask_once(fault, wire, Mode::Unary).await;
            assert_eq!(answer.header(name), Some(value), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn the_request_id_is_in_the_header_of_each_provider() {
    let id = Some("req_00000000000000000000");
    for fault in [None, Some(ProviderFault::ServerError)] {
        let behaviour =
            fault.map_or_else(Default::default, moothall_testkit::ProviderBehaviour::from);
        let header = async |wire, name| {
            let (answer, _) = ask_once(behaviour.clone(), wire, Mode::Unary).await;
            answer.header(name).map(str::to_owned)
        };
        assert_eq!(header(ProviderProtocol::OpenAi, "x-request-id").await.as_deref(), id);
        assert_eq!(header(ProviderProtocol::Anthropic, "request-id").await.as_deref(), id);
        assert_eq!(header(ProviderProtocol::Ollama, "x-request-id").await, None);
    }
}
