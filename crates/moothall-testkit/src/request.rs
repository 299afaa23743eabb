//! Parses HTTP/1.1 requests from a buffer, without I/O.

pub(crate) mod chunked;

use crate::{error_response::ErrorResponse, protocol::ProviderProtocol};

/// Maximum size of a request body.
pub(crate) const MAX_BODY_BYTES: usize = 64 << 20;

/// Maximum size of a request head, and of incomplete framing in a chunked body.
const MAX_HEAD_BYTES: usize = 64 << 10;

pub(crate) const MAX_HEADERS: usize = 100;

/// The parts of a request head that the server needs before it reads the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHead {
    /// Size of the head in bytes, including the empty line.
    pub(crate) length: usize,
    /// `None` if the path belongs to no provider.
    pub(crate) wire: Option<ProviderProtocol>,
    pub(crate) framing: BodyFraming,
    pub(crate) keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
}

/// How the end of the body is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    Length(usize),
    Chunked,
}

/// Parses the head at the start of `bytes`. `None` means that it is incomplete.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Option<RequestHead>, ErrorResponse> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD_BYTES => return Ok(None),
        Ok(httparse::Status::Partial) | Err(_) => return Err(ErrorResponse::BrokenHttp),
    };
    let mut head = RequestHead {
        length,
        wire: ProviderProtocol::of_request(
            request.method.unwrap_or_default(),
            request.path.unwrap_or_default(),
        ),
        framing: BodyFraming::Length(0),
        keep_alive: request.version == Some(1),
        expects_continue: false,
    };
    for header in request.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            let length: usize = length.ok_or(ErrorResponse::BrokenHttp)?;
            if length > MAX_BODY_BYTES {
                return Err(ErrorResponse::TooLarge);
            }
            // Chunked encoding overrides `content-length` if a client sends both.
            if head.framing != BodyFraming::Chunked {
                head.framing = BodyFraming::Length(length);
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(ErrorResponse::BrokenHttp);
            }
            head.framing = BodyFraming::Chunked;
        } else if header.name.eq_ignore_ascii_case("connection") {
            head.keep_alive &= !value.eq_ignore_ascii_case(b"close");
        } else if header.name.eq_ignore_ascii_case("expect") {
            head.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
        }
    }
    Ok(Some(head))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
