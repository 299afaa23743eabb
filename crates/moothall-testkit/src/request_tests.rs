use bytes::BytesMut;

use super::{BodyFraming, MAX_BODY_BYTES, RequestHead, chunked::ChunkedDecoder, parse_head};
use crate::{error_response::ErrorResponse, protocol::ProviderProtocol};

#[track_caller]
fn check(lines: &str, expected: Result<Option<RequestHead>, ErrorResponse>) {
    assert_eq!(parse_head(lines.replace('\n', "\r\n").as_bytes()), expected);
}

fn head(length: usize) -> RequestHead {
    RequestHead {
        length,
        wire: Some(ProviderProtocol::OpenAi),
        framing: BodyFraming::Length(0),
        keep_alive: true,
        expects_continue: false,
    }
}

#[test]
fn an_incomplete_request_head_is_waited_for() {
    check("", Ok(None));
    check("POST /v1/chat/completions HTTP/1.1\ncontent-length: 3\n", Ok(None));
}

#[test]
fn the_wire_format_is_recognised_by_the_end_of_the_path() {
    let wire = |line: &str| {
        parse_head(format!("{line} HTTP/1.1\r\n\r\n").as_bytes()).unwrap().unwrap().wire
    };
    assert_eq!(
        wire("POST /proxy/openai/v1/chat/completions?api-version=1"),
        Some(ProviderProtocol::OpenAi)
    );
    assert_eq!(wire("POST /v1/messages"), Some(ProviderProtocol::Anthropic));
    assert_eq!(wire("POST /api/chat"), Some(ProviderProtocol::Ollama));
    assert_eq!(wire("POST /v1/responses"), None);
    assert_eq!(wire("GET /v1/messages"), None);
}

#[test]
fn http_1_0_or_connection_close_disables_keep_alive() {
    check(
        "POST /v1/chat/completions HTTP/1.0\n\n",
        Ok(Some(RequestHead { keep_alive: false, ..head(38) })),
    );
    check(
        "POST /v1/chat/completions HTTP/1.1\nConnection: Close\n\n",
        Ok(Some(RequestHead { keep_alive: false, ..head(57) })),
    );
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    check(
        &format!("POST /v1/chat/completions HTTP/1.1\ncontent-length: {}\n\n", MAX_BODY_BYTES + 1),
        Err(ErrorResponse::TooLarge),
    );
}

#[test]
fn an_invalid_request_is_broken_http() {
    check("\u{1}\u{2}\u{3}\n\n", Err(ErrorResponse::BrokenHttp));
    check("POST / HTTP/1.1\ncontent-length: many\n\n", Err(ErrorResponse::BrokenHttp));
    check("POST / HTTP/1.1\ntransfer-encoding: gzip\n\n", Err(ErrorResponse::BrokenHttp));
}

#[test]
fn a_chunked_body_is_decoded_for_any_chunking() {
    let encoded = b"5\r\nhello\r\n1;extension=1\r\n \r\n5\r\nworld\r\n0\r\ntrailer: x\r\n\r\nnext";
    for size in 1..=encoded.len() {
        let mut decoder = ChunkedDecoder::default();
        let mut buffer = BytesMut::new();
        let mut decoded = None;
        for piece in encoded.chunks(size) {
            buffer.extend_from_slice(piece);
            if decoded.is_none() {
                decoded = decoder.feed(&mut buffer).unwrap();
            }
        }
        assert_eq!(decoded.as_deref(), Some(&b"hello world"[..]), "pieces of {size}");
        assert_eq!(&buffer[..], b"next", "pieces of {size}");
    }
}

#[test]
fn a_chunked_body_over_the_limit_is_refused_at_its_announcement() {
    let mut buffer = BytesMut::from(format!("{:x}\r\n", MAX_BODY_BYTES + 1).as_bytes());
    assert_eq!(ChunkedDecoder::default().feed(&mut buffer), Err(ErrorResponse::TooLarge));
}

#[test]
fn a_chunk_longer_than_its_size_is_broken_http() {
    let mut buffer = BytesMut::from(&b"2\r\nhello\r\n"[..]);
    assert_eq!(ChunkedDecoder::default().feed(&mut buffer), Err(ErrorResponse::BrokenHttp));
}
