//! One call as it arrived.

use std::{fmt, time::Instant};

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::{problem::Problem, request::MOST_HEADERS, wire::Wire};

/// One call as it arrived.
///
/// Keeps the bytes of the request and parses them when asked, so that a bench does not pay for what
/// it never looks at.
#[derive(Clone)]
pub struct Call {
    /// Counts from zero in order of arrival, and so is the index into
    /// [`FakeProvider::calls`](crate::FakeProvider::calls).
    pub number: u64,
    /// The wire, told by the path.
    pub wire: Wire,
    /// The model asked for; empty if none was named.
    pub model: String,
    /// Whether the client wants a stream, by the wire's own default where it does not say.
    pub stream: bool,
    /// Bytes of text in the system prompt and all messages.
    pub prompt_bytes: usize,
    /// When the last byte of the request had arrived.
    pub arrived: Instant,
    /// Whether a stream shall carry usage. Only the OpenAI wire asks.
    pub(crate) wants_usage: bool,
    head: Bytes,
    body: Bytes,
}

impl Call {
    /// Understands a request, or says why a provider would not.
    pub(crate) fn read(wire: Wire, head: Bytes, body: Bytes) -> Result<Self, Problem> {
        let glance: Glance = serde_json::from_slice(&body).map_err(|_| Problem::NotJson)?;
        Ok(Self {
            number: 0,
            wire,
            model: glance.model.unwrap_or_default(),
            stream: glance.stream.unwrap_or(wire == Wire::Ollama),
            prompt_bytes: glance.messages.0 + glance.system.0,
            arrived: Instant::now(),
            wants_usage: wire != Wire::OpenAi
                || glance.stream_options.is_some_and(|options| options.include_usage),
            head,
            body,
        })
    }

    /// The request target: path and query.
    pub fn path(&self) -> &str {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        // The head has been parsed before, so this cannot fail.
        let _ = request.parse(&self.head);
        request.path.unwrap_or_default()
    }

    /// All headers in order. A value that is not UTF-8 comes out empty.
    pub fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        // The head has been parsed before, so this cannot fail.
        let _ = request.parse(&self.head);
        request
            .headers
            .iter()
            .map(|header| (header.name, std::str::from_utf8(header.value).unwrap_or_default()))
            .collect()
    }

    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers()
            .into_iter()
            .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The body as JSON.
    pub fn body(&self) -> Value {
        // The body has been parsed before, so this cannot fail.
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as it came, for tests that compare bytes.
    pub fn raw_body(&self) -> &[u8] {
        &self.body
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No headers: they carry keys, and a failing assertion prints this.
        formatter
            .debug_struct("Call")
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

/// The little of a request that an answer depends on.
#[derive(Deserialize)]
struct Glance {
    model: Option<String>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    messages: TextBytes,
    #[serde(default)]
    system: TextBytes,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// Counts the bytes of text in messages of any shape, without keeping the text: strings count,
/// lists add up, and of an object only its `content` and `text` count.
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
        while let Some(field) = fields.next_key::<Field>()? {
            match field {
                Field::Content | Field::Text => sum += fields.next_value::<TextBytes>()?.0,
                Field::Other => {
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
enum Field {
    Content,
    Text,
    #[serde(other)]
    Other,
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
