//! Faults below the reply: cut off, corrupted, slow or missing bytes.

use std::time::{Duration, Instant};

use moothall_testkit::{FakeProvider, ProviderBehaviour, ProviderFault, ProviderProtocol};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::client::{
    Body, End, Mode, ask, ask_once, eventually, every_way, path, question, request,
};

/// Its first delta is "hel".
fn hello(fault: ProviderFault) -> ProviderBehaviour {
    ProviderBehaviour::text("hello").with_fault(fault)
}

/// The bytes of the response without a fault, and where its first delta ends.
async fn healthy(wire: ProviderProtocol) -> (Vec<u8>, usize) {
    let (answer, _) = ask_once(ProviderBehaviour::text("hello"), wire, Mode::Streamed).await;
    let text = String::from_utf8(answer.raw.clone()).unwrap();
    let delta = text.find("\"hel\"").unwrap();
    // The chunk with the delta ends with an additional line ending.
    let end = delta + text[delta..].find("\n\r\n").unwrap() + 3;
    (answer.raw, end)
}

#[tokio::test]
async fn a_reset_sends_no_byte_and_bills_nothing() {
    for (wire, mode) in every_way() {
        let (answer, stats) = ask_once(hello(ProviderFault::ConnectionReset), wire, mode).await;
        assert_eq!((answer.raw.len(), answer.end), (0, End::Reset), "{wire:?} {mode:?}");
        assert_eq!((stats.answered, stats.bills.len()), (1, 0));
    }
}

#[tokio::test]
async fn a_reset_mid_body_comes_after_half_of_a_unary_body() {
    for wire in ProviderProtocol::ALL {
        let (answer, stats) = ask_once(hello(ProviderFault::ResetMidBody), wire, Mode::Unary).await;
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        assert_eq!((answer.body().0.len(), answer.end), (length / 2, End::Reset), "{wire:?}");
        assert_eq!(stats.bills.len(), 1);
    }
}

#[tokio::test]
async fn a_reset_mid_body_comes_after_the_first_delta_of_a_stream() {
    for wire in ProviderProtocol::ALL {
        let (whole, first_delta_end) = healthy(wire).await;
        let (answer, stats) =
            ask_once(hello(ProviderFault::ResetMidBody), wire, Mode::Streamed).await;
        assert_eq!(
            (answer.raw.as_slice(), answer.end),
            (&whole[..first_delta_end], End::Reset),
            "{wire:?}"
        );
        assert_eq!(stats.bills.len(), 1);
    }
}

#[tokio::test]
async fn half_a_unary_body_is_less_than_its_content_length() {
    for wire in ProviderProtocol::ALL {
        let (answer, stats) = ask_once(hello(ProviderFault::HalfBody), wire, Mode::Unary).await;
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        assert_eq!((answer.body().0.len(), answer.body().1), (length / 2, Body::Cut), "{wire:?}");
        assert_eq!((answer.end, stats.bills.len()), (End::Closed, 1));
    }
}

#[tokio::test]
async fn half_a_stream_is_cut_inside_the_event_after_the_first_delta() {
    for wire in ProviderProtocol::ALL {
        let (whole, first_delta_end) = healthy(wire).await;
        let (answer, stats) = ask_once(hello(ProviderFault::HalfBody), wire, Mode::Streamed).await;
        assert_eq!(answer.raw, whole[..first_delta_end + 22], "{wire:?}");
        assert_eq!((answer.body().1, answer.end, stats.bills.len()), (Body::Cut, End::Closed, 1));
    }
}

#[tokio::test]
async fn an_early_end_is_complete_http_but_an_incomplete_answer() {
    for wire in ProviderProtocol::ALL {
        let (answer, stats) = ask_once(hello(ProviderFault::EarlyEnd), wire, Mode::Streamed).await;
        assert_eq!(
            (answer.body().1, answer.text(wire, Mode::Streamed).as_str()),
            (Body::Whole, "hel"),
            "{wire:?}"
        );
        assert_eq!(stats.bills.len(), 1);
        let (answer, stats) = ask_once(hello(ProviderFault::EarlyEnd), wire, Mode::Unary).await;
        assert_eq!(answer.body().1, Body::Whole);
        assert!(serde_json::from_str::<Value>(&answer.body().0).is_err());
        assert_eq!(stats.bills.len(), 1);
    }
}

#[tokio::test]
async fn invalid_json_is_sent_with_status_200_and_valid_framing() {
    for (wire, mode) in every_way() {
        let (answer, stats) = ask_once(hello(ProviderFault::InvalidJson), wire, mode).await;
        let (text, body) = answer.body();
        assert_eq!(
            (answer.status(), body, stats.bills.len()),
            (200, Body::Whole, 1),
            "{wire:?} {mode:?}"
        );
        match mode {
            Mode::Unary => assert!(serde_json::from_str::<Value>(&text).is_err()),
            Mode::Streamed => {
                assert_eq!(answer.text(wire, mode), "hel");
                // The client's event parser gives invalid JSON as a string.
                assert!(answer.events().last().unwrap().as_str().unwrap().starts_with('{'));
            }
        }
    }
}

#[tokio::test]
async fn an_html_page_is_sent_with_status_200_instead_of_an_answer() {
    for (wire, mode) in every_way() {
        let (answer, stats) = ask_once(hello(ProviderFault::HtmlBody), wire, mode).await;
        assert_eq!(
            (answer.status(), answer.header("content-type")),
            (200, Some("text/html")),
            "{wire:?} {mode:?}"
        );
        assert!(answer.body().0.starts_with("<!doctype html>"));
        assert_eq!((answer.body().1, stats.bills.len()), (Body::Whole, 1));
    }
}

#[tokio::test]
async fn an_error_mid_stream_is_the_last_event_after_the_first_delta() {
    let expected = [
        json!({"error": {
            "message": "The server had an error while processing your request. Sorry about that!",
            "type": "server_error",
            "param": null,
            "code": null,
        }}),
        json!({
            "type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"},
            "request_id": "req_00000000000000000000",
        }),
        json!({"error": "an error was encountered while running the model"}),
    ];
    for (wire, expected) in ProviderProtocol::ALL.into_iter().zip(expected) {
        let (answer, stats) =
            ask_once(hello(ProviderFault::MidStreamError), wire, Mode::Streamed).await;
        assert_eq!((answer.status(), answer.body().1), (200, Body::Whole), "{wire:?}");
        assert_eq!(answer.text(wire, Mode::Streamed), "hel");
        assert_eq!(answer.events().last(), Some(&expected));
        assert_eq!(answer.body().0.contains("event: error\n"), wire == ProviderProtocol::Anthropic);
        assert_eq!(stats.bills.len(), 1);
    }
}

#[tokio::test]
async fn an_error_mid_stream_is_a_500_without_a_stream() {
    for wire in ProviderProtocol::ALL {
        let (answer, stats) =
            ask_once(hello(ProviderFault::MidStreamError), wire, Mode::Unary).await;
        assert_eq!((answer.status(), stats.bills.len()), (500, 0), "{wire:?}");
    }
}

#[tokio::test]
async fn a_slow_drip_delays_the_body_without_changing_it() {
    let every = Duration::from_millis(1);
    for (wire, mode) in every_way() {
        let (healthy, _) = ask_once(ProviderBehaviour::text("hello"), wire, mode).await;
        let started = Instant::now();
        let (answer, stats) =
            ask_once(hello(ProviderFault::SlowDrip { chunk: 20, every }), wire, mode).await;
        assert_eq!(answer.raw, healthy.raw, "{wire:?} {mode:?}");
        let pauses = u32::try_from(answer.body().0.len() / 20).unwrap();
        assert!(started.elapsed() >= every * pauses);
        assert_eq!((stats.answered, stats.bills.len()), (1, 1));
    }
}

#[tokio::test]
async fn latency_comes_before_any_answer_or_fault() {
    let latency = Duration::from_millis(15);
    for behaviour in [
        ProviderBehaviour::text("hello"),
        ProviderFault::ServerError.into(),
        ProviderFault::ConnectionReset.into(),
    ] {
        for wire in ProviderProtocol::ALL {
            let started = Instant::now();
            ask_once(behaviour.clone().with_latency(latency), wire, Mode::Unary).await;
            assert!(started.elapsed() >= latency, "{wire:?}");
        }
    }
}

/// Sends a call, waits until the server has received it, and disconnects without reading a
/// response.
async fn give_up(server: &FakeProvider, wire: ProviderProtocol, mode: Mode) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(&request(path(wire), &question(wire, mode).to_string(), false)).await.unwrap();
    eventually(|| server.stats().in_flight == 1).await;
}

#[tokio::test]
async fn a_hanging_call_ends_when_the_client_leaves_and_is_not_billed() {
    for (wire, mode) in every_way() {
        let server = FakeProvider::start().await.unwrap();
        server.always(ProviderFault::Hang);
        give_up(&server, wire, mode).await;
        eventually(|| server.stats().abandoned == 1).await;
        assert_eq!(
            (server.stats().answered, server.stats().bills.len()),
            (0, 0),
            "{wire:?} {mode:?}"
        );
    }
}

#[tokio::test]
async fn a_client_that_leaves_during_the_latency_is_not_billed() {
    let server = FakeProvider::start().await.unwrap();
    server.always(ProviderBehaviour::text("late").with_latency(Duration::from_secs(3600)));
    give_up(&server, ProviderProtocol::OpenAi, Mode::Unary).await;
    eventually(|| server.stats().abandoned == 1).await;
    assert_eq!(server.stats().bills, []);
}

#[tokio::test]
async fn a_client_that_leaves_during_a_drip_is_billed_and_its_task_ends() {
    let server = FakeProvider::start().await.unwrap();
    server.always(hello(ProviderFault::SlowDrip { chunk: 1, every: Duration::from_secs(3600) }));
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let call = request(
        path(ProviderProtocol::OpenAi),
        &question(ProviderProtocol::OpenAi, Mode::Unary).to_string(),
        false,
    );
    stream.write_all(&call).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'H');
    drop(stream);
    eventually(|| server.stats().abandoned == 1).await;
    assert_eq!(server.stats().bills.len(), 1);
}

#[tokio::test]
async fn a_client_that_abandons_a_long_answer_does_not_affect_others() {
    let server = FakeProvider::start().await.unwrap();
    server.script([ProviderBehaviour::text("x".repeat(32 << 20))]);
    give_up(&server, ProviderProtocol::OpenAi, Mode::Unary).await;
    eventually(|| server.stats().abandoned == 1).await;
    assert_eq!(ask(&server, ProviderProtocol::OpenAi, Mode::Unary).await.status(), 200);
}
