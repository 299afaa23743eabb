//! Tests which behaviour a call gets.

use moothall_testkit::{FakeProvider, ProviderBehaviour, ProviderFault, ProviderProtocol};

use crate::client::{Mode, ask};

async fn text(server: &FakeProvider) -> String {
    ask(server, ProviderProtocol::OpenAi, Mode::Unary)
        .await
        .text(ProviderProtocol::OpenAi, Mode::Unary)
}

#[tokio::test]
async fn the_script_is_played_in_order_before_the_default() {
    let server = FakeProvider::start().await.unwrap();
    server.always(ProviderBehaviour::text("default"));
    server.script([ProviderBehaviour::text("one"), ProviderBehaviour::text("two")]);
    server.script([ProviderFault::ServerError]);
    assert_eq!(text(&server).await, "one");
    assert_eq!(text(&server).await, "two");
    assert_eq!(server.script_left(), 1);
    assert_eq!(ask(&server, ProviderProtocol::OpenAi, Mode::Unary).await.status(), 500);
    assert_eq!(text(&server).await, "default");
    assert_eq!(text(&server).await, "default");
}

#[tokio::test]
async fn faults_and_replies_mix_in_one_script() {
    let server = FakeProvider::start().await.unwrap();
    server.script([ProviderFault::Overloaded.into(), ProviderBehaviour::text("recovered")]);
    assert_eq!(ask(&server, ProviderProtocol::Anthropic, Mode::Unary).await.status(), 529);
    assert_eq!(text(&server).await, "recovered");
}

#[tokio::test]
async fn a_function_sees_each_call_with_its_number_and_its_request() {
    let server = FakeProvider::start().await.unwrap();
    server.respond_with(|call| {
        ProviderBehaviour::text(format!(
            "{} {:?} {} {}",
            call.number,
            call.wire,
            call.stream,
            call.body()["messages"][0]["role"]
        ))
    });
    assert_eq!(text(&server).await, "0 OpenAi false \"user\"");
    let answer = ask(&server, ProviderProtocol::Ollama, Mode::Streamed).await;
    assert_eq!(answer.text(ProviderProtocol::Ollama, Mode::Streamed), "1 Ollama true \"user\"");
}

#[tokio::test]
async fn the_script_comes_before_the_function_and_the_last_default_wins() {
    let server = FakeProvider::start().await.unwrap();
    server.respond_with(|_| ProviderBehaviour::text("function"));
    server.script([ProviderBehaviour::text("script")]);
    assert_eq!(text(&server).await, "script");
    assert_eq!(text(&server).await, "function");
    server.always(ProviderBehaviour::text("always"));
    assert_eq!(text(&server).await, "always");
}

#[tokio::test]
async fn calls_are_recorded_in_order_with_everything_sent() {
    let server = FakeProvider::start().await.unwrap();
    ask(&server, ProviderProtocol::Anthropic, Mode::Streamed).await;
    ask(&server, ProviderProtocol::Ollama, Mode::Unary).await;
    let calls = server.calls();
    let brief: Vec<_> = calls
        .iter()
        .map(|call| (call.number, call.path(), call.stream, call.model.as_str()))
        .collect();
    assert_eq!(brief, [(0, "/v1/messages", true, "m-1"), (1, "/api/chat", false, "m-1")]);
    assert_eq!(calls[0].header("Host"), Some("fake"));
    assert_eq!(calls[0].body()["system"], "Be brief.");
    assert!(calls[0].arrived <= calls[1].arrived);
}
