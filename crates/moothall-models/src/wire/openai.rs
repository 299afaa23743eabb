//! The OpenAI chat completions API, also supported by Google, Groq, OpenRouter and most local
//! servers.

use std::borrow::Cow;
use std::fmt;

use moothall_core::model::{ModelFailure, ModelRequest, PromptBlock, TokenUsage};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::failure::{ErrorObject, of_error_object};
use super::parts::{TextPart, effort_word, join, role};
use super::{
    EncodedRequest, RawReply, RawStopReason, ReplyDelivery, malformed, schema, write_body,
};
use crate::catalog::{ModelCard, ModelProvider, SchemaForm};

pub(crate) fn encode(
    provider: &ModelProvider,
    card: &ModelCard,
    request: &ModelRequest,
    delivery: ReplyDelivery,
) -> Result<EncodedRequest, serde_json::Error> {
    let body = OpenAiRequestBody { provider, card, request, delivery };
    Ok(EncodedRequest { body: write_body(request, &body)?, window: card.context })
}

struct OpenAiRequestBody<'a> {
    provider: &'a ModelProvider,
    card: &'a ModelCard,
    request: &'a ModelRequest,
    delivery: ReplyDelivery,
}

impl Serialize for OpenAiRequestBody<'_> {
    /// Hand-written because a field name is dynamic: providers use different names for the output
    /// token limit.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { provider, card, request, delivery } = self;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", request.model.name())?;
        body.serialize_entry("messages", &messages(request, provider.cache_control_in_parts))?;
        // Compatible servers know only the old field name. They ignore the new one and then
        // generate without a limit.
        let unlisted = provider.own_address && !card.listed;
        let limit = if unlisted { "max_tokens" } else { provider.max_tokens_field.as_str() };
        body.serialize_entry(limit, &request.max_tokens)?;
        if let (Some(temperature), true) = (request.temperature, card.temperature) {
            body.serialize_entry("temperature", &temperature.as_decimal())?;
        }
        if let (Some(effort), true) = (request.effort, card.effort) {
            body.serialize_entry("reasoning_effort", effort_word(effort))?;
        }
        if let (Some(output_schema), true) = (&request.schema, card.structured) {
            let schema: Value =
                serde_json::from_str(output_schema.text()).map_err(serde::ser::Error::custom)?;
            let strict =
                provider.schema != SchemaForm::Strict || schema::requires_everything(&schema);
            let json_schema = OpenAiJsonSchema {
                name: output_schema.name(),
                strict,
                schema: schema::adapt(&schema, provider.schema),
            };
            body.serialize_entry(
                "response_format",
                &ResponseFormat { kind: "json_schema", json_schema },
            )?;
        }
        if *delivery == ReplyDelivery::Streamed {
            body.serialize_entry("stream", &true)?;
            if provider.stream_options {
                let options = OpenAiStreamOptions { include_usage: true };
                body.serialize_entry("stream_options", &options)?;
            }
        }
        body.end()
    }
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    json_schema: OpenAiJsonSchema<'a>,
}

#[derive(Serialize)]
struct OpenAiJsonSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: Value,
}

#[derive(Serialize)]
struct OpenAiStreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct OpenAiRequestMessage<'a> {
    role: &'static str,
    content: OpenAiMessageContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum OpenAiMessageContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<TextPart<'a>>),
}

fn messages(request: &ModelRequest, parts: bool) -> Vec<OpenAiRequestMessage<'_>> {
    let mut messages = Vec::with_capacity(request.turns.len() + 1);
    if !request.system.is_empty() {
        messages.push(OpenAiRequestMessage {
            role: "system",
            content: content(&request.system, parts),
        });
    }
    messages.extend(request.turns.iter().map(|turn| OpenAiRequestMessage {
        role: role(turn.role),
        content: content(std::slice::from_ref(&turn.block), parts),
    }));
    messages
}

fn content(blocks: &[PromptBlock], parts: bool) -> OpenAiMessageContent<'_> {
    if parts && blocks.iter().any(|block| block.cache.is_some()) {
        return OpenAiMessageContent::Parts(blocks.iter().map(TextPart::from).collect());
    }
    OpenAiMessageContent::Text(join(blocks))
}

/// Used for both deliveries: stream chunks have `delta` where a complete reply has `message`.
#[derive(Deserialize)]
struct OpenAiReplyChunk<'a> {
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "first")]
    choices: Option<OpenAiReplyChoice<'a>>,
    #[serde(default)]
    usage: Option<OpenAiReplyUsage>,
}

/// Parses only the first choice, since we request one. A malicious list of millions must not be
/// allocated.
fn first<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<OpenAiReplyChoice<'a>>, D::Error> {
    struct FirstChoiceVisitor;

    impl<'de> Visitor<'de> for FirstChoiceVisitor {
        type Value = Option<OpenAiReplyChoice<'de>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of choices")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let first = list.next_element()?;
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(first)
        }
    }

    deserializer.deserialize_any(FirstChoiceVisitor)
}

#[derive(Deserialize)]
struct OpenAiReplyChoice<'a> {
    #[serde(borrow, alias = "delta", default)]
    message: Option<OpenAiReplyMessage<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
    /// Set by OpenRouter if the provider behind it failed.
    #[serde(default)]
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct OpenAiReplyMessage<'a> {
    #[serde(borrow, default, deserialize_with = "reply_text")]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    refusal: Option<Cow<'a, str>>,
}

/// Reasoning models of Mistral send a list of parts, where others send a string. Only the text
/// counts, not the thinking.
fn reply_text<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'a, str>>, D::Error> {
    struct ContentVisitor;

    impl<'de> Visitor<'de> for ContentVisitor {
        type Value = Option<Cow<'de, str>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a list of parts")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(Some(Cow::Borrowed(text)))
        }

        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Some(Cow::Owned(text.to_owned())))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut text = String::new();
            while let Some(part) = list.next_element::<OpenAiContentPart<'de>>()? {
                text.push_str(&part.text.unwrap_or_default());
            }
            Ok(Some(Cow::Owned(text)))
        }
    }

    deserializer.deserialize_any(ContentVisitor)
}

#[derive(Deserialize)]
struct OpenAiContentPart<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct OpenAiReplyUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    total_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<OpenAiPromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Default, Deserialize)]
struct OpenAiPromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl OpenAiReplyUsage {
    fn into_token_usage(self) -> TokenUsage {
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let (read, written) =
            (prompt.cached_tokens.unwrap_or(0), prompt.cache_write_tokens.unwrap_or(0));
        TokenUsage {
            input: self.prompt_tokens.saturating_sub(read.saturating_add(written)),
            cache_read: read,
            cache_write_5m: written,
            cache_write_1h: 0,
            // Google bills reasoning as output but includes it only in the total.
            output: self
                .completion_tokens
                .max(self.total_tokens.saturating_sub(self.prompt_tokens)),
            reasoning: self
                .completion_tokens_details
                .unwrap_or_default()
                .reasoning_tokens
                .unwrap_or(0),
        }
    }
}

fn stop(reason: &str) -> RawStopReason {
    match reason {
        "stop" => RawStopReason::End,
        // Mistral's word for a full context window is the second one.
        "length" | "model_length" => RawStopReason::MaxTokens,
        "content_filter" => RawStopReason::Refusal,
        _ => RawStopReason::Other,
    }
}

pub(crate) fn decode(body: &[u8]) -> Result<RawReply, ModelFailure> {
    let completion: OpenAiReplyChunk<'_> = serde_json::from_slice(body).map_err(malformed)?;
    let mut stream = OpenAiStreamReader::default();
    stream.take(completion)?;
    stream.finish().ok_or_else(|| malformed("missing finish_reason"))
}

/// A reply under construction.
#[derive(Debug, Default)]
pub(crate) struct OpenAiStreamReader {
    text: String,
    stop: Option<RawStopReason>,
    usage: Option<TokenUsage>,
    model: Option<String>,
    refused: bool,
}

impl OpenAiStreamReader {
    pub(crate) fn message(&mut self, json: &[u8]) -> Result<Option<String>, ModelFailure> {
        if json == b"[DONE]" {
            return Ok(None);
        }
        self.take(serde_json::from_slice(json).map_err(malformed)?)
    }

    fn take(&mut self, completion: OpenAiReplyChunk<'_>) -> Result<Option<String>, ModelFailure> {
        if let Some(error) = completion.error {
            return Err(of_error_object(&error));
        }
        // Azure starts a stream with a chunk about its content filter, which names no model.
        let model = completion.model.filter(|model| !model.is_empty());
        if let (None, Some(model)) = (&self.model, model) {
            self.model = Some(model.into_owned());
        }
        if let Some(usage) = completion.usage {
            self.usage = Some(usage.into_token_usage());
        }
        let Some(choice) = completion.choices else { return Ok(None) };
        if let Some(error) = choice.error {
            return Err(of_error_object(&error));
        }
        // Some servers send an empty string instead of null; it does not mark the end.
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.stop = Some(stop(&reason));
        }
        let Some(message) = choice.message else { return Ok(None) };
        if let Some(refusal) = message.refusal.filter(|refusal| !refusal.is_empty()) {
            // Reported as the reason for the failure, never streamed as a reply.
            self.refused = true;
            self.text.push_str(&refusal);
        }
        let text = message.content.map(Cow::into_owned);
        self.text.push_str(text.as_deref().unwrap_or(""));
        Ok(text)
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// The finish reason marks the end, not `[DONE]`, which some servers omit.
    pub(crate) fn finish(self) -> Option<RawReply> {
        let stop = if self.refused { RawStopReason::Refusal } else { self.stop? };
        Some(RawReply { text: self.text, stop, usage: self.usage, model: self.model })
    }
}
