//! Ollama's native chat API.

use serde::Serialize;

use super::{
    ReplyContent,
    stream::{EventStream, deltas},
    write_json,
};
use crate::reply::ReplyStop;

/// Fixed, because the same calls must get the same bytes.
const CREATED_AT: &str = "2025-10-09T08:53:20Z";

pub(crate) fn unary(reply_content: &ReplyContent<'_>, out: &mut Vec<u8>) {
    write_json(out, &OllamaResponseLine::last(reply_content, reply_content.text));
}

pub(crate) fn stream(reply_content: &ReplyContent<'_>, events: &mut EventStream) {
    for text in deltas(reply_content.text) {
        events.delta(|out| write_line(out, &OllamaResponseLine::new(reply_content, text)));
    }
    events.closing(|out| write_line(out, &OllamaResponseLine::last(reply_content, "")));
}

fn write_line(out: &mut Vec<u8>, line: &OllamaResponseLine<'_>) {
    write_json(out, line);
    out.push(b'\n');
}

/// A line of the stream. The last line, with the whole text, is also the unary response.
#[derive(Serialize)]
struct OllamaResponseLine<'a> {
    model: &'a str,
    created_at: &'static str,
    message: OllamaAssistantMessage<'a>,
    done: bool,
    #[serde(flatten)]
    end: Option<OllamaFinalStats>,
}

#[derive(Serialize)]
struct OllamaAssistantMessage<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct OllamaFinalStats {
    done_reason: &'static str,
    total_duration: u64,
    load_duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_eval_count: Option<u64>,
    prompt_eval_duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_count: Option<u64>,
    eval_duration: u64,
}

impl<'a> OllamaResponseLine<'a> {
    fn new(reply_content: &ReplyContent<'a>, content: &'a str) -> Self {
        let message = OllamaAssistantMessage { role: "assistant", content };
        Self { model: reply_content.model, created_at: CREATED_AT, message, done: false, end: None }
    }

    fn last(reply_content: &ReplyContent<'a>, content: &'a str) -> Self {
        let end = OllamaFinalStats {
            done_reason: match reply_content.stop {
                ReplyStop::End | ReplyStop::Refusal | ReplyStop::ContentFilter => "stop",
                ReplyStop::MaxTokens => "length",
            },
            total_duration: 5_000_000,
            load_duration: 1_000_000,
            prompt_eval_count: reply_content.usage.map(|usage| usage.prompt()),
            prompt_eval_duration: 2_000_000,
            eval_count: reply_content.usage.map(|usage| usage.output),
            eval_duration: 2_000_000,
        };
        Self { done: true, end: Some(end), ..Self::new(reply_content, content) }
    }
}
