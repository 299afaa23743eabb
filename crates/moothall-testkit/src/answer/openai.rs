//! OpenAI chat completions.

use serde::{Serialize, Serializer};

use super::{
    Id, Speech,
    stream::{EventStream, deltas},
    write_json,
};
use crate::reply::{Stop, Usage};

/// No clock, so that the same calls get the same bytes.
const CREATED: u64 = 1_760_000_000;

pub(super) fn unary(speech: &Speech<'_>, out: &mut Vec<u8>) {
    let refused = speech.stop == Stop::Refusal;
    let message = Message {
        role: "assistant",
        content: (!refused).then_some(speech.text),
        refusal: refused.then_some(speech.text),
    };
    write_json(
        out,
        &Completion {
            id: Id { prefix: "chatcmpl-", call: speech.call },
            object: "chat.completion",
            created: CREATED,
            model: speech.model,
            choices: [Choice {
                index: 0,
                message,
                logprobs: (),
                finish_reason: finish_reason(speech.stop),
            }],
            usage: speech.usage.map(CompletionUsage::from),
        },
    );
}

pub(super) fn stream(speech: &Speech<'_>, events: &mut EventStream) {
    let refused = speech.stop == Stop::Refusal;
    // With `include_usage` every chunk has the field and all but the last say null; without it none
    // has.
    let no_usage_yet = (speech.wants_usage && speech.usage.is_some()).then_some(None);
    let chunk = |delta, finish_reason| Chunk {
        id: Id { prefix: "chatcmpl-", call: speech.call },
        object: "chat.completion.chunk",
        created: CREATED,
        model: speech.model,
        choices: Some(ChunkChoice { index: 0, delta, logprobs: (), finish_reason }),
        usage: no_usage_yet,
    };
    let opening = Delta {
        role: Some("assistant"),
        content: (!refused).then_some(""),
        refusal: refused.then_some(""),
    };
    events.opening(|out| write_event(out, &chunk(opening, None)));
    for text in deltas(speech.text) {
        let delta = Delta {
            role: None,
            content: (!refused).then_some(text),
            refusal: refused.then_some(text),
        };
        events.delta(|out| write_event(out, &chunk(delta, None)));
    }
    let nothing = Delta { role: None, content: None, refusal: None };
    events.closing(|out| write_event(out, &chunk(nothing, Some(finish_reason(speech.stop)))));
    if let Some(usage) = speech.usage.filter(|_| speech.wants_usage) {
        let last = Chunk { choices: None, usage: Some(Some(usage.into())), ..chunk(nothing, None) };
        events.closing(|out| write_event(out, &last));
    }
    events.closing(|out| out.extend_from_slice(b"data: [DONE]\n\n"));
}

fn write_event(out: &mut Vec<u8>, chunk: &Chunk<'_>) {
    out.extend_from_slice(b"data: ");
    write_json(out, chunk);
    out.extend_from_slice(b"\n\n");
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Refusal => "stop",
        Stop::MaxTokens => "length",
        Stop::ContentFilter => "content_filter",
    }
}

#[derive(Serialize)]
struct Completion<'a> {
    id: Id,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [Choice<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<CompletionUsage>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: (),
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<&'a str>,
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: Id,
    object: &'static str,
    created: u64,
    model: &'a str,
    #[serde(serialize_with = "as_list")]
    choices: Option<ChunkChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<CompletionUsage>>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: (),
    finish_reason: Option<&'static str>,
}

#[derive(Serialize, Clone, Copy)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
}

#[derive(Serialize, Clone, Copy)]
struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
}

#[derive(Serialize, Clone, Copy)]
struct PromptDetails {
    cached_tokens: u64,
    /// Absent unless something was written: most servers of this wire do not know the field.
    #[serde(skip_serializing_if = "is_zero")]
    cache_write_tokens: u64,
}

impl From<Usage> for CompletionUsage {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.prompt(),
            completion_tokens: usage.output,
            total_tokens: usage.total(),
            prompt_tokens_details: PromptDetails {
                cached_tokens: usage.cache_read,
                cache_write_tokens: usage.cache_write,
            },
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The chunk that carries usage has an empty list of choices.
fn as_list<T: Serialize, S: Serializer>(
    item: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(item)
}
