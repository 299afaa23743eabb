//! Every fault with every API format, complete and streamed, ends as described in SPECIFICATION.md,
//! whose table has one row per test here.

use std::time::{Duration, Instant};

use moothall_core::model::{FailureKind, ModelRequest, StopReason, UsageBasis};
use moothall_testkit::{
    ProviderBehaviour, ProviderFault, ProviderProtocol, ReplyUsage, RetryAfter, UsageReport,
};

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

fn good() -> ProviderBehaviour {
    ProviderBehaviour::text("hello")
}

struct Call {
    ending: Ending,
    desk: Desk,
    heard: Heard,
    took: Duration,
}

/// Scripts one behaviour per attempt and makes one call.
async fn play(
    wire: ProviderProtocol,
    mode: Mode,
    request: ModelRequest,
    behaviours: Vec<ProviderBehaviour>,
) -> Call {
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

fn request(wire: ProviderProtocol) -> ModelRequest {
    ModelRequest::ask(model_of(wire), "Say hello.", 50)
}

/// A prompt long enough for its token count to be checked.
fn long_request(wire: ProviderProtocol) -> ModelRequest {
    let text = "The board asks whether the plan holds. ".repeat(400);
    ModelRequest::ask(model_of(wire), text, 50)
}

async fn check(
    wire: ProviderProtocol,
    mode: Mode,
    behaviours: Vec<ProviderBehaviour>,
    expected: Ending,
) -> Call {
    let call = play(wire, mode, request(wire), behaviours).await;
    assert_eq!(call.ending, expected);
    call
}

/// A temporary fault: retried after a delay, and given up after three retries.
async fn passes_or_gives_up(
    wire: ProviderProtocol,
    mode: Mode,
    fault: ProviderFault,
    kind: FailureKind,
) {
    let faulty = || ProviderBehaviour::from(fault.clone());
    check(wire, mode, vec![faulty(), faulty(), good()], answered_after(3)).await;
    check(wire, mode, vec![faulty(), faulty(), faulty(), faulty()], failed_after(4, kind)).await;
}

mod cases {
    use super::*;

    pub(crate) async fn latency(wire: ProviderProtocol, mode: Mode) {
        let slow = good().with_latency(Duration::from_millis(60));
        let call = check(wire, mode, vec![slow], answered_after(1)).await;
        assert!(call.took >= Duration::from_millis(60));
    }

    pub(crate) async fn too_many_requests_with_retry_after(wire: ProviderProtocol, mode: Mode) {
        let retry_after = Some(RetryAfter::Milliseconds(80));
        let limited = ProviderBehaviour::from(ProviderFault::RateLimited { retry_after });
        let call = check(wire, mode, vec![limited, good()], answered_after(2)).await;
        assert!(call.took >= Duration::from_millis(80), "the pause was honoured: {:?}", call.took);
    }

    pub(crate) async fn too_many_requests_with_a_far_retry_after(
        wire: ProviderProtocol,
        mode: Mode,
    ) {
        // A pause of one hour is not waited for: the failure contains it, so the run can be
        // suspended.
        let desk = Desk::new().await;
        desk.server
            .script([ProviderFault::RateLimited { retry_after: Some(RetryAfter::Seconds(3600)) }]);
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

    pub(crate) async fn too_many_requests_without_retry_after(wire: ProviderProtocol, mode: Mode) {
        let fault = ProviderFault::RateLimited { retry_after: None };
        passes_or_gives_up(wire, mode, fault, FailureKind::RateLimited).await;
    }

    pub(crate) async fn server_error(wire: ProviderProtocol, mode: Mode) {
        passes_or_gives_up(wire, mode, ProviderFault::ServerError, FailureKind::Server).await;
    }

    pub(crate) async fn overloaded(wire: ProviderProtocol, mode: Mode) {
        passes_or_gives_up(wire, mode, ProviderFault::Overloaded, FailureKind::Overloaded).await;
    }

    pub(crate) async fn unauthorized(wire: ProviderProtocol, mode: Mode) {
        check(
            wire,
            mode,
            vec![ProviderFault::Unauthorized.into()],
            failed_after(1, FailureKind::Auth),
        )
        .await;
    }

    pub(crate) async fn connection_reset(wire: ProviderProtocol, mode: Mode) {
        passes_or_gives_up(wire, mode, ProviderFault::ConnectionReset, FailureKind::Transport)
            .await;
    }

    pub(crate) async fn connection_reset_in_the_middle(wire: ProviderProtocol, mode: Mode) {
        passes_or_gives_up(wire, mode, ProviderFault::ResetMidBody, FailureKind::Truncated).await;
    }

    pub(crate) async fn half_a_body(wire: ProviderProtocol, mode: Mode) {
        passes_or_gives_up(wire, mode, ProviderFault::HalfBody, FailureKind::Truncated).await;
    }

    pub(crate) async fn error_in_the_middle(wire: ProviderProtocol, mode: Mode) {
        let kind = match mode {
            // A complete reply cannot fail halfway; the fake provider responds with 500 instead.
            Mode::Unary => FailureKind::Server,
            Mode::Streamed if wire == ProviderProtocol::Anthropic => FailureKind::Overloaded,
            Mode::Streamed => FailureKind::Server,
        };
        passes_or_gives_up(wire, mode, ProviderFault::MidStreamError, kind).await;
    }

    pub(crate) async fn slow_drip(wire: ProviderProtocol, mode: Mode) {
        let drip = ProviderFault::SlowDrip { chunk: 7, every: Duration::from_millis(1) };
        check(wire, mode, vec![good().with_fault(drip)], answered_after(1)).await;
    }

    pub(crate) async fn slow_drip_beyond_the_timeout(wire: ProviderProtocol, mode: Mode) {
        let drip = || {
            good()
                .with_fault(ProviderFault::SlowDrip { chunk: 1, every: Duration::from_millis(100) })
        };
        let impatient = ModelRequest { timeout_ms: Some(250), ..request(wire) };
        let call = play(wire, mode, impatient, vec![drip(), drip(), drip(), drip()]).await;
        assert_eq!(call.ending, failed_after(4, FailureKind::TimedOut));
    }

    pub(crate) async fn no_answer_at_all(wire: ProviderProtocol, mode: Mode) {
        let impatient = ModelRequest { timeout_ms: Some(400), ..request(wire) };
        let call = play(wire, mode, impatient, vec![ProviderFault::Hang.into(), good()]).await;
        assert_eq!(call.ending, answered_after(2));
    }

    pub(crate) async fn invalid_json(wire: ProviderProtocol, mode: Mode) {
        passes_or_gives_up(wire, mode, ProviderFault::InvalidJson, FailureKind::Malformed).await;
    }

    pub(crate) async fn html_page(wire: ProviderProtocol, mode: Mode) {
        let kind = match mode {
            Mode::Unary => FailureKind::Malformed,
            // An HTML page contains no stream messages: the stream ends without a reply.
            Mode::Streamed if wire != ProviderProtocol::Ollama => FailureKind::Truncated,
            Mode::Streamed => FailureKind::Malformed,
        };
        passes_or_gives_up(wire, mode, ProviderFault::HtmlBody, kind).await;
    }

    pub(crate) async fn wrong_schema(wire: ProviderProtocol, mode: Mode) {
        // The gateway delivers it; core checks the schema and retries.
        let call = play(wire, mode, request(wire), vec![ProviderBehaviour::wrong_schema()]).await;
        assert_eq!(call.ending.tries, 1);
        assert!(call.ending.result.unwrap().starts_with('{'));
    }

    pub(crate) async fn empty_text(wire: ProviderProtocol, mode: Mode) {
        let empty = ProviderBehaviour::empty_text;
        check(wire, mode, vec![empty(), good()], answered_after(2)).await;
        let four = vec![empty(), empty(), empty(), empty()];
        check(wire, mode, four, failed_after(4, FailureKind::EmptyReply)).await;
    }

    pub(crate) async fn refusal(wire: ProviderProtocol, mode: Mode) {
        let refused = match wire {
            ProviderProtocol::OpenAi | ProviderProtocol::Anthropic => {
                failed_after(1, FailureKind::Refused)
            }
            // Ollama has no stop reason for it: the refusal is an ordinary reply.
            ProviderProtocol::Ollama => {
                Ending { tries: 1, result: Ok("I cannot help with that.".to_owned()) }
            }
        };
        check(wire, mode, vec![ProviderBehaviour::refusal("I cannot help with that.")], refused)
            .await;
    }

    pub(crate) async fn context_overflow(wire: ProviderProtocol, mode: Mode) {
        let overflow = ProviderFault::ContextOverflow { window: 4096 };
        check(wire, mode, vec![overflow.into()], failed_after(1, FailureKind::ContextOverflow))
            .await;
    }

    pub(crate) async fn silent_truncation(wire: ProviderProtocol, mode: Mode) {
        let cut = vec![ProviderBehaviour::silent_truncation(512)];
        let call = play(wire, mode, long_request(wire), cut).await;
        assert_eq!(call.ending, failed_after(1, FailureKind::ContextTruncated));
        assert!(call.desk.ledger.spent().tokens > 0, "the provider bills it all the same");
    }

    pub(crate) async fn usage_missing(wire: ProviderProtocol, mode: Mode) {
        basis(wire, mode, UsageReport::Nothing, UsageBasis::Estimated).await;
    }

    pub(crate) async fn usage_of_nothing(wire: ProviderProtocol, mode: Mode) {
        basis(wire, mode, UsageReport::Instead(ReplyUsage::ZERO), UsageBasis::Estimated).await;
    }

    pub(crate) async fn usage_beyond_measure(wire: ProviderProtocol, mode: Mode) {
        basis(wire, mode, UsageReport::Instead(ReplyUsage::HUGE), UsageBasis::Bounded).await;
    }

    async fn basis(
        wire: ProviderProtocol,
        mode: Mode,
        reported: UsageReport,
        expected: UsageBasis,
    ) {
        let desk = Desk::new().await;
        desk.server.script([ProviderBehaviour::wrong_usage(reported)]);
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

    pub(crate) async fn cut_off_at_max_tokens(wire: ProviderProtocol, mode: Mode) {
        let desk = Desk::new().await;
        desk.server.script([good().with_stop(moothall_testkit::ReplyStop::MaxTokens)]);
        let mut heard = Heard::default();
        let listener = (mode == Mode::Streamed).then_some(&mut heard as _);
        let reply = desk.gateway.call(&request(wire), &desk.ledger, listener).await.result.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), ("hello", StopReason::MaxTokens));
    }

    pub(crate) async fn stream_without_its_last_message(wire: ProviderProtocol, mode: Mode) {
        let call =
            play(wire, mode, request(wire), vec![ProviderFault::EarlyEnd.into(), good()]).await;
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
                super::super::cases::$fault(moothall_testkit::ProviderProtocol::$wire, super::super::Mode::Unary).await;
            })+
        }
        mod streamed {
            $(#[tokio::test]
            async fn $fault() {
                super::super::cases::$fault(moothall_testkit::ProviderProtocol::$wire, super::super::Mode::Streamed).await;
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
