//! Anthropic messages.

use std::borrow::Cow;

use moothall_core::model::{ModelFailure, ModelRequest, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::{ErrorObject, of_error_object};
use super::parts::{Part, effort_word, role};
use super::{Answer, AnswerStop, Delivery, Encoded, malformed, schema, write_body};
use crate::catalog::{ModelCard, Provider};

pub(super) fn encode(
    provider: &Provider,
    card: &ModelCard,
    request: &ModelRequest,
    delivery: Delivery,
) -> Result<Encoded, serde_json::Error> {
    let format = match (&request.schema, card.structured) {
        (Some(wanted), true) => {
            let schema = serde_json::from_str(wanted.text())?;
            Some(Format { kind: "json_schema", schema: schema::bend(&schema, provider.schema) })
        }
        _ => None,
    };
    let effort = request.effort.filter(|_| card.effort).map(effort_word);
    let body = Body {
        model: request.model.name(),
        max_tokens: request.max_tokens,
        system: request.system.iter().map(Part::from).collect(),
        messages: request
            .turns
            .iter()
            .map(|turn| Message { role: role(turn.role), content: [Part::from(&turn.block)] })
            .collect(),
        temperature: request
            .temperature
            .filter(|_| card.temperature)
            .map(|temperature| temperature.as_decimal()),
        output_config: (format.is_some() || effort.is_some())
            .then_some(OutputConfig { effort, format }),
        stream: delivery == Delivery::Streamed,
    };
    Ok(Encoded { body: write_body(request, &body)?, window: card.context })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: [Part<'a>; 1],
}

#[derive(Serialize)]
struct OutputConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
}

#[derive(Serialize)]
struct Format {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: Value,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(borrow, default)]
    content: Vec<ContentPart<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

/// Parts without text (thinking, tool use) have none to give.
#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// Counts are cumulative: a later one replaces an earlier one, and an absent one says nothing new.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct WireUsage {
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

impl WireUsage {
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

    /// Nothing where a count that every answer has is missing: then the numbers are not to be
    /// trusted at all.
    fn ours(self) -> Option<Usage> {
        let one_hour = self.cache_creation.map_or(0, |creation| creation.ephemeral_1h_input_tokens);
        Some(Usage {
            input: self.input_tokens?,
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write_5m: self.cache_creation_input_tokens.unwrap_or(0).saturating_sub(one_hour),
            cache_write_1h: one_hour,
            output: self.output_tokens?,
            reasoning: self.output_tokens_details.map_or(0, |details| details.thinking_tokens),
        })
    }
}

fn stop(word: &str) -> AnswerStop {
    match word {
        "end_turn" | "stop_sequence" => AnswerStop::End,
        "max_tokens" | "model_context_window_exceeded" => AnswerStop::MaxTokens,
        "refusal" => AnswerStop::Refusal,
        _ => AnswerStop::Other,
    }
}

pub(super) fn decode(body: &[u8]) -> Result<Answer, ModelFailure> {
    let message: WireMessage<'_> = serde_json::from_slice(body).map_err(malformed)?;
    if let Some(error) = message.error {
        return Err(of_error_object(&error));
    }
    let stop = stop(&message.stop_reason.ok_or_else(|| malformed("there is no stop_reason"))?);
    let text = message.content.into_iter().filter_map(|part| part.text).collect();
    Ok(Answer {
        text,
        stop,
        usage: message.usage.and_then(WireUsage::ours),
        model: message.model.map(Cow::into_owned),
    })
}

/// An answer as it grows.
#[derive(Debug, Default)]
pub(super) struct Stream {
    text: String,
    stop: Option<AnswerStop>,
    usage: Option<WireUsage>,
    model: Option<String>,
    ended: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    /// Absent from the errors of llama.cpp.
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(borrow, default)]
    message: Option<WireMessage<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

impl Stream {
    pub(super) fn message(&mut self, json: &[u8]) -> Result<Option<String>, ModelFailure> {
        let event: Event<'_> = serde_json::from_slice(json).map_err(malformed)?;
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
                if let Some(word) = event.delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(stop(&word));
                }
                self.update_usage(event.usage);
            }
            "message_stop" => self.ended = true,
            // ping, content_block_start and _stop, and whatever is added later.
            _ => {}
        }
        Ok(None)
    }

    fn update_usage(&mut self, newer: Option<WireUsage>) {
        if let Some(newer) = newer {
            self.usage = Some(self.usage.unwrap_or_default().updated_by(newer));
        }
    }

    /// What it holds, whether anyone hears it or not.
    pub(super) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    pub(super) fn finish(self) -> Option<Answer> {
        let stop = self.stop.filter(|_| self.ended)?;
        Some(Answer {
            text: self.text,
            stop,
            usage: self.usage.and_then(WireUsage::ours),
            model: self.model,
        })
    }
}
