//! OpenAI chat completions, which OpenAI, Google, Groq, OpenRouter and most local servers speak.

use std::borrow::Cow;
use std::fmt;

use moothall_core::model::{Block, ModelFailure, ModelRequest, Usage};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::failure::{ErrorObject, of_error_object};
use super::parts::{Part, effort_word, join, role};
use super::{Answer, AnswerStop, Delivery, Encoded, malformed, schema, write_body};
use crate::catalog::{ModelCard, Provider, SchemaForm};

pub(super) fn encode(
    provider: &Provider,
    card: &ModelCard,
    request: &ModelRequest,
    delivery: Delivery,
) -> Result<Encoded, serde_json::Error> {
    let body = Body { provider, card, request, delivery };
    Ok(Encoded { body: write_body(request, &body)?, window: card.context })
}

struct Body<'a> {
    provider: &'a Provider,
    card: &'a ModelCard,
    request: &'a ModelRequest,
    delivery: Delivery,
}

impl Serialize for Body<'_> {
    /// By hand because one field's name is data: the limit of the answer is called differently by
    /// different providers.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { provider, card, request, delivery } = self;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", request.model.name())?;
        body.serialize_entry("messages", &messages(request, provider.cache_control_in_parts))?;
        // A server that merely speaks the language knows the old name of the limit, and writes without
        // end where it is given the new one.
        let stranger = provider.own_address && !card.listed;
        let limit = if stranger { "max_tokens" } else { provider.max_tokens_field.as_str() };
        body.serialize_entry(limit, &request.max_tokens)?;
        if let (Some(temperature), true) = (request.temperature, card.temperature) {
            body.serialize_entry("temperature", &temperature.as_decimal())?;
        }
        if let (Some(effort), true) = (request.effort, card.effort) {
            body.serialize_entry("reasoning_effort", effort_word(effort))?;
        }
        if let (Some(wanted), true) = (&request.schema, card.structured) {
            let schema: Value =
                serde_json::from_str(wanted.text()).map_err(serde::ser::Error::custom)?;
            let strict =
                provider.schema != SchemaForm::Strict || schema::requires_everything(&schema);
            let json_schema = JsonSchema {
                name: wanted.name(),
                strict,
                schema: schema::bend(&schema, provider.schema),
            };
            body.serialize_entry(
                "response_format",
                &ResponseFormat { kind: "json_schema", json_schema },
            )?;
        }
        if *delivery == Delivery::Streamed {
            body.serialize_entry("stream", &true)?;
            body.serialize_entry("stream_options", &StreamOptions { include_usage: true })?;
        }
        body.end()
    }
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: Value,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

fn messages(request: &ModelRequest, parts: bool) -> Vec<Message<'_>> {
    let mut messages = Vec::with_capacity(request.turns.len() + 1);
    if !request.system.is_empty() {
        messages.push(Message { role: "system", content: content(&request.system, parts) });
    }
    messages.extend(request.turns.iter().map(|turn| Message {
        role: role(turn.role),
        content: content(std::slice::from_ref(&turn.block), parts),
    }));
    messages
}

fn content(blocks: &[Block], parts: bool) -> Content<'_> {
    if parts && blocks.iter().any(|block| block.cache.is_some()) {
        return Content::Parts(blocks.iter().map(Part::from).collect());
    }
    Content::Text(join(blocks))
}

/// One shape serves both deliveries: a stream's chunks carry `delta` where a whole answer carries
/// `message`.
#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "first")]
    choices: Option<Choice<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

/// The first choice; we ask for one. A list of millions must not become millions of structs.
fn first<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Choice<'a>>, D::Error> {
    struct First;

    impl<'de> Visitor<'de> for First {
        type Value = Option<Choice<'de>>;

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

    deserializer.deserialize_any(First)
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, alias = "delta", default)]
    message: Option<Said<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
    /// Where OpenRouter says that the provider behind it broke off.
    #[serde(default)]
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    refusal: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    total_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
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

impl WireUsage {
    fn ours(self) -> Usage {
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let (read, written) =
            (prompt.cached_tokens.unwrap_or(0), prompt.cache_write_tokens.unwrap_or(0));
        Usage {
            input: self.prompt_tokens.saturating_sub(read.saturating_add(written)),
            cache_read: read,
            cache_write_5m: written,
            cache_write_1h: 0,
            // Google bills thinking as output but shows it only in the total.
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

fn stop(word: &str) -> AnswerStop {
    match word {
        "stop" => AnswerStop::End,
        "length" => AnswerStop::MaxTokens,
        "content_filter" => AnswerStop::Refusal,
        _ => AnswerStop::Other,
    }
}

pub(super) fn decode(body: &[u8]) -> Result<Answer, ModelFailure> {
    let completion: Completion<'_> = serde_json::from_slice(body).map_err(malformed)?;
    let mut stream = Stream::default();
    stream.take(completion)?;
    stream.finish().ok_or_else(|| malformed("there is no finish_reason"))
}

/// An answer as it grows.
#[derive(Debug, Default)]
pub(super) struct Stream {
    text: String,
    stop: Option<AnswerStop>,
    usage: Option<Usage>,
    model: Option<String>,
    refused: bool,
}

impl Stream {
    pub(super) fn message(&mut self, json: &[u8]) -> Result<Option<String>, ModelFailure> {
        if json == b"[DONE]" {
            return Ok(None);
        }
        self.take(serde_json::from_slice(json).map_err(malformed)?)
    }

    fn take(&mut self, completion: Completion<'_>) -> Result<Option<String>, ModelFailure> {
        if let Some(error) = completion.error {
            return Err(of_error_object(&error));
        }
        if let (None, Some(model)) = (&self.model, completion.model) {
            self.model = Some(model.into_owned());
        }
        if let Some(usage) = completion.usage {
            self.usage = Some(usage.ours());
        }
        let Some(choice) = completion.choices else { return Ok(None) };
        if let Some(error) = choice.error {
            return Err(of_error_object(&error));
        }
        // Some servers write an empty word where others write nothing; it is not an end.
        if let Some(word) = choice.finish_reason.filter(|word| !word.is_empty()) {
            self.stop = Some(stop(&word));
        }
        let Some(said) = choice.message else { return Ok(None) };
        if let Some(words) = said.refusal.filter(|words| !words.is_empty()) {
            // Told afterwards, as the reason; nobody hears them as an answer.
            self.refused = true;
            self.text.push_str(&words);
        }
        let text = said.content.map(Cow::into_owned);
        self.text.push_str(text.as_deref().unwrap_or(""));
        Ok(text)
    }

    /// What it holds, whether anyone hears it or not.
    pub(super) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// The end is the finish reason, not `[DONE]`: some servers close without it.
    pub(super) fn finish(self) -> Option<Answer> {
        let stop = if self.refused { AnswerStop::Refusal } else { self.stop? };
        Some(Answer { text: self.text, stop, usage: self.usage, model: self.model })
    }
}
