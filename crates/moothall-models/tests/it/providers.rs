//! The contract with each built-in provider: what it receives, and what its documented responses
//! mean. The fixtures in `providers/NAME` follow the public documentation of the vendor and are
//! served by the fake provider over HTTP.

use std::collections::BTreeMap;

use moothall_core::model::{
    FailureKind, ModelRequest, PromptBlock, ReasoningEffort, StopReason, Temperature, TokenUsage,
    UsageBasis,
};
use moothall_models::settings::{ProviderSettings, RetrySettings};
use moothall_models::{
    ApiKey, CallReport, Catalog, Gateway, GatewayOptions, ProviderConnections, RecordingMode,
    RunLedger,
};
use moothall_testkit::{
    FakeProvider, ProviderBehaviour, ProviderCall, ProviderFault, RetryAfter, VerbatimResponse,
};
use serde_json::Value;

use crate::support::{Heard, KEY};

const TEXT: &str = "A moot hall is where a town settled its arguments.";

struct ProviderContract {
    name: &'static str,
    /// The provider's name for the model.
    model: &'static str,
    /// The path and query of a request.
    target: &'static str,
    /// The header with the key, and what precedes the key.
    key_header: (&'static str, &'static str),
    /// The body of a streamed request.
    request: &'static str,
    reply: &'static str,
    stream: &'static str,
    stream_type: &'static str,
    /// The model that the reply names.
    answered_by: &'static str,
    usage: TokenUsage,
    error: (u16, &'static str, FailureKind),
    /// A part of the message in the error.
    message: &'static str,
    rate_limit: (&'static str, Option<RetryAfter>),
}

macro_rules! fixture {
    ($provider:literal, $file:literal) => {
        include_str!(concat!("providers/", $provider, "/", $file))
    };
}

const SSE: &str = "text/event-stream";
const BEARER: (&str, &str) = ("authorization", "Bearer ");

/// 48 prompt tokens, of which 16 were read from the cache, and 30 output tokens.
const fn usage(cache_read: u64, cache_write_5m: u64, reasoning: u64) -> TokenUsage {
    TokenUsage {
        input: 48 - cache_read - cache_write_5m,
        cache_read,
        cache_write_5m,
        cache_write_1h: 0,
        output: 30,
        reasoning,
    }
}

fn desk(contract: &ProviderContract, server: &FakeProvider) -> Gateway {
    let mut catalog = Catalog::built_in().unwrap();
    let parts = ProviderSettings {
        resource: Some("acme".to_owned()),
        project: Some("acme-1".to_owned()),
        ..ProviderSettings::default()
    };
    let mut settings = BTreeMap::from([(contract.name.to_owned(), parts)]);
    catalog.configure(&settings).unwrap();
    // The provider's own path at the address of the fake one.
    let own = &catalog.provider(contract.name).unwrap().base_url;
    let path = own.splitn(4, '/').nth(3).map_or_else(String::new, |path| format!("/{path}"));
    let base_url = Some(format!("http://{}{path}", server.address()));
    settings.get_mut(contract.name).unwrap().base_url = base_url;
    catalog.configure(&settings).unwrap();
    let keys = [(contract.name.to_owned(), ApiKey::new(KEY.to_owned()).into())].into();
    let retry = RetrySettings { retries: 0, ..RetrySettings::default() };
    let (recording, connections) = (RecordingMode::Off, ProviderConnections::default());
    Gateway::new(GatewayOptions { catalog, keys, retry, recording, connections })
}

fn request(contract: &ProviderContract) -> ModelRequest {
    let model = format!("{}/{}", contract.name, contract.model).parse().unwrap();
    ModelRequest {
        system: vec![PromptBlock::new("You know the history of towns. ".repeat(4))],
        temperature: Temperature::from_thousandths(300),
        effort: Some(ReasoningEffort::Low),
        ..ModelRequest::ask(model, "What is a moot hall?", 200)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallMode {
    Whole,
    Streamed,
}

/// Makes one call, to which the fake provider answers as told.
async fn call(
    contract: &ProviderContract,
    delivery: CallMode,
    behaviour: ProviderBehaviour,
) -> (CallReport, Heard, Vec<std::sync::Arc<ProviderCall>>) {
    let server = FakeProvider::start().await.unwrap();
    server.always(behaviour);
    let gateway = desk(contract, &server);
    let mut heard = Heard::default();
    let listener = (delivery == CallMode::Streamed).then_some(&mut heard as _);
    let report = gateway.call(&request(contract), &RunLedger::unlimited(), listener).await;
    let calls = server.calls();
    (report, heard, calls)
}

fn verbatim(
    status: u16,
    content_type: &'static str,
    body: &str,
    retry_after: Option<RetryAfter>,
) -> ProviderBehaviour {
    let body = body.as_bytes().to_vec();
    ProviderFault::Verbatim(VerbatimResponse { status, content_type, retry_after, body }).into()
}

async fn encode(contract: &ProviderContract) {
    for delivery in [CallMode::Whole, CallMode::Streamed] {
        let (report, _, calls) = call(contract, delivery, ProviderBehaviour::text("hello")).await;
        report.result.unwrap();
        let [call] = &calls[..] else { panic!("{} calls", calls.len()) };
        assert_eq!(call.path(), contract.target);
        let (header, prefix) = contract.key_header;
        assert_eq!(call.header(header), Some(&*format!("{prefix}{KEY}")));
        let others = call.headers().into_iter().filter(|(_, value)| value.contains(KEY)).count();
        assert_eq!(others, 1, "the key is in one header");
        assert_eq!(call.header("content-type"), Some("application/json"));
        assert!(!call.raw_body().windows(KEY.len()).any(|part| part == KEY.as_bytes()));
        if delivery == CallMode::Streamed {
            let expected: Value = serde_json::from_str(contract.request).unwrap();
            assert_eq!(call.body(), expected);
        }
    }
}

async fn decode(contract: &ProviderContract) {
    let behaviour = verbatim(200, "application/json", contract.reply, None);
    let reply = call(contract, CallMode::Whole, behaviour).await.0.result.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop), (TEXT, StopReason::End));
    assert_eq!(reply.model, contract.answered_by);
}

async fn stream(contract: &ProviderContract) {
    let behaviour = verbatim(200, contract.stream_type, contract.stream, None);
    let (report, heard, _) = call(contract, CallMode::Streamed, behaviour).await;
    let reply = report.result.unwrap();
    assert_eq!((reply.text.as_str(), heard.text.as_str()), (TEXT, TEXT));
    assert_eq!(reply.stop, StopReason::End);
    assert_eq!(reply.model, contract.answered_by);
}

/// Regression: the answer of a server that ignores `stream` was called truncated, and the call was
/// repeated until the run paused.
async fn whole_reply_to_a_streamed_request(contract: &ProviderContract) {
    let behaviour = verbatim(200, "application/json; charset=utf-8", contract.reply, None);
    let (report, heard, _) = call(contract, CallMode::Streamed, behaviour).await;
    assert_eq!((report.result.unwrap().text.as_str(), heard.text.as_str()), (TEXT, TEXT));
}

/// Regression: a server that knows no `stream_options` could not be used from a terminal.
async fn stream_refused(contract: &ProviderContract) {
    let server = FakeProvider::start().await.unwrap();
    let reply = contract.reply.to_owned();
    server.respond_with(move |call| {
        if call.body().get("stream") == Some(&Value::Bool(true)) {
            let refusal = r#"{"error":{"message":"Unrecognized argument: stream_options","type":"invalid_request_error"}}"#;
            return verbatim(400, "application/json", refusal, None);
        }
        verbatim(200, "application/json", &reply, None)
    });
    let gateway = desk(contract, &server);
    // Only the first call meets the refusal.
    for requests_until_now in [2, 3] {
        let mut heard = Heard::default();
        let report =
            gateway.call(&request(contract), &RunLedger::unlimited(), Some(&mut heard as _)).await;
        assert_eq!((report.result.unwrap().text.as_str(), heard.text.as_str()), (TEXT, TEXT));
        assert_eq!((report.timing.tries, server.calls().len()), (1, requests_until_now));
    }
}

async fn usage_of_both(contract: &ProviderContract) {
    for (delivery, content_type, body) in [
        (CallMode::Whole, "application/json", contract.reply),
        (CallMode::Streamed, contract.stream_type, contract.stream),
    ] {
        let behaviour = verbatim(200, content_type, body, None);
        let reply = call(contract, delivery, behaviour).await.0.result.unwrap();
        assert_eq!((reply.usage, reply.usage_basis), (contract.usage, UsageBasis::Reported));
    }
}

async fn error(contract: &ProviderContract) {
    let (status, body, kind) = contract.error;
    for delivery in [CallMode::Whole, CallMode::Streamed] {
        let behaviour = verbatim(status, "application/json", body, None);
        let failure = call(contract, delivery, behaviour).await.0.result.unwrap_err();
        assert_eq!((failure.kind, failure.status), (kind, Some(status)), "{failure}");
        assert!(failure.detail.contains(contract.message), "{failure}");
    }
}

async fn rate_limit(contract: &ProviderContract) {
    let (body, retry_after) = contract.rate_limit;
    let expected = retry_after.map(|retry_after| match retry_after {
        RetryAfter::Seconds(seconds) => seconds * 1000,
        RetryAfter::Milliseconds(milliseconds) => milliseconds,
        RetryAfter::Date(_) => unreachable!("no fixture has a date"),
    });
    for delivery in [CallMode::Whole, CallMode::Streamed] {
        let behaviour = verbatim(429, "application/json", body, retry_after);
        let failure = call(contract, delivery, behaviour).await.0.result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::RateLimited, "{failure}");
        assert_eq!(failure.retry_after_ms, expected);
    }
}

/// One module for each provider, with one test for each part of the contract.
macro_rules! providers {
    ($($module:ident: $contract:expr;)+) => {
        $(mod $module {
            use super::*;

            const CONTRACT: ProviderContract = $contract;
            pub(super) const CONTRACT_NAME: &str = CONTRACT.name;

            #[tokio::test]
            async fn requests_are_encoded_as_documented() {
                super::encode(&CONTRACT).await;
            }

            #[tokio::test]
            async fn a_documented_reply_is_decoded() {
                super::decode(&CONTRACT).await;
            }

            #[tokio::test]
            async fn a_documented_stream_is_decoded() {
                super::stream(&CONTRACT).await;
            }

            #[tokio::test]
            async fn a_reply_that_is_not_streamed_is_decoded() {
                super::whole_reply_to_a_streamed_request(&CONTRACT).await;
            }

            #[tokio::test]
            async fn a_reply_is_requested_as_a_whole_if_streams_are_refused() {
                super::stream_refused(&CONTRACT).await;
            }

            #[tokio::test]
            async fn documented_usage_is_counted() {
                super::usage_of_both(&CONTRACT).await;
            }

            #[tokio::test]
            async fn a_documented_error_is_classified() {
                super::error(&CONTRACT).await;
            }

            #[tokio::test]
            async fn a_documented_rate_limit_is_recognized() {
                super::rate_limit(&CONTRACT).await;
            }
        })+

        const COVERED: &[&str] = &[$($module::CONTRACT_NAME),+];
    };
}

#[test]
fn every_built_in_provider_has_a_contract() {
    let catalog = Catalog::built_in().unwrap();
    let names: Vec<&str> = catalog.providers().map(|provider| provider.name.as_str()).collect();
    let mut covered = COVERED.to_vec();
    covered.sort_unstable();
    assert_eq!(covered, names);
    assert!(covered.len() >= 12);
}

providers! {
    anthropic: ProviderContract {
        name: "anthropic",
        model: "claude-haiku-5-5",
        target: "/v1/messages",
        key_header: ("x-api-key", ""),
        request: fixture!("anthropic", "request.json"),
        reply: fixture!("anthropic", "reply.json"),
        stream: fixture!("anthropic", "stream.txt"),
        stream_type: SSE,
        answered_by: "claude-haiku-5-5",
        usage: usage(16, 8, 0),
        error: (400, fixture!("anthropic", "error.json"), FailureKind::BadRequest),
        message: "at most 128000",
        rate_limit: (fixture!("anthropic", "rate_limit.json"), Some(RetryAfter::Seconds(3))),
    };
    openai: ProviderContract {
        name: "openai",
        model: "gpt-6-luna",
        target: "/v1/chat/completions",
        key_header: BEARER,
        request: fixture!("openai", "request.json"),
        reply: fixture!("openai", "reply.json"),
        stream: fixture!("openai", "stream.txt"),
        stream_type: SSE,
        answered_by: "gpt-6-luna-2026-09-22",
        usage: usage(16, 0, 12),
        error: (400, fixture!("openai", "error.json"), FailureKind::BadRequest),
        message: "Unsupported value",
        rate_limit: (fixture!("openai", "rate_limit.json"), Some(RetryAfter::Milliseconds(812))),
    };
    azure: ProviderContract {
        name: "azure",
        model: "gpt-5-mini",
        target: "/openai/v1/chat/completions",
        key_header: ("api-key", ""),
        request: fixture!("azure", "request.json"),
        reply: fixture!("azure", "reply.json"),
        stream: fixture!("azure", "stream.txt"),
        stream_type: SSE,
        answered_by: "gpt-5-mini-2025-08-07",
        usage: usage(16, 0, 12),
        error: (400, fixture!("azure", "error.json"), FailureKind::Refused),
        message: "content management policy",
        rate_limit: (fixture!("azure", "rate_limit.json"), Some(RetryAfter::Seconds(7))),
    };
    google: ProviderContract {
        name: "google",
        model: "gemini-3.1-flash-lite",
        target: "/v1beta/openai/chat/completions",
        key_header: BEARER,
        request: fixture!("google", "request.json"),
        reply: fixture!("google", "reply.json"),
        stream: fixture!("google", "stream.txt"),
        stream_type: SSE,
        answered_by: "gemini-3.1-flash-lite",
        usage: usage(0, 0, 0),
        error: (400, fixture!("google", "error.json"), FailureKind::Auth),
        message: "API key not valid",
        rate_limit: (fixture!("google", "rate_limit.json"), None),
    };
    vertex: ProviderContract {
        name: "vertex",
        model: "google/gemini-3.1-flash-lite",
        target: "/v1/projects/acme-1/locations/us-central1/endpoints/openapi/chat/completions",
        key_header: BEARER,
        request: fixture!("vertex", "request.json"),
        reply: fixture!("vertex", "reply.json"),
        stream: fixture!("vertex", "stream.txt"),
        stream_type: SSE,
        answered_by: "google/gemini-3.1-flash-lite",
        usage: usage(0, 0, 12),
        error: (401, fixture!("vertex", "error.json"), FailureKind::Auth),
        message: "has expired",
        rate_limit: (fixture!("vertex", "rate_limit.json"), None),
    };
    groq: ProviderContract {
        name: "groq",
        model: "openai/gpt-oss-20b",
        target: "/openai/v1/chat/completions",
        key_header: BEARER,
        request: fixture!("groq", "request.json"),
        reply: fixture!("groq", "reply.json"),
        stream: fixture!("groq", "stream.txt"),
        stream_type: SSE,
        answered_by: "openai/gpt-oss-20b",
        usage: usage(16, 0, 12),
        error: (400, fixture!("groq", "error.json"), FailureKind::BadRequest),
        message: "does not match the schema",
        rate_limit: (fixture!("groq", "rate_limit.json"), Some(RetryAfter::Seconds(2))),
    };
    mistral: ProviderContract {
        name: "mistral",
        model: "mistral-small-latest",
        target: "/v1/chat/completions",
        key_header: BEARER,
        request: fixture!("mistral", "request.json"),
        reply: fixture!("mistral", "reply.json"),
        stream: fixture!("mistral", "stream.txt"),
        stream_type: SSE,
        answered_by: "mistral-small-latest",
        usage: usage(16, 0, 0),
        error: (422, fixture!("mistral", "error.json"), FailureKind::BadRequest),
        message: "Extra inputs",
        rate_limit: (fixture!("mistral", "rate_limit.json"), None),
    };
    openrouter: ProviderContract {
        name: "openrouter",
        model: "anthropic/claude-haiku-5.5",
        target: "/api/v1/chat/completions",
        key_header: BEARER,
        request: fixture!("openrouter", "request.json"),
        reply: fixture!("openrouter", "reply.json"),
        stream: fixture!("openrouter", "stream.txt"),
        stream_type: SSE,
        answered_by: "anthropic/claude-haiku-5.5",
        usage: usage(16, 8, 12),
        error: (402, fixture!("openrouter", "error.json"), FailureKind::Auth),
        message: "too few credits",
        rate_limit: (fixture!("openrouter", "rate_limit.json"), Some(RetryAfter::Seconds(5))),
    };
    bedrock: ProviderContract {
        name: "bedrock",
        model: "openai.gpt-oss-120b-1:0",
        target: "/openai/v1/chat/completions",
        key_header: BEARER,
        request: fixture!("bedrock", "request.json"),
        reply: fixture!("bedrock", "reply.json"),
        stream: fixture!("bedrock", "stream.txt"),
        stream_type: SSE,
        answered_by: "openai.gpt-oss-120b-1:0",
        usage: usage(0, 0, 12),
        error: (403, fixture!("bedrock", "error.json"), FailureKind::Auth),
        message: "is expired",
        rate_limit: (fixture!("bedrock", "rate_limit.json"), None),
    };
    bedrock_claude: ProviderContract {
        name: "bedrock-claude",
        model: "global.anthropic.claude-haiku-5-5",
        target: "/anthropic/v1/messages",
        key_header: BEARER,
        request: fixture!("bedrock-claude", "request.json"),
        reply: fixture!("bedrock-claude", "reply.json"),
        stream: fixture!("bedrock-claude", "stream.txt"),
        stream_type: SSE,
        answered_by: "claude-haiku-5-5",
        usage: usage(16, 8, 0),
        error: (400, fixture!("bedrock-claude", "error.json"), FailureKind::BadRequest),
        message: "inference profile",
        rate_limit: (fixture!("bedrock-claude", "rate_limit.json"), None),
    };
    vllm: ProviderContract {
        name: "vllm",
        model: "Qwen/Qwen3-8B",
        target: "/v1/chat/completions",
        key_header: BEARER,
        request: fixture!("vllm", "request.json"),
        reply: fixture!("vllm", "reply.json"),
        stream: fixture!("vllm", "stream.txt"),
        stream_type: SSE,
        answered_by: "Qwen/Qwen3-8B",
        usage: usage(0, 0, 0),
        error: (400, fixture!("vllm", "error.json"), FailureKind::ContextOverflow),
        message: "maximum context length",
        rate_limit: (fixture!("vllm", "rate_limit.json"), None),
    };
    lmstudio: ProviderContract {
        name: "lmstudio",
        model: "qwen3-8b",
        target: "/v1/chat/completions",
        key_header: BEARER,
        request: fixture!("lmstudio", "request.json"),
        reply: fixture!("lmstudio", "reply.json"),
        stream: fixture!("lmstudio", "stream.txt"),
        stream_type: SSE,
        answered_by: "qwen3-8b",
        usage: usage(0, 0, 0),
        error: (404, fixture!("lmstudio", "error.json"), FailureKind::BadRequest),
        message: "not loaded",
        rate_limit: (fixture!("lmstudio", "rate_limit.json"), None),
    };
    ollama: ProviderContract {
        name: "ollama",
        model: "qwen3",
        target: "/api/chat",
        key_header: BEARER,
        request: fixture!("ollama", "request.json"),
        reply: fixture!("ollama", "reply.json"),
        stream: fixture!("ollama", "stream.txt"),
        stream_type: "application/x-ndjson",
        answered_by: "qwen3",
        usage: usage(0, 0, 0),
        error: (404, fixture!("ollama", "error.json"), FailureKind::BadRequest),
        message: "not found",
        rate_limit: (fixture!("ollama", "rate_limit.json"), None),
    };
}
