//! The Anthropic messages API.

use std::borrow::Cow;

use moothall_core::model::{ModelFailure, ModelRequest, TokenUsage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::{ErrorObject, of_error_object};
use super::parts::{TextPart, effort_word, role};
use super::{
    EncodedRequest, RawReply, RawStopReason, ReplyDelivery, malformed, schema, write_body,
};
use crate::catalog::{ModelCard, ModelProvider};

pub(crate) fn encode(
    provider: &ModelProvider,
    card: &ModelCard,
    request: &ModelRequest,
    delivery: ReplyDelivery,
) -> Result<EncodedRequest, serde_json::Error> {
    let format = match (&request.schema, card.structured) {
        (Some(output_schema), true) => {
            let schema = serde_json::from_str(output_schema.text())?;
            Some(AnthropicOutputFormat {
                kind: "json_schema",
                schema: schema::adapt(&schema, provider.schema),
            })
        }
        _ => None,
    };
    let effort = request.effort.filter(|_| card.effort).map(effort_word);
    let body = AnthropicRequestBody {
        model: request.model.name(),
        max_tokens: request.max_tokens,
        system: request.system.iter().map(TextPart::from).collect(),
        messages: request
            .turns
            .iter()
            .map(|turn| AnthropicRequestMessage {
                role: role(turn.role),
                content: [TextPart::from(&turn.block)],
            })
            .collect(),
        temperature: request
            .temperature
            .filter(|_| card.temperature)
            .map(|temperature| temperature.as_decimal()),
        output_config: (format.is_some() || effort.is_some())
            .then_some(OutputConfig { effort, format }),
        stream: delivery == ReplyDelivery::Streamed,
    };
    Ok(EncodedRequest { body: write_body(request, &body)?, window: card.context })
}

#[derive(Serialize)]
struct AnthropicRequestBody<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<TextPart<'a>>,
    messages: Vec<AnthropicRequestMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
struct AnthropicRequestMessage<'a> {
    role: &'static str,
    content: [TextPart<'a>; 1],
}

#[derive(Serialize)]
struct OutputConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<AnthropicOutputFormat>,
}

#[derive(Serialize)]
struct AnthropicOutputFormat {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: Value,
}

#[derive(Deserialize)]
struct AnthropicReplyBody<'a> {
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(borrow, default)]
    content: Vec<ContentPart<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<AnthropicReplyUsage>,
}

/// Parts such as thinking and tool use have no text.
#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// Counts are cumulative: a later count replaces an earlier one, and a missing one changes nothing.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct AnthropicReplyUsage {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct CacheCreation {
    #[serde(default)]
    ephemeral_1h_input_tokens: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: u64,
}

impl AnthropicReplyUsage {
    fn updated_by(self, newer: Self) -> Self {
        Self {
            input_tokens: newer.input_tokens.or(self.input_tokens),
            cache_read_input_tokens: newer.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation_input_tokens: newer
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            cache_creation: newer.cache_creation.or(self.cache_creation),
            output_tokens: newer.output_tokens.or(self.output_tokens),
            output_tokens_details: newer.output_tokens_details.or(self.output_tokens_details),
        }
    }

    /// Returns `None` if a mandatory count is missing, because the other numbers are then
    /// unreliable too.
    fn into_token_usage(self) -> Option<TokenUsage> {
        let one_hour = self.cache_creation.map_or(0, |creation| creation.ephemeral_1h_input_tokens);
        Some(TokenUsage {
            input: self.input_tokens?,
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write_5m: self.cache_creation_input_tokens.unwrap_or(0).saturating_sub(one_hour),
            cache_write_1h: one_hour,
            output: self.output_tokens?,
            reasoning: self.output_tokens_details.map_or(0, |details| details.thinking_tokens),
        })
    }
}

fn stop(reason: &str) -> RawStopReason {
    match reason {
        "end_turn" | "stop_sequence" => RawStopReason::End,
        "max_tokens" | "model_context_window_exceeded" => RawStopReason::MaxTokens,
        "refusal" => RawStopReason::Refusal,
        _ => RawStopReason::Other,
    }
}

pub(crate) fn decode(body: &[u8]) -> Result<RawReply, ModelFailure> {
    let message: AnthropicReplyBody<'_> = serde_json::from_slice(body).map_err(malformed)?;
    if let Some(error) = message.error {
        return Err(of_error_object(&error));
    }
    let stop = stop(&message.stop_reason.ok_or_else(|| malformed("missing stop_reason"))?);
    let text = message.content.into_iter().filter_map(|part| part.text).collect();
    Ok(RawReply {
        text,
        stop,
        usage: message.usage.and_then(AnthropicReplyUsage::into_token_usage),
        model: message.model.map(Cow::into_owned),
    })
}

/// A reply under construction.
#[derive(Debug, Default)]
pub(crate) struct AnthropicStreamReader {
    text: String,
    stop: Option<RawStopReason>,
    usage: Option<AnthropicReplyUsage>,
    model: Option<String>,
    ended: bool,
}

#[derive(Deserialize)]
struct AnthropicStreamEvent<'a> {
    /// Missing in errors from llama.cpp.
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(borrow, default)]
    message: Option<AnthropicReplyBody<'a>>,
    #[serde(borrow, default)]
    delta: Option<AnthropicStreamDelta<'a>>,
    #[serde(default)]
    usage: Option<AnthropicReplyUsage>,
}

#[derive(Deserialize)]
struct AnthropicStreamDelta<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

impl AnthropicStreamReader {
    pub(crate) fn message(&mut self, json: &[u8]) -> Result<Option<String>, ModelFailure> {
        let event: AnthropicStreamEvent<'_> = serde_json::from_slice(json).map_err(malformed)?;
        if let Some(error) = event.error {
            return Err(of_error_object(&error));
        }
        match event.kind.as_ref() {
            "message_start" => {
                if let Some(message) = event.message {
                    self.model = message.model.map(Cow::into_owned);
                    self.update_usage(message.usage);
                }
            }
            "content_block_delta" => {
                let text = event.delta.and_then(|delta| delta.text).map(Cow::into_owned);
                self.text.push_str(text.as_deref().unwrap_or(""));
                return Ok(text);
            }
            "message_delta" => {
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(stop(&reason));
                }
                self.update_usage(event.usage);
            }
            "message_stop" => self.ended = true,
            // ping, content_block_start, content_block_stop, and event types added later.
            _ => {}
        }
        Ok(None)
    }

    fn update_usage(&mut self, newer: Option<AnthropicReplyUsage>) {
        if let Some(newer) = newer {
            self.usage = Some(self.usage.unwrap_or_default().updated_by(newer));
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn finish(self) -> Option<RawReply> {
        let stop = self.stop.filter(|_| self.ended)?;
        Some(RawReply {
            text: self.text,
            stop,
            usage: self.usage.and_then(AnthropicReplyUsage::into_token_usage),
            model: self.model,
        })
    }
}
