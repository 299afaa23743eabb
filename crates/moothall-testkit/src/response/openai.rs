//! OpenAI chat completions.

use serde::{Serialize, Serializer};

use super::{
    ReplyContent, ResponseId,
    stream::{EventStream, deltas},
    write_json,
};
use crate::reply::{ReplyStop, ReplyUsage};

/// Fixed, because the same calls must get the same bytes.
const CREATED: u64 = 1_760_000_000;

pub(crate) fn unary(reply_content: &ReplyContent<'_>, out: &mut Vec<u8>) {
    let refused = reply_content.stop == ReplyStop::Refusal;
    let message = OpenAiAssistantMessage {
        role: "assistant",
        content: (!refused).then_some(reply_content.text),
        refusal: refused.then_some(reply_content.text),
    };
    write_json(
        out,
        &OpenAiCompletion {
            id: ResponseId { prefix: "chatcmpl-", call: reply_content.call },
            object: "chat.completion",
            created: CREATED,
            model: reply_content.model,
            choices: [OpenAiCompletionChoice {
                index: 0,
                message,
                logprobs: (),
                finish_reason: finish_reason(reply_content.stop),
            }],
            usage: reply_content.usage.map(CompletionUsage::from),
        },
    );
}

pub(crate) fn stream(reply_content: &ReplyContent<'_>, events: &mut EventStream) {
    let refused = reply_content.stop == ReplyStop::Refusal;
    // With `include_usage` every chunk has the field, which is null in all but the last; without it
    // no chunk has the field.
    let no_usage_yet = (reply_content.wants_usage && reply_content.usage.is_some()).then_some(None);
    let chunk = |delta, finish_reason| OpenAiStreamChunk {
        id: ResponseId { prefix: "chatcmpl-", call: reply_content.call },
        object: "chat.completion.chunk",
        created: CREATED,
        model: reply_content.model,
        choices: Some(ChunkChoice { index: 0, delta, logprobs: (), finish_reason }),
        usage: no_usage_yet,
    };
    let opening = OpenAiStreamDelta {
        role: Some("assistant"),
        content: (!refused).then_some(""),
        refusal: refused.then_some(""),
    };
    events.opening(|out| write_event(out, &chunk(opening, None)));
    for text in deltas(reply_content.text) {
        let delta = OpenAiStreamDelta {
            role: None,
            content: (!refused).then_some(text),
            refusal: refused.then_some(text),
        };
        events.delta(|out| write_event(out, &chunk(delta, None)));
    }
    let nothing = OpenAiStreamDelta { role: None, content: None, refusal: None };
    events
        .closing(|out| write_event(out, &chunk(nothing, Some(finish_reason(reply_content.stop)))));
    if let Some(usage) = reply_content.usage.filter(|_| reply_content.wants_usage) {
        let last = OpenAiStreamChunk {
            choices: None,
            usage: Some(Some(usage.into())),
            ..chunk(nothing, None)
        };
        events.closing(|out| write_event(out, &last));
    }
    events.closing(|out| out.extend_from_slice(b"data: [DONE]\n\n"));
}

fn write_event(out: &mut Vec<u8>, chunk: &OpenAiStreamChunk<'_>) {
    out.extend_from_slice(b"data: ");
    write_json(out, chunk);
    out.extend_from_slice(b"\n\n");
}

fn finish_reason(stop: ReplyStop) -> &'static str {
    match stop {
        ReplyStop::End | ReplyStop::Refusal => "stop",
        ReplyStop::MaxTokens => "length",
        ReplyStop::ContentFilter => "content_filter",
    }
}

#[derive(Serialize)]
struct OpenAiCompletion<'a> {
    id: ResponseId,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [OpenAiCompletionChoice<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<CompletionUsage>,
}

#[derive(Serialize)]
struct OpenAiCompletionChoice<'a> {
    index: u32,
    message: OpenAiAssistantMessage<'a>,
    logprobs: (),
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct OpenAiAssistantMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<&'a str>,
}

#[derive(Serialize)]
struct OpenAiStreamChunk<'a> {
    id: ResponseId,
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
    delta: OpenAiStreamDelta<'a>,
    logprobs: (),
    finish_reason: Option<&'static str>,
}

#[derive(Serialize, Clone, Copy)]
struct OpenAiStreamDelta<'a> {
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
    prompt_tokens_details: CompletionPromptDetails,
}

#[derive(Serialize, Clone, Copy)]
struct CompletionPromptDetails {
    cached_tokens: u64,
    /// Omitted if zero: most servers of this protocol do not have the field.
    #[serde(skip_serializing_if = "is_zero")]
    cache_write_tokens: u64,
}

impl From<ReplyUsage> for CompletionUsage {
    fn from(usage: ReplyUsage) -> Self {
        Self {
            prompt_tokens: usage.prompt(),
            completion_tokens: usage.output,
            total_tokens: usage.total(),
            prompt_tokens_details: CompletionPromptDetails {
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
