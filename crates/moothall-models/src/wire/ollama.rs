//! Ollama's native chat API.
//!
//! Its OpenAI-compatible API takes no context size and silently truncates long prompts to the
//! default, so we use the native API and size the window to the request.

use std::borrow::Cow;

use moothall_core::model::{ModelFailure, ModelRequest, TokenUsage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::failure::{ErrorObject, of_error_object};
use super::parts::{effort_word, join, role};
use super::{EncodedRequest, RawReply, RawStopReason, ReplyDelivery, malformed, write_body};
use crate::catalog::ModelCard;

/// The window grows in steps, because a new size makes the server reload the model.
const WINDOW_STEP: u64 = 4096;

pub(crate) fn encode(
    card: &ModelCard,
    request: &ModelRequest,
    delivery: ReplyDelivery,
) -> Result<EncodedRequest, serde_json::Error> {
    let format: Option<&RawValue> = match (&request.schema, card.structured) {
        (Some(wanted), true) => Some(serde_json::from_str(wanted.text())?),
        _ => None,
    };
    let window = window(card, request);
    let system = (!request.system.is_empty())
        .then(|| OllamaRequestMessage { role: "system", content: join(&request.system) });
    let turns = request.turns.iter().map(|turn| OllamaRequestMessage {
        role: role(turn.role),
        content: Cow::Borrowed(&*turn.block.text),
    });
    let body = OllamaRequestBody {
        model: request.model.name(),
        messages: system.into_iter().chain(turns).collect(),
        stream: delivery == ReplyDelivery::Streamed,
        truncate: false,
        shift: false,
        format,
        think: request.effort.filter(|_| card.effort).map(effort_word),
        options: OllamaRequestOptions {
            num_ctx: window,
            num_predict: request.max_tokens,
            temperature: request
                .temperature
                .filter(|_| card.temperature)
                .map(|temperature| temperature.as_decimal()),
        },
    };
    Ok(EncodedRequest { body: write_body(request, &body)?, window: Some(window) })
}

/// The expected prompt plus 25 % and the maximum reply, capped at the model's context window.
fn window(card: &ModelCard, request: &ModelRequest) -> u64 {
    let wanted = request.prompt_tokens_expected() * 5 / 4 + u64::from(request.max_tokens);
    let stepped = wanted.div_ceil(WINDOW_STEP) * WINDOW_STEP;
    card.context.map_or(stepped, |context| stepped.min(context))
}

#[derive(Serialize)]
struct OllamaRequestBody<'a> {
    model: &'a str,
    messages: Vec<OllamaRequestMessage<'a>>,
    stream: bool,
    /// With `false`, newer servers reject a prompt that does not fit instead of dropping its start.
    truncate: bool,
    shift: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<&'static str>,
    options: OllamaRequestOptions,
}

#[derive(Serialize)]
struct OllamaRequestMessage<'a> {
    role: &'static str,
    content: Cow<'a, str>,
}

#[derive(Serialize)]
struct OllamaRequestOptions {
    num_ctx: u64,
    num_predict: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

/// Used for both deliveries: a stream repeats this object until `done`.
#[derive(Deserialize)]
struct OllamaReplyChunk<'a> {
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<OllamaReplyMessage<'a>>,
    #[serde(default)]
    done: bool,
    #[serde(borrow, default)]
    done_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
}

#[derive(Deserialize)]
struct OllamaReplyMessage<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

pub(crate) fn decode(body: &[u8]) -> Result<RawReply, ModelFailure> {
    let mut stream = OllamaStreamReader::default();
    stream.take(serde_json::from_slice(body).map_err(malformed)?)?;
    stream.finish().ok_or_else(|| malformed("the reply is incomplete"))
}

/// A reply under construction.
#[derive(Debug, Default)]
pub(crate) struct OllamaStreamReader {
    text: String,
    stop: Option<RawStopReason>,
    usage: Option<TokenUsage>,
    model: Option<String>,
}

impl OllamaStreamReader {
    pub(crate) fn message(&mut self, json: &[u8]) -> Result<Option<String>, ModelFailure> {
        self.take(serde_json::from_slice(json).map_err(malformed)?)
    }

    fn take(&mut self, chat: OllamaReplyChunk<'_>) -> Result<Option<String>, ModelFailure> {
        if let Some(error) = chat.error {
            return Err(of_error_object(&error));
        }
        if let (None, Some(model)) = (&self.model, chat.model) {
            self.model = Some(model.into_owned());
        }
        if chat.done {
            self.stop = Some(match chat.done_reason.as_deref() {
                Some("stop") | None => RawStopReason::End,
                Some("length") => RawStopReason::MaxTokens,
                Some(_) => RawStopReason::Other,
            });
            // Some versions do not count a prompt that was served entirely from the cache; the
            // numbers are then incomplete.
            if let (Some(input), Some(output)) = (chat.prompt_eval_count, chat.eval_count) {
                self.usage = Some(TokenUsage { input, output, ..TokenUsage::default() });
            }
        }
        let text = chat.message.and_then(|message| message.content).map(Cow::into_owned);
        self.text.push_str(text.as_deref().unwrap_or(""));
        Ok(text)
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn finish(self) -> Option<RawReply> {
        Some(RawReply { text: self.text, stop: self.stop?, usage: self.usage, model: self.model })
    }
}
