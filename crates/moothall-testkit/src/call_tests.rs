use bytes::Bytes;
use serde_json::json;

use super::ProviderCall;
use crate::{error_response::ErrorResponse, protocol::ProviderProtocol};

const HEAD: &[u8] =
    b"POST /v1/messages?beta=1 HTTP/1.1\r\nX-Api-Key: secret-key\r\naccept: */*\r\n\r\n";

fn call(wire: ProviderProtocol, body: &serde_json::Value) -> ProviderCall {
    ProviderCall::read(wire, Bytes::from_static(HEAD), Bytes::from(body.to_string())).unwrap()
}

#[track_caller]
fn check_prompt_bytes(body: serde_json::Value, expected: usize) {
    assert_eq!(call(ProviderProtocol::Anthropic, &body).prompt_bytes, expected);
}

#[test]
fn the_prompt_is_measured_in_every_shape_of_content() {
    check_prompt_bytes(json!({}), 0);
    check_prompt_bytes(json!({"messages": [{"role": "user", "content": "four"}]}), 4);
    check_prompt_bytes(
        json!({"messages": [{"role": "user", "content": "\u{e9}\n\"quoted\""}]}),
        11,
    );
    check_prompt_bytes(
        json!({
            "system": [{"type": "text", "text": "four", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "four"}, {"type": "image", "source": 1.5}]},
                {"role": "assistant", "content": null, "index": -1, "done": true},
            ],
        }),
        8,
    );
}

#[test]
fn only_ollama_streams_by_default() {
    let stream = |wire, body| call(wire, &body).stream;
    assert!(!stream(ProviderProtocol::OpenAi, json!({})));
    assert!(!stream(ProviderProtocol::Anthropic, json!({})));
    assert!(stream(ProviderProtocol::Ollama, json!({})));
    assert!(!stream(ProviderProtocol::Ollama, json!({"stream": false})));
    assert!(stream(ProviderProtocol::OpenAi, json!({"stream": true})));
}

#[test]
fn a_body_that_is_not_json_is_refused() {
    let read = ProviderCall::read(
        ProviderProtocol::OpenAi,
        Bytes::from_static(HEAD),
        Bytes::from_static(b"{\"model\":"),
    );
    assert_eq!(read.err(), Some(ErrorResponse::NotJson));
}

#[test]
fn path_headers_and_body_can_be_read_back() {
    let body = json!({"model": "m", "zebra": 1, "apple": 2});
    let call = call(ProviderProtocol::Anthropic, &body);
    assert_eq!(call.path(), "/v1/messages?beta=1");
    assert_eq!(call.header("x-api-key"), Some("secret-key"));
    assert_eq!(call.header("missing"), None);
    assert_eq!(call.headers().len(), 2);
    assert_eq!(call.body(), body);
    assert_eq!(call.raw_body(), body.to_string().as_bytes());
    assert_eq!(call.model, "m");
}

#[test]
fn debug_output_has_no_headers_and_so_no_keys() {
    assert!(!format!("{:?}", call(ProviderProtocol::Anthropic, &json!({}))).contains("secret-key"));
}
