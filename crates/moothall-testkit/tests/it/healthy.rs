//! Responses without faults of each protocol, byte by byte.

use moothall_testkit::{FakeProvider, ProviderBehaviour, ProviderProtocol, ReplyUsage};
use serde_json::json;

use crate::client::{Mode, ask_once, every_way, path, request, send};

const USAGE: ReplyUsage = ReplyUsage { input: 10, cache_read: 200, cache_write: 30, output: 4 };

async fn bytes(wire: ProviderProtocol, mode: Mode) -> String {
    let (answer, _) =
        ask_once(ProviderBehaviour::text("Forty-two, of course.").with_usage(USAGE), wire, mode)
            .await;
    // Snapshots normalize line endings, so carriage returns are escaped.
    String::from_utf8(answer.raw).unwrap().replace('\r', "\\r")
}

#[tokio::test]
async fn an_openai_answer_has_the_real_shape() {
    insta::assert_snapshot!(bytes(ProviderProtocol::OpenAi, Mode::Unary).await);
}

#[tokio::test]
async fn an_openai_stream_has_the_real_shape() {
    insta::assert_snapshot!(bytes(ProviderProtocol::OpenAi, Mode::Streamed).await);
}

#[tokio::test]
async fn an_anthropic_answer_has_the_real_shape() {
    insta::assert_snapshot!(bytes(ProviderProtocol::Anthropic, Mode::Unary).await);
}

#[tokio::test]
async fn an_anthropic_stream_has_the_real_shape() {
    insta::assert_snapshot!(bytes(ProviderProtocol::Anthropic, Mode::Streamed).await);
}

#[tokio::test]
async fn an_ollama_answer_has_the_real_shape() {
    insta::assert_snapshot!(bytes(ProviderProtocol::Ollama, Mode::Unary).await);
}

#[tokio::test]
async fn an_ollama_stream_has_the_real_shape() {
    insta::assert_snapshot!(bytes(ProviderProtocol::Ollama, Mode::Streamed).await);
}

#[tokio::test]
async fn a_text_of_any_script_and_length_arrives_unchanged() {
    let text = "\u{201c}Zw\u{f6}lf Boxk\u{e4}mpfer\u{201d}\n\t\u{1f980} {\"json\": [1, 2]} \\ "
        .repeat(100);
    for (wire, mode) in every_way() {
        let (answer, _) = ask_once(ProviderBehaviour::text(&text), wire, mode).await;
        assert_eq!(answer.text(wire, mode), text, "{wire:?} {mode:?}");
    }
}

#[tokio::test]
async fn a_long_anthropic_stream_has_pings_between_its_deltas() {
    let (answer, _) = ask_once(
        ProviderBehaviour::text("word ".repeat(500)),
        ProviderProtocol::Anthropic,
        Mode::Streamed,
    )
    .await;
    let pings = answer.events().iter().filter(|event| event["type"] == "ping").count();
    assert_eq!(pings, 1 + 2500_usize.div_ceil(16) / 64);
}

#[tokio::test]
async fn an_openai_stream_has_no_usage_unless_asked() {
    let server = FakeProvider::start().await.unwrap();
    let body = json!({"model": "m-1", "messages": [], "stream": true}).to_string();
    let answer = send(&server, &request(path(ProviderProtocol::OpenAi), &body, true)).await;
    assert_eq!(answer.events().iter().filter(|event| event.get("usage").is_some()).count(), 0);
    assert_eq!(answer.events().last(), Some(&json!("[DONE]")));
    assert_eq!(server.stats().bills[0].reported, None);
}

#[tokio::test]
async fn an_answer_names_the_requested_model_by_default() {
    for (wire, mode) in every_way() {
        let model = |answer: &crate::client::Answer| {
            let first = if mode == Mode::Unary { answer.json() } else { answer.events().remove(0) };
            first
                .pointer("/message/model")
                .or_else(|| first.get("model"))
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        let (answer, _) = ask_once(ProviderBehaviour::text("yes"), wire, mode).await;
        assert_eq!(model(&answer), "m-1", "{wire:?} {mode:?}");
        let (answer, _) =
            ask_once(ProviderBehaviour::text("yes").with_model("m-2"), wire, mode).await;
        assert_eq!(model(&answer), "m-2", "{wire:?} {mode:?}");
    }
}
