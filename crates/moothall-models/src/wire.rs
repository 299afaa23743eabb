//! Three languages that model providers speak, as pure functions: no socket, no clock, no key.
//!
//! Ours because the crates that offer it lose what we need: the class of a failure in the middle of
//! a stream, cache breakpoints behind some providers, the schema on others. `ARCHITECTURE.md` has
//! the comparison.

mod anthropic;
mod failure;
mod framing;
mod ollama;
mod openai;
mod parts;
mod schema;

use moothall_core::model::{Block, FailureKind, ModelFailure, ModelRequest, OutputSchema, Usage};

use serde::Serialize;

use self::framing::Framing;
use crate::catalog::{ModelCard, Provider};
use crate::settings::Wire;

pub use self::failure::retry_after_ms;

/// The longest body, line or text that we take from a provider. A chat answer is thousands of times
/// smaller.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Where a wire's requests go, and what every one of them carries beside content type and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// What is added to the provider's base URL.
    pub path: &'static str,
    /// Headers of the wire.
    pub headers: &'static [(&'static str, &'static str)],
    /// The header that carries the key.
    pub key_header: &'static str,
    /// What stands before the key in it.
    pub key_prefix: &'static str,
}

/// The endpoint of a wire.
pub fn endpoint(wire: Wire) -> Endpoint {
    let bearer =
        |path| Endpoint { path, headers: &[], key_header: "authorization", key_prefix: "Bearer " };
    match wire {
        Wire::OpenAiChat => bearer("/chat/completions"),
        Wire::OllamaChat => bearer("/api/chat"),
        Wire::AnthropicMessages => Endpoint {
            path: "/messages",
            headers: &[("anthropic-version", "2023-06-01")],
            key_header: "x-api-key",
            key_prefix: "",
        },
    }
}

/// A request as it goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
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
    if provider.wire == Wire::OllamaChat
        && let Some(window) =
            card.context.filter(|window| request.prompt_tokens_expected() > *window)
    {
        // Older servers would drop its beginning and say nothing.
        let detail = format!("the prompt does not fit the model's window of {window} tokens");
        return Err(ModelFailure::new(FailureKind::ContextOverflow, detail));
    }
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

/// Models without a schema mode are told the schema in words; whether they follow it is checked
/// like any other answer.
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
        Self { framing, state }
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
            let held_bytes = match &self.state {
                State::OpenAi(stream) => stream.text_bytes(),
                State::Anthropic(stream) => stream.text_bytes(),
                State::Ollama(stream) => stream.text_bytes(),
            };
            if held_bytes > MAX_BODY_BYTES {
                return Err(ModelFailure::new(FailureKind::Malformed, "the answer has no end"));
            }
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                on_text(&text);
            }
        }
        Ok(())
    }

    /// The whole answer, if the provider really ended it. A stream that just stops is not an
    /// answer.
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

/// Writes a body into one allocation: prompts are long, and a buffer that grows copies them again
/// and again.
fn write_body<T: Serialize>(
    request: &ModelRequest,
    body: &T,
) -> Result<Vec<u8>, serde_json::Error> {
    const FRAME_BYTES: usize = 1024;
    let prompt: usize = request.prompt_texts().map(str::len).sum();
    // An eighth for escapes: most text has a few quotes and line breaks.
    let mut bytes = Vec::with_capacity(prompt + prompt / 8 + FRAME_BYTES);
    serde_json::to_writer(&mut bytes, body)?;
    Ok(bytes)
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

#[cfg(test)]
#[path = "wire_stream_tests.rs"]
mod stream_tests;
