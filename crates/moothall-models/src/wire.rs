//! The three API formats of model providers, as pure functions: no socket, no clock, no key.
//!
//! Our own code, because existing crates lose information we need: the kind of a failure in the
//! middle of a stream, cache breakpoints for some providers, the schema for others.
//! `ARCHITECTURE.md` has the comparison.

mod anthropic;
mod failure;
mod framing;
mod ollama;
mod openai;
mod parts;
mod schema;

use moothall_core::model::{
    FailureKind, ModelFailure, ModelRequest, OutputSchema, PromptBlock, TokenUsage,
};

use serde::Serialize;

use self::framing::MessageFramer;
use crate::catalog::{ModelCard, ModelProvider};
use crate::settings::{AuthScheme, WireFormat};

pub use self::failure::retry_after_ms;

/// Size limit of a body, line or text from a provider. Chat replies are thousands of times smaller.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The path and headers of an API format, apart from content type and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiEndpoint {
    /// Appended to the provider's base URL.
    pub path: &'static str,
    pub headers: &'static [(&'static str, &'static str)],
    /// How the API key is sent, unless the provider has its own way.
    pub auth: AuthScheme,
}

pub fn endpoint(wire: WireFormat) -> ApiEndpoint {
    let bearer = |path| ApiEndpoint { path, headers: &[], auth: AuthScheme::Bearer };
    match wire {
        WireFormat::OpenAiChat => bearer("/chat/completions"),
        WireFormat::OllamaChat => bearer("/api/chat"),
        WireFormat::AnthropicMessages => ApiEndpoint {
            path: "/messages",
            headers: &[("anthropic-version", "2023-06-01")],
            auth: AuthScheme::XApiKey,
        },
    }
}

/// An encoded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRequest {
    pub body: Vec<u8>,
    /// The context window in tokens, if the request sets it or it is known.
    pub window: Option<u64>,
}

/// How the reply is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyDelivery {
    /// In one response.
    Whole,
    /// As a stream.
    Streamed,
}

/// A decoded reply, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawReply {
    pub text: String,
    pub stop: RawStopReason,
    /// The token counts, if reported.
    pub usage: Option<TokenUsage>,
    /// The model name reported by the provider.
    pub model: Option<String>,
}

/// Why a reply stopped, common to all API formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawStopReason {
    /// The reply is complete.
    End,
    /// The reply reached the token limit.
    MaxTokens,
    /// The model or a content filter refused.
    Refusal,
    Other,
}

/// Encodes a request in the provider's API format. Deterministic.
pub fn encode(
    provider: &ModelProvider,
    card: &ModelCard,
    request: &ModelRequest,
    delivery: ReplyDelivery,
) -> Result<EncodedRequest, ModelFailure> {
    let with_schema_text = request
        .schema
        .as_ref()
        .filter(|_| !card.structured)
        .map(|schema| append_schema_text(request, schema));
    let request = with_schema_text.as_ref().unwrap_or(request);
    if provider.wire == WireFormat::OllamaChat
        && let Some(window) =
            card.context.filter(|window| request.prompt_tokens_expected() > *window)
    {
        // Older servers drop the start of the prompt without an error.
        let detail = format!("the prompt exceeds the model's context window of {window} tokens");
        return Err(ModelFailure::new(FailureKind::ContextOverflow, detail));
    }
    let encoded = match provider.wire {
        WireFormat::OpenAiChat => openai::encode(provider, card, request, delivery),
        WireFormat::AnthropicMessages => anthropic::encode(provider, card, request, delivery),
        WireFormat::OllamaChat => ollama::encode(card, request, delivery),
    };
    encoded.map_err(|error| {
        ModelFailure::new(
            FailureKind::BadRequest,
            format!("cannot encode the request as JSON: {error}"),
        )
    })
}

/// Adds the schema to the prompt for models without a schema mode. Their replies are checked like
/// any other.
fn append_schema_text(request: &ModelRequest, schema: &OutputSchema) -> ModelRequest {
    let mut request = request.clone();
    request.system.push(PromptBlock::new(format!(
        "Answer with one JSON value that follows this JSON schema, and with nothing else:\n{}",
        schema.text()
    )));
    request
}

/// Decodes a reply that was delivered in one response.
pub fn decode(
    wire: WireFormat,
    status: u16,
    retry_after_ms: Option<u64>,
    body: &[u8],
) -> Result<RawReply, ModelFailure> {
    if !(200..300).contains(&status) {
        return Err(failure::of_status(status, retry_after_ms, body));
    }
    let answer = match wire {
        WireFormat::OpenAiChat => openai::decode(body),
        WireFormat::AnthropicMessages => anthropic::decode(body),
        WireFormat::OllamaChat => ollama::decode(body),
    };
    answer.map_err(|failure| failure.with_status(status))
}

/// Decodes a streamed reply: push bytes as they arrive, then call [`StreamDecoder::finish`].
#[derive(Debug)]
pub struct StreamDecoder {
    framing: MessageFramer,
    state: StreamDecoderState,
}

#[derive(Debug)]
enum StreamDecoderState {
    OpenAi(openai::OpenAiStreamReader),
    Anthropic(anthropic::AnthropicStreamReader),
    Ollama(ollama::OllamaStreamReader),
}

impl StreamDecoder {
    pub fn new(wire: WireFormat) -> Self {
        let (framing, state) = match wire {
            WireFormat::OpenAiChat => (
                MessageFramer::server_sent_events(),
                StreamDecoderState::OpenAi(openai::OpenAiStreamReader::default()),
            ),
            WireFormat::AnthropicMessages => (
                MessageFramer::server_sent_events(),
                StreamDecoderState::Anthropic(anthropic::AnthropicStreamReader::default()),
            ),
            WireFormat::OllamaChat => (
                MessageFramer::lines(),
                StreamDecoderState::Ollama(ollama::OllamaStreamReader::default()),
            ),
        };
        Self { framing, state }
    }

    /// Takes the next bytes, split anywhere, and passes completed text to `on_text`.
    pub fn push(
        &mut self,
        bytes: &[u8],
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), ModelFailure> {
        self.framing.push(bytes)?;
        while let Some(message) = self.framing.next_message() {
            let text = match &mut self.state {
                StreamDecoderState::OpenAi(stream) => stream.message(&message)?,
                StreamDecoderState::Anthropic(stream) => stream.message(&message)?,
                StreamDecoderState::Ollama(stream) => stream.message(&message)?,
            };
            let held_bytes = match &self.state {
                StreamDecoderState::OpenAi(stream) => stream.text_bytes(),
                StreamDecoderState::Anthropic(stream) => stream.text_bytes(),
                StreamDecoderState::Ollama(stream) => stream.text_bytes(),
            };
            if held_bytes > MAX_BODY_BYTES {
                let detail = format!("the reply is larger than {} KiB", MAX_BODY_BYTES >> 10);
                return Err(ModelFailure::new(FailureKind::Malformed, detail));
            }
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                on_text(&text);
            }
        }
        Ok(())
    }

    /// The complete reply. Fails if the stream stopped without the provider's end marker.
    pub fn finish(self) -> Result<RawReply, ModelFailure> {
        let answer = match self.state {
            StreamDecoderState::OpenAi(stream) => stream.finish(),
            StreamDecoderState::Anthropic(stream) => stream.finish(),
            StreamDecoderState::Ollama(stream) => stream.finish(),
        };
        answer.ok_or_else(|| {
            ModelFailure::new(
                FailureKind::Truncated,
                "the stream ended before the reply was complete",
            )
        })
    }
}

/// Serializes a body into one allocation. Prompts are long, and a growing buffer would copy them
/// repeatedly.
fn write_body<T: Serialize>(
    request: &ModelRequest,
    body: &T,
) -> Result<Vec<u8>, serde_json::Error> {
    const FRAME_BYTES: usize = 1024;
    let prompt: usize = request.prompt_texts().map(str::len).sum();
    // One eighth for escapes: most text has a few quotes and line breaks.
    let mut bytes = Vec::with_capacity(prompt + prompt / 8 + FRAME_BYTES);
    serde_json::to_writer(&mut bytes, body)?;
    Ok(bytes)
}

fn malformed(error: impl std::fmt::Display) -> ModelFailure {
    ModelFailure::new(
        FailureKind::Malformed,
        format!("the reply does not match the provider's API format: {error}"),
    )
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "wire_stream_tests.rs"]
mod stream_tests;
