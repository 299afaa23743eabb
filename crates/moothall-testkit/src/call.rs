//! A received model call.

use std::{fmt, time::Instant};

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::{error_response::ErrorResponse, protocol::ProviderProtocol, request::MAX_HEADERS};

/// A received model call.
///
/// Keeps the bytes of the request and parses them on demand, so benchmarks do not pay for fields
/// they do not read.
#[derive(Clone)]
pub struct ProviderCall {
    /// Counts from zero in order of arrival: the index into
    /// [`FakeProvider::calls`](crate::FakeProvider::calls).
    pub number: u64,
    /// The protocol, determined by the path.
    pub wire: ProviderProtocol,
    /// The requested model; empty if the request names none.
    pub model: String,
    /// Whether the client wants a stream. If the request does not say, the protocol's default
    /// applies.
    pub stream: bool,
    /// Bytes of text in the system prompt and all messages.
    pub prompt_bytes: usize,
    /// When the last byte of the request arrived.
    pub arrived: Instant,
    /// Whether a stream must include usage. Optional only in the OpenAI protocol.
    pub(crate) wants_usage: bool,
    head: Bytes,
    body: Bytes,
}

impl ProviderCall {
    /// Parses a request, or returns the error that a provider would send.
    pub(crate) fn read(
        wire: ProviderProtocol,
        head: Bytes,
        body: Bytes,
    ) -> Result<Self, ErrorResponse> {
        let fields: CallFields =
            serde_json::from_slice(&body).map_err(|_| ErrorResponse::NotJson)?;
        Ok(Self {
            number: 0,
            wire,
            model: fields.model.unwrap_or_default(),
            stream: fields.stream.unwrap_or(wire == ProviderProtocol::Ollama),
            prompt_bytes: fields.messages.0 + fields.system.0,
            arrived: Instant::now(),
            wants_usage: wire != ProviderProtocol::OpenAi
                || fields.stream_options.is_some_and(|options| options.include_usage),
            head,
            body,
        })
    }

    /// The request target: path and query.
    pub fn path(&self) -> &str {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        // Cannot fail: the head was parsed on arrival.
        let _ = request.parse(&self.head);
        request.path.unwrap_or_default()
    }

    /// All headers in order. A value that is not UTF-8 is returned as an empty string.
    pub fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        // Cannot fail: the head was parsed on arrival.
        let _ = request.parse(&self.head);
        request
            .headers
            .iter()
            .map(|header| (header.name, std::str::from_utf8(header.value).unwrap_or_default()))
            .collect()
    }

    /// The first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers()
            .into_iter()
            .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The body as JSON.
    pub fn body(&self) -> Value {
        // Cannot fail: the body was parsed on arrival.
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The unparsed body, for tests that compare bytes.
    pub fn raw_body(&self) -> &[u8] {
        &self.body
    }
}

impl fmt::Debug for ProviderCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without headers: they contain API keys, and failing assertions print this.
        formatter
            .debug_struct("ProviderCall")
            .field("number", &self.number)
            .field("wire", &self.wire)
            .field("path", &self.path())
            .field("model", &self.model)
            .field("stream", &self.stream)
            .field("prompt_bytes", &self.prompt_bytes)
            .field("body", &self.body())
            .finish_non_exhaustive()
    }
}

/// The fields of a request that affect the response.
#[derive(Deserialize)]
struct CallFields {
    model: Option<String>,
    stream: Option<bool>,
    stream_options: Option<CallStreamOptions>,
    #[serde(default)]
    messages: TextBytes,
    #[serde(default)]
    system: TextBytes,
}

#[derive(Deserialize)]
struct CallStreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// Counts the bytes of text in messages of any shape without keeping the text. Strings count, lists
/// are summed, and in objects only `content` and `text` count.
#[derive(Default)]
struct TextBytes(usize);

impl<'de> Deserialize<'de> for TextBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("messages")
    }

    fn visit_str<E>(self, text: &str) -> Result<usize, E> {
        Ok(text.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
        let mut sum = 0;
        while let Some(TextBytes(bytes)) = items.next_element()? {
            sum += bytes;
        }
        Ok(sum)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<usize, A::Error> {
        let mut sum = 0;
        while let Some(field) = fields.next_key::<TextField>()? {
            match field {
                TextField::Content | TextField::Text => sum += fields.next_value::<TextBytes>()?.0,
                TextField::Other => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(sum)
    }

    fn visit_unit<E>(self) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_f64<E>(self, _: f64) -> Result<usize, E> {
        Ok(0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum TextField {
    Content,
    Text,
    #[serde(other)]
    Other,
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
