//! A fake model provider that misbehaves on request, for tests and benches.
//!
//! [`FakeProvider`] listens on loopback and speaks three wires over real TCP: OpenAI chat
//! completions, Anthropic messages and Ollama's native chat, unary and streamed. The path tells the
//! wire, so one server serves all three. Every answer is a pure function of the [`Call`] and a
//! [`Behaviour`]: the same calls in the same order get the same bytes.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use moothall_testkit::{Behaviour, FakeProvider, Fault, Usage, Wire};
//!
//! let server = FakeProvider::start().await?;
//! server.always(Behaviour::text("hello").with_usage(Usage { input: 12, output: 3, ..Usage::ZERO }));
//! // The first call fails, the second is cut, every later one is answered.
//! server.script([Fault::ServerError, Fault::HalfBody]);
//! assert!(server.base_url(Wire::OpenAi).ends_with("/v1"));
//! assert_eq!(server.stats().received, 0);
//! # std::io::Result::Ok(()) })?;
//! # std::io::Result::Ok(())
//! ```
//!
//! # What each behaviour does
//!
//! "First delta" means everything up to and including the first piece of text (for an empty text:
//! the opening events).
//!
//! | behaviour | unary | streamed | billed |
//! |---|---|---|---|
//! | no fault | 200, whole body | 200, all events | yes |
//! | [`Fault::RateLimited`], [`Fault::ServerError`], [`Fault::Overloaded`], [`Fault::Unauthorized`], [`Fault::ContextOverflow`] | error status and body, see below | the same (no stream begins) | no |
//! | [`Fault::ConnectionReset`] | TCP reset, no byte sent | the same | no |
//! | [`Fault::ResetMidBody`] | head and half the body, TCP reset | first delta, TCP reset | yes |
//! | [`Fault::HalfBody`] | `content-length` of the whole, half of it sent, closed | first delta and a part of the next event, closed | yes |
//! | [`Fault::EarlyEnd`] | 200, half the body with an honest `content-length` | first delta, then a clean end without the final events | yes |
//! | [`Fault::InvalidJson`] | 200, half the body with an honest `content-length` | first delta, an event of broken JSON, clean end | yes |
//! | [`Fault::HtmlBody`] | 200, `text/html` | the same | yes |
//! | [`Fault::MidStreamError`] | as [`Fault::ServerError`], not billed | first delta, error event, clean end | yes |
//! | [`Fault::SlowDrip`] | the whole body in small pieces | all events in small pieces, cut anywhere | yes |
//! | [`Fault::Hang`] | nothing, until the client leaves | the same | no |
//!
//! What is wrong with the *reply* is not a [`Fault`] but a property of the [`Reply`], and so
//! combines with any fault:
//!
//! | reply | OpenAI | Anthropic | Ollama |
//! |---|---|---|---|
//! | [`Behaviour::empty_text`] | `content: ""` | `content: []`, no block events | `content: ""` |
//! | [`Stop::MaxTokens`] | `finish_reason: "length"` | `stop_reason: "max_tokens"` | `done_reason: "length"` |
//! | [`Stop::Refusal`] | `content: null`, text in `refusal`, `finish_reason: "stop"` | `stop_reason: "refusal"` with `stop_details` | text only: the wire has no refusal |
//! | [`Stop::ContentFilter`] | `finish_reason: "content_filter"` | as `Refusal` | text only |
//! | [`Behaviour::silent_truncation`] | usage whose total is the window | the same | the same |
//! | [`Reported::Nothing`] | no `usage` | no `usage` in any event | no `prompt_eval_count`, no `eval_count` |
//! | [`Reported::Instead`] | those numbers | those numbers | those numbers |
//!
//! Errors, in each provider's own shape:
//!
//! | fault | OpenAI | Anthropic | Ollama |
//! |---|---|---|---|
//! | [`Fault::RateLimited`] | 429 `rate_limit_exceeded` | 429 `rate_limit_error` | 429 |
//! | [`Fault::ServerError`] | 500 `server_error` | 500 `api_error` | 500 |
//! | [`Fault::Overloaded`] | 503 `server_error` | 529 `overloaded_error` | 503 |
//! | [`Fault::Unauthorized`] | 401 `invalid_api_key` | 401 `authentication_error` | 401 |
//! | [`Fault::ContextOverflow`] | 400 `context_length_exceeded` | 400 `invalid_request_error`, "prompt is too long: N tokens > M maximum" | 400, "request (N tokens) exceeds the available context size (M tokens)" |
//! | [`Fault::MidStreamError`] | `data: {"error":…}` of `server_error` | `event: error` of `overloaded_error` | `{"error":…}` line |
//!
//! OpenAI streams carry usage only when the request asks with `stream_options.include_usage`;
//! Ollama streams unless `stream` is `false`.
//!
//! # What is billed
//!
//! A call is billed once its answer began with status 200, and always for the whole reply, even
//! when only a part of it went out: that is the worst a provider may do. [`Stats::bills`] keeps one
//! [`Bill`] per billed call, with what the client was told beside it, so that a test can prove that
//! no usage was lost or counted twice.

mod answer;
mod behaviour;
mod call;
mod connection;
mod desk;
mod problem;
mod provider;
mod reply;
mod request;
mod stats;
mod wire;

pub use behaviour::{Behaviour, Fault, RetryAfter};
pub use call::Call;
pub use provider::FakeProvider;
pub use reply::{Reply, Reported, Stop, Usage};
pub use stats::{Bill, Stats};
pub use wire::Wire;
