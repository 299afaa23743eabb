//! Three languages that model providers speak, as pure functions: no socket, no clock, no key.
//!
//! Ours because the crates that offer it lose what we need: the class of a failure in the middle of a stream, cache breakpoints behind
//! some providers, the schema on others. `ARCHITECTURE.md` has the comparison.

mod anthropic;
mod failure;
mod framing;
mod ollama;
mod openai;
mod schema;

use moothall_core::model::{Block, FailureKind, ModelFailure, ModelRequest, OutputSchema, Usage};

use self::framing::Framing;
use crate::catalog::{ModelCard, Provider};
use crate::settings::Wire;

pub use self::failure::retry_after_ms;

/// The longest body, line or text that we take from a provider. A chat answer is thousands of times smaller.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A request as it goes out, without the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// What is added to the provider's base URL.
    pub path: &'static str,
    /// Headers of the wire, beside content type and key.
    pub headers: &'static [(&'static str, &'static str)],
    /// The JSON body.
    pub body: Vec<u8>,
    /// The window in tokens, where the request itself sets or knows it.
    pub window: Option<u64>,
}

/// How the answer should come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// In one piece.
    Whole,
    /// In pieces, as it is written.
    Streamed,
}

/// What a provider said, before anyone judged whether it can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The words.
    pub text: String,
    /// Why it stopped.
    pub stop: AnswerStop,
    /// The tokens, where the provider reported them.
    pub usage: Option<Usage>,
    /// The model as the provider names it.
    pub model: Option<String>,
}

/// Why an answer stopped, in the words that the wires share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStop {
    /// It had said what it wanted.
    End,
    /// It was cut off at the limit.
    MaxTokens,
    /// The model or its filter declined.
    Refusal,
    /// Anything else.
    Other,
}

/// How a key is put on the wire: the header's name and what stands before the key.
pub fn key_header(wire: Wire) -> (&'static str, &'static str) {
    match wire {
        Wire::AnthropicMessages => ("x-api-key", ""),
        Wire::OpenAiChat | Wire::OllamaChat => ("authorization", "Bearer "),
    }
}

/// Writes a request in the provider's language. The same request always gives the same bytes.
pub fn encode(
    provider: &Provider,
    card: &ModelCard,
    request: &ModelRequest,
    delivery: Delivery,
) -> Result<Encoded, ModelFailure> {
    let in_words = request
        .schema
        .as_ref()
        .filter(|_| !card.structured)
        .map(|schema| with_schema_in_words(request, schema));
    let request = in_words.as_ref().unwrap_or(request);
    let encoded = match provider.wire {
        Wire::OpenAiChat => openai::encode(provider, card, request, delivery),
        Wire::AnthropicMessages => anthropic::encode(provider, card, request, delivery),
        Wire::OllamaChat => ollama::encode(card, request, delivery),
    };
    encoded.map_err(|error| {
        ModelFailure::new(
            FailureKind::BadRequest,
            format!("the request cannot be written as JSON: {error}"),
        )
    })
}

/// Models without a schema mode are told the schema in words; whether they follow it is checked like any other answer.
fn with_schema_in_words(request: &ModelRequest, schema: &OutputSchema) -> ModelRequest {
    let mut request = request.clone();
    request.system.push(Block::new(format!(
        "Answer with one JSON value that follows this JSON schema, and with nothing else:\n{}",
        schema.text()
    )));
    request
}

/// Reads an answer that came in one piece.
pub fn decode(
    wire: Wire,
    status: u16,
    retry_after_ms: Option<u64>,
    body: &[u8],
) -> Result<Answer, ModelFailure> {
    if !(200..300).contains(&status) {
        return Err(failure::of_status(status, retry_after_ms, body));
    }
    let answer = match wire {
        Wire::OpenAiChat => openai::decode(body),
        Wire::AnthropicMessages => anthropic::decode(body),
        Wire::OllamaChat => ollama::decode(body),
    };
    answer.map_err(|failure| failure.with_status(status))
}

/// Reads an answer that comes in pieces: push bytes as they arrive, then ask for the whole.
#[derive(Debug)]
pub struct StreamDecoder {
    framing: Framing,
    state: State,
    text_bytes: usize,
}

#[derive(Debug)]
enum State {
    OpenAi(openai::Stream),
    Anthropic(anthropic::Stream),
    Ollama(ollama::Stream),
}

impl StreamDecoder {
    /// A decoder for one answer.
    pub fn new(wire: Wire) -> Self {
        let (framing, state) = match wire {
            Wire::OpenAiChat => {
                (Framing::server_sent_events(), State::OpenAi(openai::Stream::default()))
            }
            Wire::AnthropicMessages => {
                (Framing::server_sent_events(), State::Anthropic(anthropic::Stream::default()))
            }
            Wire::OllamaChat => (Framing::lines(), State::Ollama(ollama::Stream::default())),
        };
        Self { framing, state, text_bytes: 0 }
    }

    /// Takes the next bytes, however they were cut, and hands out the text that they complete.
    pub fn push(
        &mut self,
        bytes: &[u8],
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), ModelFailure> {
        self.framing.push(bytes)?;
        while let Some(message) = self.framing.next_message() {
            let text = match &mut self.state {
                State::OpenAi(stream) => stream.message(&message)?,
                State::Anthropic(stream) => stream.message(&message)?,
                State::Ollama(stream) => stream.message(&message)?,
            };
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                self.text_bytes += text.len();
                if self.text_bytes > MAX_BODY_BYTES {
                    return Err(ModelFailure::new(FailureKind::Malformed, "the answer has no end"));
                }
                on_text(&text);
            }
        }
        Ok(())
    }

    /// The whole answer, if the provider really ended it. A stream that just stops is not an answer.
    pub fn finish(self) -> Result<Answer, ModelFailure> {
        let answer = match self.state {
            State::OpenAi(stream) => stream.finish(),
            State::Anthropic(stream) => stream.finish(),
            State::Ollama(stream) => stream.finish(),
        };
        answer.ok_or_else(|| {
            ModelFailure::new(FailureKind::Truncated, "the stream ended before the answer did")
        })
    }
}

/// The failure of an answer that is not what its wire promises.
fn malformed(error: impl std::fmt::Display) -> ModelFailure {
    ModelFailure::new(
        FailureKind::Malformed,
        format!("the answer is not what this provider's API promises: {error}"),
    )
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
