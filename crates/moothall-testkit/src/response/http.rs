//! HTTP response heads.

use crate::protocol::ProviderProtocol;

/// A typical error page of a proxy.
pub(crate) const WEB_PAGE: &[u8] =
    b"<!doctype html>\n<html><head><title>Bad gateway</title></head><body><h1>Bad gateway</h1></body></html>\n";

pub(crate) struct ResponseHead<'a> {
    pub(crate) status: u16,
    pub(crate) content_type: &'a str,
    pub(crate) length: BodyLength,
    /// A complete header line without its line ending.
    pub(crate) retry_after: Option<&'a str>,
}

/// How the end of the body is determined.
#[derive(Clone, Copy)]
pub(crate) enum BodyLength {
    Known(usize),
    Chunked,
}

impl ResponseHead<'_> {
    pub(crate) fn render(&self, wire: ProviderProtocol, request_id: &str) -> String {
        let Self { status, content_type, length, retry_after } = self;
        let reason = reason(*status);
        let mut head = format!("HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\n");
        match length {
            BodyLength::Known(length) => head += &format!("content-length: {length}\r\n"),
            BodyLength::Chunked => head += "transfer-encoding: chunked\r\n",
        }
        for part in match wire {
            ProviderProtocol::OpenAi => ["x-request-id: ", request_id, "\r\n"],
            ProviderProtocol::Anthropic => ["request-id: ", request_id, "\r\n"],
            ProviderProtocol::Ollama => ["", "", ""],
        } {
            head += part;
        }
        if let Some(line) = retry_after {
            head += line;
            head += "\r\n";
        }
        head += "\r\n";
        head
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Site Overloaded",
        _ => "Unknown",
    }
}
