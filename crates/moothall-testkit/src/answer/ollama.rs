//! Ollama's native chat.

use serde::Serialize;

use super::{
    Speech,
    stream::{EventStream, deltas},
    write_json,
};
use crate::reply::Stop;

/// No clock, so that the same calls get the same bytes.
const CREATED_AT: &str = "2025-10-09T08:53:20Z";

pub(super) fn unary(speech: &Speech<'_>, out: &mut Vec<u8>) {
    write_json(out, &Line::last(speech, speech.text));
}

pub(super) fn stream(speech: &Speech<'_>, events: &mut EventStream) {
    for text in deltas(speech.text) {
        events.delta(|out| write_line(out, &Line::new(speech, text)));
    }
    events.closing(|out| write_line(out, &Line::last(speech, "")));
}

fn write_line(out: &mut Vec<u8>, line: &Line<'_>) {
    write_json(out, line);
    out.push(b'\n');
}

/// A line of the stream; the last one, with the whole text, is also the unary answer.
#[derive(Serialize)]
struct Line<'a> {
    model: &'a str,
    created_at: &'static str,
    message: Message<'a>,
    done: bool,
    #[serde(flatten)]
    end: Option<End>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct End {
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

impl<'a> Line<'a> {
    fn new(speech: &Speech<'a>, content: &'a str) -> Self {
        let message = Message { role: "assistant", content };
        Self { model: speech.model, created_at: CREATED_AT, message, done: false, end: None }
    }

    fn last(speech: &Speech<'a>, content: &'a str) -> Self {
        let end = End {
            done_reason: match speech.stop {
                Stop::End | Stop::Refusal | Stop::ContentFilter => "stop",
                Stop::MaxTokens => "length",
            },
            total_duration: 5_000_000,
            load_duration: 1_000_000,
            prompt_eval_count: speech.usage.map(|usage| usage.prompt()),
            prompt_eval_duration: 2_000_000,
            eval_count: speech.usage.map(|usage| usage.output),
            eval_duration: 2_000_000,
        };
        Self { done: true, end: Some(end), ..Self::new(speech, content) }
    }
}
