//! A fake model provider with configurable faults, for tests and benchmarks.
//!
//! [`FakeProvider`] listens on loopback and implements three protocols over real TCP: OpenAI chat
//! completions, Anthropic messages and Ollama's native chat, unary and streamed. The path
//! determines the protocol, so one server serves all three. Every response is a pure function of
//! the [`ProviderCall`] and a [`ProviderBehaviour`]: the same calls in the same order get the same
//! bytes.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use moothall_testkit::{FakeProvider, ProviderBehaviour, ProviderFault, ProviderProtocol, ReplyUsage};
//!
//! let server = FakeProvider::start().await?;
//! let usage = ReplyUsage { input: 12, output: 3, ..ReplyUsage::ZERO };
//! server.always(ProviderBehaviour::text("hello").with_usage(usage));
//! // The first call fails, the second is cut off, all later calls succeed.
//! server.script([ProviderFault::ServerError, ProviderFault::HalfBody]);
//! assert!(server.base_url(ProviderProtocol::OpenAi).ends_with("/v1"));
//! assert_eq!(server.stats().received, 0);
//! # std::io::Result::Ok(()) })?;
//! # std::io::Result::Ok(())
//! ```
//!
//! # Behaviours
//!
//! "First delta" means everything up to and including the first piece of text (for an empty text:
//! the opening events).
//!
//! | behaviour | unary | streamed | billed |
//! |---|---|---|---|
//! | no fault | 200, whole body | 200, all events | yes |
//! | [`ProviderFault::RateLimited`], [`ProviderFault::ServerError`], [`ProviderFault::Overloaded`], [`ProviderFault::Unauthorized`], [`ProviderFault::ContextOverflow`] | error status and body, see below | the same (no stream starts) | no |
//! | [`ProviderFault::ConnectionReset`] | TCP reset, no byte sent | the same | no |
//! | [`ProviderFault::ResetMidBody`] | head and half the body, TCP reset | first delta, TCP reset | yes |
//! | [`ProviderFault::HalfBody`] | `content-length` of the whole body, half of it sent, closed | first delta and part of the next event, closed | yes |
//! | [`ProviderFault::EarlyEnd`] | 200, half the body with a matching `content-length` | first delta, then a clean end without the final events | yes |
//! | [`ProviderFault::InvalidJson`] | 200, half the body with a matching `content-length` | first delta, an event with invalid JSON, clean end | yes |
//! | [`ProviderFault::HtmlBody`] | 200, `text/html` | the same | yes |
//! | [`ProviderFault::MidStreamError`] | like [`ProviderFault::ServerError`], not billed | first delta, error event, clean end | yes |
//! | [`ProviderFault::SlowDrip`] | the whole body in small pieces | all events in small pieces, split anywhere | yes |
//! | [`ProviderFault::Verbatim`] | the given response | the same | no |
//! | [`ProviderFault::Hang`] | nothing until the client disconnects | the same | no |
//!
//! An error in the *reply* is not a [`ProviderFault`] but a property of the [`FakeReply`], and can be
//! combined with any fault:
//!
//! | reply | OpenAI | Anthropic | Ollama |
//! |---|---|---|---|
//! | [`ProviderBehaviour::empty_text`] | `content: ""` | `content: []`, no block events | `content: ""` |
//! | [`ReplyStop::MaxTokens`] | `finish_reason: "length"` | `stop_reason: "max_tokens"` | `done_reason: "length"` |
//! | [`ReplyStop::Refusal`] | `content: null`, text in `refusal`, `finish_reason: "stop"` | `stop_reason: "refusal"` with `stop_details` | text only: the protocol has no refusal |
//! | [`ReplyStop::ContentFilter`] | `finish_reason: "content_filter"` | like `Refusal` | text only |
//! | [`ProviderBehaviour::silent_truncation`] | usage whose total is the window | the same | the same |
//! | [`UsageReport::Nothing`] | no `usage` | no `usage` in any event | no `prompt_eval_count`, no `eval_count` |
//! | [`UsageReport::Instead`] | those numbers | those numbers | those numbers |
//!
//! Errors, in each provider's format:
//!
//! | fault | OpenAI | Anthropic | Ollama |
//! |---|---|---|---|
//! | [`ProviderFault::RateLimited`] | 429 `rate_limit_exceeded` | 429 `rate_limit_error` | 429 |
//! | [`ProviderFault::ServerError`] | 500 `server_error` | 500 `api_error` | 500 |
//! | [`ProviderFault::Overloaded`] | 503 `server_error` | 529 `overloaded_error` | 503 |
//! | [`ProviderFault::Unauthorized`] | 401 `invalid_api_key` | 401 `authentication_error` | 401 |
//! | [`ProviderFault::ContextOverflow`] | 400 `context_length_exceeded` | 400 `invalid_request_error`, "prompt is too long: N tokens > M maximum" | 400, "request (N tokens) exceeds the available context size (M tokens)" |
//! | [`ProviderFault::MidStreamError`] | `data: {"error":…}` of `server_error` | `event: error` of `overloaded_error` | `{"error":…}` line |
//!
//! OpenAI streams include usage only if the request sets `stream_options.include_usage`; Ollama
//! streams unless `stream` is `false`.
//!
//! # Billing
//!
//! A call is billed once its response has started with status 200, and always for the whole reply,
//! even if only a part of it was sent: this is the worst case for a client. [`ProviderStats::bills`] has
//! one [`CallBill`] per billed call, together with the usage that the client received, so tests can
//! prove that no usage was lost or counted twice.

mod behaviour;
mod call;
mod connection;
mod error_response;
mod protocol;
mod provider;
mod provider_state;
mod reply;
mod request;
mod response;
mod stats;

pub use behaviour::{ProviderBehaviour, ProviderFault, RetryAfter, VerbatimResponse};
pub use call::ProviderCall;
pub use protocol::ProviderProtocol;
pub use provider::FakeProvider;
pub use reply::{FakeReply, ReplyStop, ReplyUsage, UsageReport};
pub use stats::{CallBill, ProviderStats};
