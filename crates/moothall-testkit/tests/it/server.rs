//! Tests of the server: connections, unusual requests, start and stop.

use moothall_testkit::{FakeProvider, ProviderBehaviour, ProviderFault, ProviderProtocol};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::client::{Answer, End, Mode, ask, eventually, every_way, path, question, request, send};

/// Sends two requests on one connection and returns both responses. The second request closes the
/// connection.
async fn twice(server: &FakeProvider, wire: ProviderProtocol, mode: Mode) -> String {
    let body = question(wire, mode).to_string();
    // The second request is sent without waiting for the first response, which HTTP allows.
    let mut both = request(path(wire), &body, false);
    both.extend(request(path(wire), &body, true));
    String::from_utf8(send(server, &both).await.raw).unwrap()
}

#[tokio::test]
async fn one_connection_carries_two_calls() {
    for (wire, mode) in every_way() {
        let server = FakeProvider::start().await.unwrap();
        server.script([ProviderBehaviour::text("1st"), ProviderBehaviour::text("2nd")]);
        let answers = twice(&server, wire, mode).await;
        assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{wire:?} {mode:?}");
        assert_eq!(server.stats().answered, 2);
    }
}

#[tokio::test]
async fn a_call_waits_its_turn_behind_a_slow_one_on_the_same_connection() {
    let server = FakeProvider::start().await.unwrap();
    server.script([
        ProviderBehaviour::text("slow").with_latency(std::time::Duration::from_millis(30)),
        ProviderBehaviour::text("fast"),
    ]);
    let answers = twice(&server, ProviderProtocol::OpenAi, Mode::Unary).await;
    assert!(answers.find("slow").unwrap() < answers.find("fast").unwrap());
    assert_eq!(server.stats().max_concurrent, 1);
}

#[tokio::test]
async fn a_connection_survives_errors_and_spoilt_bodies() {
    for fault in [
        ProviderFault::ServerError,
        ProviderFault::InvalidJson,
        ProviderFault::EarlyEnd,
        ProviderFault::HtmlBody,
        ProviderFault::MidStreamError,
    ] {
        for (wire, mode) in every_way() {
            let server = FakeProvider::start().await.unwrap();
            server.script([fault.clone()]);
            assert_eq!(
                twice(&server, wire, mode).await.matches("HTTP/1.1 ").count(),
                2,
                "{fault:?} {wire:?} {mode:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_chunked_request_is_understood() {
    let server = FakeProvider::start().await.unwrap();
    let body = question(ProviderProtocol::Anthropic, Mode::Unary).to_string();
    let (first, second) = body.split_at(20);
    let call = format!(
        "POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len(),
    );
    assert_eq!(send(&server, call.as_bytes()).await.status(), 200);
    assert_eq!(server.calls()[0].raw_body(), body.as_bytes());
    assert_eq!(server.calls()[0].path(), "/v1/messages");
}

#[tokio::test]
async fn a_request_larger_than_any_buffer_arrives_whole() {
    let server = FakeProvider::start().await.unwrap();
    let text = "x".repeat(3 << 20);
    let body = serde_json::json!({"model": "m-1", "messages": [{"role": "user", "content": text}]})
        .to_string();
    assert_eq!(
        send(&server, &request(path(ProviderProtocol::OpenAi), &body, true)).await.status(),
        200
    );
    assert_eq!(server.calls()[0].prompt_bytes, 3 << 20);
}

#[tokio::test]
async fn an_expect_continue_request_gets_100_continue() {
    let server = FakeProvider::start().await.unwrap();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let body = question(ProviderProtocol::OpenAi, Mode::Unary).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut go_ahead = [0; 25];
    stream.read_exact(&mut go_ahead).await.unwrap();
    assert_eq!(&go_ahead, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw).await.unwrap();
    assert_eq!(Answer { raw, end: End::Closed }.status(), 200);
}

#[tokio::test]
async fn an_invalid_call_is_rejected_and_never_recorded() {
    let server = FakeProvider::start().await.unwrap();
    let too_large = b"POST /v1/messages HTTP/1.1\r\ncontent-length: 68719476736\r\n\r\n";
    for (bytes, status) in [
        (request("/v1/responses", "{}", true), 404),
        (b"GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n".to_vec(), 404),
        (request("/v1/messages", "{\"model\":", true), 400),
        (too_large.to_vec(), 413),
        (b"\0\0\0\0\r\n\r\n".to_vec(), 400),
    ] {
        assert_eq!(send(&server, &bytes).await.status(), status);
    }
    let stats = server.stats();
    assert_eq!((stats.rejected, stats.received, server.calls().len()), (5, 0, 0));
}

#[tokio::test]
async fn the_base_url_is_what_a_client_is_configured_with() {
    let server = FakeProvider::start().await.unwrap();
    let port = server.address().port();
    assert_eq!(server.base_url(ProviderProtocol::OpenAi), format!("http://127.0.0.1:{port}/v1"));
    assert_eq!(server.base_url(ProviderProtocol::Anthropic), format!("http://127.0.0.1:{port}/v1"));
    assert_eq!(server.base_url(ProviderProtocol::Ollama), format!("http://127.0.0.1:{port}"));
}

#[tokio::test]
async fn dropping_the_server_ends_every_connection_and_frees_the_port() {
    let server = FakeProvider::start().await.unwrap();
    server.always(ProviderFault::Hang);
    let address = server.address();
    let mut waiting = TcpStream::connect(address).await.unwrap();
    waiting.write_all(&request(path(ProviderProtocol::OpenAi), "{}", false)).await.unwrap();
    let mut idle = TcpStream::connect(address).await.unwrap();
    eventually(|| server.stats().in_flight == 1).await;
    drop(server);
    let mut rest = Vec::new();
    waiting.read_to_end(&mut rest).await.unwrap();
    idle.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
    let server = FakeProvider::start_on(address).await.unwrap();
    assert_eq!(ask(&server, ProviderProtocol::OpenAi, Mode::Unary).await.status(), 200);
}

#[tokio::test]
async fn a_panicking_responder_closes_only_its_own_connection() {
    let server = FakeProvider::start().await.unwrap();
    server.respond_with(|call| {
        if call.number == 0 { panic!("on purpose") } else { ProviderBehaviour::default() }
    });
    assert_eq!(ask(&server, ProviderProtocol::OpenAi, Mode::Unary).await.raw, b"");
    assert_eq!(ask(&server, ProviderProtocol::OpenAi, Mode::Unary).await.status(), 200);
    assert_eq!((server.stats().abandoned, server.stats().in_flight), (1, 0));
}
