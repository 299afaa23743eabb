//! Ollama's own chat API.
//!
//! Its OpenAI-compatible path takes no window size and cuts long prompts to the default in silence,
//! so we speak its own language and size the window to the request.

use std::borrow::Cow;

use moothall_core::model::{ModelFailure, ModelRequest, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::failure::{ErrorObject, of_error_object};
use super::parts::{effort_word, join, role};
use super::{Answer, AnswerStop, Delivery, Encoded, malformed, write_body};
use crate::catalog::ModelCard;

/// The window grows in steps, because a change of size makes the server load the model again.
const WINDOW_STEP: u64 = 4096;

pub(super) fn encode(
    card: &ModelCard,
    request: &ModelRequest,
    delivery: Delivery,
) -> Result<Encoded, serde_json::Error> {
    let format: Option<&RawValue> = match (&request.schema, card.structured) {
        (Some(wanted), true) => Some(serde_json::from_str(wanted.text())?),
        _ => None,
    };
    let window = window(card, request);
    let system = (!request.system.is_empty())
        .then(|| Message { role: "system", content: join(&request.system) });
    let turns = request
        .turns
        .iter()
        .map(|turn| Message { role: role(turn.role), content: Cow::Borrowed(&*turn.block.text) });
    let body = Body {
        model: request.model.name(),
        messages: system.into_iter().chain(turns).collect(),
        stream: delivery == Delivery::Streamed,
        truncate: false,
        shift: false,
        format,
        think: request.effort.filter(|_| card.effort).map(effort_word),
        options: Options {
            num_ctx: window,
            num_predict: request.max_tokens,
            temperature: request
                .temperature
                .filter(|_| card.temperature)
                .map(|temperature| temperature.as_decimal()),
        },
    };
    Ok(Encoded { body: write_body(request, &body)?, window: Some(window) })
}

/// Room for the expected prompt with a quarter to spare and for the whole answer, but not more than
/// the model has.
fn window(card: &ModelCard, request: &ModelRequest) -> u64 {
    let wanted = request.prompt_tokens_expected() * 5 / 4 + u64::from(request.max_tokens);
    let stepped = wanted.div_ceil(WINDOW_STEP) * WINDOW_STEP;
    card.context.map_or(stepped, |context| stepped.min(context))
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    /// Newer servers then refuse a prompt that does not fit instead of dropping its beginning.
    truncate: bool,
    shift: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<&'static str>,
    options: Options,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Cow<'a, str>,
}

#[derive(Serialize)]
struct Options {
    num_ctx: u64,
    num_predict: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

/// One shape serves both deliveries: a stream is the same object again and again until `done`.
#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<Said<'a>>,
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
struct Said<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

pub(super) fn decode(body: &[u8]) -> Result<Answer, ModelFailure> {
    let mut stream = Stream::default();
    stream.take(serde_json::from_slice(body).map_err(malformed)?)?;
    stream.finish().ok_or_else(|| malformed("the answer is not done"))
}

/// An answer as it grows.
#[derive(Debug, Default)]
pub(super) struct Stream {
    text: String,
    stop: Option<AnswerStop>,
    usage: Option<Usage>,
    model: Option<String>,
}

impl Stream {
    pub(super) fn message(&mut self, json: &[u8]) -> Result<Option<String>, ModelFailure> {
        self.take(serde_json::from_slice(json).map_err(malformed)?)
    }

    fn take(&mut self, chat: Chat<'_>) -> Result<Option<String>, ModelFailure> {
        if let Some(error) = chat.error {
            return Err(of_error_object(&error));
        }
        if let (None, Some(model)) = (&self.model, chat.model) {
            self.model = Some(model.into_owned());
        }
        if chat.done {
            self.stop = Some(match chat.done_reason.as_deref() {
                Some("stop") | None => AnswerStop::End,
                Some("length") => AnswerStop::MaxTokens,
                Some(_) => AnswerStop::Other,
            });
            // A prompt that was served from the cache whole is not counted by some versions; then
            // the numbers are not complete.
            if let (Some(input), Some(output)) = (chat.prompt_eval_count, chat.eval_count) {
                self.usage = Some(Usage { input, output, ..Usage::default() });
            }
        }
        let text = chat.message.and_then(|said| said.content).map(Cow::into_owned);
        self.text.push_str(text.as_deref().unwrap_or(""));
        Ok(text)
    }

    /// What it holds, whether anyone hears it or not.
    pub(super) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    pub(super) fn finish(self) -> Option<Answer> {
        Some(Answer { text: self.text, stop: self.stop?, usage: self.usage, model: self.model })
    }
}
