//! Every fault with every API format, complete and streamed, ends as described in SPECIFICATION.md,
//! whose table has one row per test here.

use std::time::{Duration, Instant};

use moothall_core::model::{FailureKind, ModelRequest, StopReason, UsageBasis};
use moothall_testkit::{Behaviour, Fault, ReplyUsage, RetryAfter, UsageReport, Wire};

use crate::support::{Desk, Heard, KEY, model_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Unary,
    Streamed,
}

/// The result of a call and the number of attempts.
#[derive(Debug, PartialEq, Eq)]
struct Ending {
    tries: u32,
    result: Result<String, FailureKind>,
}

fn answered_after(tries: u32) -> Ending {
    Ending { tries, result: Ok("hello".to_owned()) }
}

fn failed_after(tries: u32, kind: FailureKind) -> Ending {
    Ending { tries, result: Err(kind) }
}

fn good() -> Behaviour {
    Behaviour::text("hello")
}

struct Call {
    ending: Ending,
    desk: Desk,
    heard: Heard,
    took: Duration,
}

/// Scripts one behaviour per attempt and makes one call.
async fn play(wire: Wire, mode: Mode, request: ModelRequest, behaviours: Vec<Behaviour>) -> Call {
    let desk = Desk::new().await;
    desk.server.script(behaviours);
    let mut heard = Heard::default();
    let listener = (mode == Mode::Streamed).then_some(&mut heard as _);
    let started = Instant::now();
    let report = desk.gateway.call(&request, &desk.ledger, listener).await;
    let took = started.elapsed();
    let text = report.result.as_ref().map(|reply| reply.text.clone());
    let ending =
        Ending { tries: report.timing.tries, result: text.map_err(|failure| failure.kind) };
    assert_eq!(u64::from(ending.tries), desk.server.stats().received, "tries are requests");
    assert_eq!(desk.server.script_left(), 0, "a behaviour was not used");
    if let (Mode::Streamed, Ok(text)) = (mode, &ending.result) {
        assert_eq!(&heard.text, text, "what was heard last is the answer");
        assert_eq!(heard.restarts, ending.tries - 1, "every new try takes back the one before");
    }
    let detail = report.result.as_ref().err().map_or("", |failure| failure.detail.as_str());
    assert!(!detail.contains(KEY), "{detail}");
    assert!(desk.server.calls().iter().all(|call| call.wire == wire));
    Call { ending, desk, heard, took }
}

fn request(wire: Wire) -> ModelRequest {
    ModelRequest::ask(model_of(wire), "Say hello.", 50)
}

/// A prompt long enough for its token count to be checked.
fn long_request(wire: Wire) -> ModelRequest {
    let text = "The board asks whether the plan holds. ".repeat(400);
    ModelRequest::ask(model_of(wire), text, 50)
}

async fn check(wire: Wire, mode: Mode, behaviours: Vec<Behaviour>, expected: Ending) -> Call {
    let call = play(wire, mode, request(wire), behaviours).await;
    assert_eq!(call.ending, expected);
    call
}

/// A temporary fault: retried after a delay, and given up after three retries.
async fn passes_or_gives_up(wire: Wire, mode: Mode, fault: Fault, kind: FailureKind) {
    let faulty = || Behaviour::from(fault.clone());
    check(wire, mode, vec![faulty(), faulty(), good()], answered_after(3)).await;
    check(wire, mode, vec![faulty(), faulty(), faulty(), faulty()], failed_after(4, kind)).await;
}

mod cases {
    use super::*;

    pub(crate) async fn latency(wire: Wire, mode: Mode) {
        let slow = good().with_latency(Duration::from_millis(60));
        let call = check(wire, mode, vec![slow], answered_after(1)).await;
        assert!(call.took >= Duration::from_millis(60));
    }

    pub(crate) async fn too_many_requests_with_retry_after(wire: Wire, mode: Mode) {
        let retry_after = Some(RetryAfter::Milliseconds(80));
        let limited = Behaviour::from(Fault::RateLimited { retry_after });
        let call = check(wire, mode, vec![limited, good()], answered_after(2)).await;
        assert!(call.took >= Duration::from_millis(80), "the pause was honoured: {:?}", call.took);
    }

    pub(crate) async fn too_many_requests_with_a_far_retry_after(wire: Wire, mode: Mode) {
        // A pause of one hour is not waited for: the failure contains it, so the run can be
        // suspended.
        let desk = Desk::new().await;
        desk.server.script([Fault::RateLimited { retry_after: Some(RetryAfter::Seconds(3600)) }]);
        let (request, ledger) = (request(wire), &desk.ledger);
        let mut heard = Heard::default();
        let listener = (mode == Mode::Streamed).then_some(&mut heard as _);
        let started = Instant::now();
        let failure = desk.gateway.call(&request, ledger, listener).await.result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::RateLimited);
        assert_eq!(failure.retry_after_ms, Some(3_600_000));
        // The next call fails in the same way without sending a request.
        let failure = desk.gateway.call(&request, ledger, None).await.result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::RateLimited);
        assert!(failure.retry_after_ms > Some(3_500_000), "{failure:?}");
        assert!(started.elapsed() < Duration::from_secs(60));
        assert_eq!(desk.server.stats().received, 1);
    }

    pub(crate) async fn too_many_requests_without_retry_after(wire: Wire, mode: Mode) {
        let fault = Fault::RateLimited { retry_after: None };
        passes_or_gives_up(wire, mode, fault, FailureKind::RateLimited).await;
    }

    pub(crate) async fn server_error(wire: Wire, mode: Mode) {
        passes_or_gives_up(wire, mode, Fault::ServerError, FailureKind::Server).await;
    }

    pub(crate) async fn overloaded(wire: Wire, mode: Mode) {
        passes_or_gives_up(wire, mode, Fault::Overloaded, FailureKind::Overloaded).await;
    }

    pub(crate) async fn unauthorized(wire: Wire, mode: Mode) {
        check(wire, mode, vec![Fault::Unauthorized.into()], failed_after(1, FailureKind::Auth))
            .await;
    }

    pub(crate) async fn connection_reset(wire: Wire, mode: Mode) {
        passes_or_gives_up(wire, mode, Fault::ConnectionReset, FailureKind::Transport).await;
    }

    pub(crate) async fn connection_reset_in_the_middle(wire: Wire, mode: Mode) {
        passes_or_gives_up(wire, mode, Fault::ResetMidBody, FailureKind::Truncated).await;
    }

    pub(crate) async fn half_a_body(wire: Wire, mode: Mode) {
        passes_or_gives_up(wire, mode, Fault::HalfBody, FailureKind::Truncated).await;
    }

    pub(crate) async fn error_in_the_middle(wire: Wire, mode: Mode) {
        let kind = match mode {
            // A complete reply cannot fail halfway; the fake provider responds with 500 instead.
            Mode::Unary => FailureKind::Server,
            Mode::Streamed if wire == Wire::Anthropic => FailureKind::Overloaded,
            Mode::Streamed => FailureKind::Server,
        };
        passes_or_gives_up(wire, mode, Fault::MidStreamError, kind).await;
    }

    pub(crate) async fn slow_drip(wire: Wire, mode: Mode) {
        let drip = Fault::SlowDrip { chunk: 7, every: Duration::from_millis(1) };
        check(wire, mode, vec![good().with_fault(drip)], answered_after(1)).await;
    }

    pub(crate) async fn slow_drip_beyond_the_timeout(wire: Wire, mode: Mode) {
        let drip =
            || good().with_fault(Fault::SlowDrip { chunk: 1, every: Duration::from_millis(100) });
        let impatient = ModelRequest { timeout_ms: Some(250), ..request(wire) };
        let call = play(wire, mode, impatient, vec![drip(), drip(), drip(), drip()]).await;
        assert_eq!(call.ending, failed_after(4, FailureKind::TimedOut));
    }

    pub(crate) async fn no_answer_at_all(wire: Wire, mode: Mode) {
        let impatient = ModelRequest { timeout_ms: Some(400), ..request(wire) };
        let call = play(wire, mode, impatient, vec![Fault::Hang.into(), good()]).await;
        assert_eq!(call.ending, answered_after(2));
    }

    pub(crate) async fn invalid_json(wire: Wire, mode: Mode) {
        passes_or_gives_up(wire, mode, Fault::InvalidJson, FailureKind::Malformed).await;
    }

    pub(crate) async fn html_page(wire: Wire, mode: Mode) {
        let kind = match mode {
            Mode::Unary => FailureKind::Malformed,
            // An HTML page contains no stream messages: the stream ends without a reply.
            Mode::Streamed if wire != Wire::Ollama => FailureKind::Truncated,
            Mode::Streamed => FailureKind::Malformed,
        };
        passes_or_gives_up(wire, mode, Fault::HtmlBody, kind).await;
    }

    pub(crate) async fn wrong_schema(wire: Wire, mode: Mode) {
        // The gateway delivers it; core checks the schema and retries.
        let call = play(wire, mode, request(wire), vec![Behaviour::wrong_schema()]).await;
        assert_eq!(call.ending.tries, 1);
        assert!(call.ending.result.unwrap().starts_with('{'));
    }

    pub(crate) async fn empty_text(wire: Wire, mode: Mode) {
        let empty = Behaviour::empty_text;
        check(wire, mode, vec![empty(), good()], answered_after(2)).await;
        let four = vec![empty(), empty(), empty(), empty()];
        check(wire, mode, four, failed_after(4, FailureKind::EmptyReply)).await;
    }

    pub(crate) async fn refusal(wire: Wire, mode: Mode) {
        let refused = match wire {
            Wire::OpenAi | Wire::Anthropic => failed_after(1, FailureKind::Refused),
            // Ollama has no stop reason for it: the refusal is an ordinary reply.
            Wire::Ollama => Ending { tries: 1, result: Ok("I cannot help with that.".to_owned()) },
        };
        check(wire, mode, vec![Behaviour::refusal("I cannot help with that.")], refused).await;
    }

    pub(crate) async fn context_overflow(wire: Wire, mode: Mode) {
        let overflow = Fault::ContextOverflow { window: 4096 };
        check(wire, mode, vec![overflow.into()], failed_after(1, FailureKind::ContextOverflow))
            .await;
    }

    pub(crate) async fn silent_truncation(wire: Wire, mode: Mode) {
        let cut = vec![Behaviour::silent_truncation(512)];
        let call = play(wire, mode, long_request(wire), cut).await;
        assert_eq!(call.ending, failed_after(1, FailureKind::ContextTruncated));
        assert!(call.desk.ledger.spent().tokens > 0, "the provider bills it all the same");
    }

    pub(crate) async fn usage_missing(wire: Wire, mode: Mode) {
        basis(wire, mode, UsageReport::Nothing, UsageBasis::Estimated).await;
    }

    pub(crate) async fn usage_of_nothing(wire: Wire, mode: Mode) {
        basis(wire, mode, UsageReport::Instead(ReplyUsage::ZERO), UsageBasis::Estimated).await;
    }

    pub(crate) async fn usage_beyond_measure(wire: Wire, mode: Mode) {
        basis(wire, mode, UsageReport::Instead(ReplyUsage::HUGE), UsageBasis::Bounded).await;
    }

    async fn basis(wire: Wire, mode: Mode, reported: UsageReport, expected: UsageBasis) {
        let desk = Desk::new().await;
        desk.server.script([Behaviour::wrong_usage(reported)]);
        let mut heard = Heard::default();
        let listener = (mode == Mode::Streamed).then_some(&mut heard as _);
        let request = request(wire);
        let reply = desk.gateway.call(&request, &desk.ledger, listener).await.result.unwrap();
        assert_eq!((reply.usage_basis, reply.stop), (expected, StopReason::End));
        let most = request.prompt_tokens_at_most() + u64::from(request.max_tokens);
        let spent = desk.ledger.spent().tokens;
        match expected {
            // The cost is unknown, so the upper bound counts.
            UsageBasis::Estimated => assert_eq!(spent, most),
            _ => assert_eq!(spent, reply.usage.total()),
        }
        assert!(reply.usage.total() >= 1, "{reply:?}");
    }

    pub(crate) async fn cut_off_at_max_tokens(wire: Wire, mode: Mode) {
        let desk = Desk::new().await;
        desk.server.script([good().with_stop(moothall_testkit::ReplyStop::MaxTokens)]);
        let mut heard = Heard::default();
        let listener = (mode == Mode::Streamed).then_some(&mut heard as _);
        let reply = desk.gateway.call(&request(wire), &desk.ledger, listener).await.result.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), ("hello", StopReason::MaxTokens));
    }

    pub(crate) async fn stream_without_its_last_message(wire: Wire, mode: Mode) {
        let call = play(wire, mode, request(wire), vec![Fault::EarlyEnd.into(), good()]).await;
        match mode {
            Mode::Unary => assert!(call.ending.result.is_ok(), "{:?}", call.ending),
            Mode::Streamed => {
                assert_eq!(call.ending, answered_after(2));
                assert_eq!(call.heard.restarts, 1);
            }
        }
    }
}

/// Generates one named test per fault, API format and mode.
macro_rules! faults {
    ($($fault:ident),+ $(,)?) => {
        mod openai {
            faults!(@modes OpenAi $($fault)+);
        }
        mod anthropic {
            faults!(@modes Anthropic $($fault)+);
        }
        mod ollama {
            faults!(@modes Ollama $($fault)+);
        }
    };
    (@modes $wire:ident $($fault:ident)+) => {
        mod unary {
            $(#[tokio::test]
            async fn $fault() {
                super::super::cases::$fault(moothall_testkit::Wire::$wire, super::super::Mode::Unary).await;
            })+
        }
        mod streamed {
            $(#[tokio::test]
            async fn $fault() {
                super::super::cases::$fault(moothall_testkit::Wire::$wire, super::super::Mode::Streamed).await;
            })+
        }
    };
}

faults!(
    latency,
    too_many_requests_with_retry_after,
    too_many_requests_with_a_far_retry_after,
    too_many_requests_without_retry_after,
    server_error,
    overloaded,
    unauthorized,
    connection_reset,
    connection_reset_in_the_middle,
    half_a_body,
    error_in_the_middle,
    slow_drip,
    slow_drip_beyond_the_timeout,
    no_answer_at_all,
    invalid_json,
    html_page,
    wrong_schema,
    empty_text,
    refusal,
    context_overflow,
    silent_truncation,
    usage_missing,
    usage_of_nothing,
    usage_beyond_measure,
    cut_off_at_max_tokens,
    stream_without_its_last_message,
);
