//! Anthropic messages.

use serde::{Serialize, Serializer};

use super::{
    Id, Speech,
    stream::{EventStream, deltas},
    write_json,
};
use crate::reply::{Stop, Usage};

/// Deltas between two pings after the one that opens a stream.
const DELTAS_PER_PING: usize = 64;

pub(super) fn unary(speech: &Speech<'_>, out: &mut Vec<u8>) {
    write_json(
        out,
        &Message {
            content: (!speech.text.is_empty()).then_some(Text { kind: "text", text: speech.text }),
            stop_reason: Some(stop_reason(speech.stop)),
            stop_details: stop_details(speech.stop),
            usage: speech.usage.map(MessageUsage::from),
            ..Message::opening(speech)
        },
    );
}

pub(super) fn stream(speech: &Speech<'_>, events: &mut EventStream) {
    // The count so far, as the real server says it: the prompt and the first token.
    let usage = speech
        .usage
        .map(|usage| MessageUsage { output_tokens: usage.output.min(1), ..usage.into() });
    let message = Message { usage, ..Message::opening(speech) };
    events.opening(|out| {
        write_event(out, "message_start", &MessageStart { kind: "message_start", message })
    });
    if !speech.text.is_empty() {
        let content_block = Text { kind: "text", text: "" };
        let start = BlockStart { kind: "content_block_start", index: 0, content_block };
        events.opening(|out| write_event(out, "content_block_start", &start));
        events.opening(write_ping);
        for (position, text) in deltas(speech.text).enumerate() {
            let delta = Text { kind: "text_delta", text };
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
        delta: Stopped {
            stop_reason: stop_reason(speech.stop),
            stop_sequence: (),
            stop_details: stop_details(speech.stop),
        },
        usage: speech.usage.map(|usage| OutputUsage { output_tokens: usage.output }),
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

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal | Stop::ContentFilter => "refusal",
    }
}

fn stop_details(stop: Stop) -> Option<StopDetails> {
    match stop {
        Stop::End | Stop::MaxTokens => None,
        Stop::Refusal | Stop::ContentFilter => Some(StopDetails {
            kind: "refusal",
            category: (),
            explanation: "This request was declined by the fake provider.",
        }),
    }
}

#[derive(Serialize)]
struct Message<'a> {
    id: Id,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    #[serde(serialize_with = "as_list")]
    content: Option<Text<'a>>,
    stop_reason: Option<&'static str>,
    stop_sequence: (),
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_details: Option<StopDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<MessageUsage>,
}

impl<'a> Message<'a> {
    /// The message before anything was said.
    fn opening(speech: &Speech<'a>) -> Self {
        Self {
            id: Id { prefix: "msg_", call: speech.call },
            kind: "message",
            role: "assistant",
            model: speech.model,
            content: None,
            stop_reason: None,
            stop_sequence: (),
            stop_details: None,
            usage: None,
        }
    }
}

#[derive(Serialize)]
struct Text<'a> {
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

impl From<Usage> for MessageUsage {
    fn from(usage: Usage) -> Self {
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
    message: Message<'a>,
}

#[derive(Serialize)]
struct BlockStart<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: u32,
    content_block: Text<'a>,
}

#[derive(Serialize)]
struct BlockDelta<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: u32,
    delta: Text<'a>,
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
    delta: Stopped,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<OutputUsage>,
}

#[derive(Serialize)]
struct Stopped {
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
