//! Anthropic messages.

use serde::{Serialize, Serializer};

use super::{
    ReplyContent, ResponseId,
    stream::{EventStream, deltas},
    write_json,
};
use crate::reply::{ReplyStop, ReplyUsage};

/// Number of deltas between two pings, after the ping at the start of a stream.
const DELTAS_PER_PING: usize = 64;

pub(crate) fn unary(reply_content: &ReplyContent<'_>, out: &mut Vec<u8>) {
    write_json(
        out,
        &AnthropicMessageBody {
            content: (!reply_content.text.is_empty())
                .then_some(AnthropicTextPart { kind: "text", text: reply_content.text }),
            stop_reason: Some(stop_reason(reply_content.stop)),
            stop_details: stop_details(reply_content.stop),
            usage: reply_content.usage.map(MessageUsage::from),
            ..AnthropicMessageBody::opening(reply_content)
        },
    );
}

pub(crate) fn stream(reply_content: &ReplyContent<'_>, events: &mut EventStream) {
    // Like the real server, `message_start` reports the usage so far: the prompt and the first
    // token.
    let usage = reply_content
        .usage
        .map(|usage| MessageUsage { output_tokens: usage.output.min(1), ..usage.into() });
    let message = AnthropicMessageBody { usage, ..AnthropicMessageBody::opening(reply_content) };
    events.opening(|out| {
        write_event(out, "message_start", &MessageStart { kind: "message_start", message })
    });
    if !reply_content.text.is_empty() {
        let content_block = AnthropicTextPart { kind: "text", text: "" };
        let start = BlockStart { kind: "content_block_start", index: 0, content_block };
        events.opening(|out| write_event(out, "content_block_start", &start));
        events.opening(write_ping);
        for (position, text) in deltas(reply_content.text).enumerate() {
            let delta = AnthropicTextPart { kind: "text_delta", text };
            let delta = BlockDelta { kind: "content_block_delta", index: 0, delta };
            events.delta(|out| write_event(out, "content_block_delta", &delta));
            if position % DELTAS_PER_PING == DELTAS_PER_PING - 1 {
                events.closing(write_ping);
            }
        }
        let stop = BlockStop { kind: "content_block_stop", index: 0 };
        events.closing(|out| write_event(out, "content_block_stop", &stop));
    }
    let delta = MessageDelta {
        kind: "message_delta",
        delta: AnthropicStopInfo {
            stop_reason: stop_reason(reply_content.stop),
            stop_sequence: (),
            stop_details: stop_details(reply_content.stop),
        },
        usage: reply_content.usage.map(|usage| OutputUsage { output_tokens: usage.output }),
    };
    events.closing(|out| write_event(out, "message_delta", &delta));
    events.closing(|out| write_event(out, "message_stop", &MessageStop { kind: "message_stop" }));
}

fn write_event(out: &mut Vec<u8>, name: &str, data: &impl Serialize) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write_json(out, data);
    out.extend_from_slice(b"\n\n");
}

fn write_ping(out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ping\ndata: {\"type\": \"ping\"}\n\n");
}

fn stop_reason(stop: ReplyStop) -> &'static str {
    match stop {
        ReplyStop::End => "end_turn",
        ReplyStop::MaxTokens => "max_tokens",
        ReplyStop::Refusal | ReplyStop::ContentFilter => "refusal",
    }
}

fn stop_details(stop: ReplyStop) -> Option<StopDetails> {
    match stop {
        ReplyStop::End | ReplyStop::MaxTokens => None,
        ReplyStop::Refusal | ReplyStop::ContentFilter => Some(StopDetails {
            kind: "refusal",
            category: (),
            explanation: "This request was declined by the fake provider.",
        }),
    }
}

#[derive(Serialize)]
struct AnthropicMessageBody<'a> {
    id: ResponseId,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    #[serde(serialize_with = "as_list")]
    content: Option<AnthropicTextPart<'a>>,
    stop_reason: Option<&'static str>,
    stop_sequence: (),
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_details: Option<StopDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<MessageUsage>,
}

impl<'a> AnthropicMessageBody<'a> {
    /// The message without content, stop reason or usage.
    fn opening(reply_content: &ReplyContent<'a>) -> Self {
        Self {
            id: ResponseId { prefix: "msg_", call: reply_content.call },
            kind: "message",
            role: "assistant",
            model: reply_content.model,
            content: None,
            stop_reason: None,
            stop_sequence: (),
            stop_details: None,
            usage: None,
        }
    }
}

#[derive(Serialize)]
struct AnthropicTextPart<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct StopDetails {
    #[serde(rename = "type")]
    kind: &'static str,
    category: (),
    explanation: &'static str,
}

#[derive(Serialize)]
struct MessageUsage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl From<ReplyUsage> for MessageUsage {
    fn from(usage: ReplyUsage) -> Self {
        Self {
            input_tokens: usage.input,
            cache_creation_input_tokens: usage.cache_write,
            cache_read_input_tokens: usage.cache_read,
            output_tokens: usage.output,
        }
    }
}

#[derive(Serialize)]
struct MessageStart<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: AnthropicMessageBody<'a>,
}

#[derive(Serialize)]
struct BlockStart<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: u32,
    content_block: AnthropicTextPart<'a>,
}

#[derive(Serialize)]
struct BlockDelta<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: u32,
    delta: AnthropicTextPart<'a>,
}

#[derive(Serialize)]
struct BlockStop {
    #[serde(rename = "type")]
    kind: &'static str,
    index: u32,
}

#[derive(Serialize)]
struct MessageDelta {
    #[serde(rename = "type")]
    kind: &'static str,
    delta: AnthropicStopInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<OutputUsage>,
}

#[derive(Serialize)]
struct AnthropicStopInfo {
    stop_reason: &'static str,
    stop_sequence: (),
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_details: Option<StopDetails>,
}

#[derive(Serialize)]
struct OutputUsage {
    output_tokens: u64,
}

#[derive(Serialize)]
struct MessageStop {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// A message without text has an empty list of content blocks.
fn as_list<T: Serialize, S: Serializer>(
    item: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(item)
}
