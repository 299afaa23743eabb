//! HTTP/1.1 requests, read out of a buffer without any I/O.

pub(crate) mod chunked;

use crate::{problem::Problem, wire::Wire};

/// The largest request body that is read.
pub(crate) const LARGEST_BODY: usize = 64 << 20;

/// The largest head, and the most that a chunked body may spend on framing before it makes
/// progress.
const LARGEST_HEAD: usize = 64 << 10;

pub(crate) const MOST_HEADERS: usize = 100;

/// What the server must know of a request before it reads the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Bytes of the head, the empty line included.
    pub(crate) length: usize,
    /// `None` for a path that no provider has.
    pub(crate) wire: Option<Wire>,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    /// Whether the client waits for a `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
}

/// How the body tells its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

/// Parses the head at the start of `bytes`, or gives `None` while it is not all there.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Problem> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < LARGEST_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) | Err(_) => return Err(Problem::BrokenHttp),
    };
    let mut head = Head {
        length,
        wire: Wire::of_request(
            request.method.unwrap_or_default(),
            request.path.unwrap_or_default(),
        ),
        framing: Framing::Length(0),
        keep_alive: request.version == Some(1),
        expects_continue: false,
    };
    for header in request.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            let length: usize = length.ok_or(Problem::BrokenHttp)?;
            if length > LARGEST_BODY {
                return Err(Problem::TooLarge);
            }
            // A chunked body has no length, whatever a confused client says.
            if head.framing != Framing::Chunked {
                head.framing = Framing::Length(length);
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Problem::BrokenHttp);
            }
            head.framing = Framing::Chunked;
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
