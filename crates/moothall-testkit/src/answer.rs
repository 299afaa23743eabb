//! From a call and a behaviour to the bytes that leave the socket. No I/O here: every fault is a
//! matter of which bytes are promised, which are sent, and how the connection ends.

mod anthropic;
mod http;
mod ollama;
mod openai;
mod stream;

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::{
    behaviour::{Behaviour, Fault},
    call::Call,
    problem::Problem,
    reply::{Stop, Usage, tokens},
    stats::Bill,
    wire::{Wire, write_json},
};
use http::{Head, Length};
use stream::EventStream;

/// What to do about one call.
#[derive(Debug)]
pub(crate) enum Answer {
    Deliver(Delivery),
    /// Nothing, until the client leaves.
    Hang,
}

/// Bytes, and how they go out.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Sends the body in small pieces.
    pub(crate) drip: Option<Drip>,
    pub(crate) ending: Ending,
    pub(crate) bill: Option<Bill>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Drip {
    pub(crate) chunk: usize,
    pub(crate) every: Duration,
}

/// What becomes of the connection after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    KeepAlive,
    Close,
    Reset,
}

/// The answer to a call.
pub(crate) fn answer(call: &Call, behaviour: &Behaviour) -> Answer {
    let Behaviour { fault, reply, .. } = behaviour;
    let fault = fault.as_ref();
    match fault {
        Some(Fault::Hang) => return Answer::Hang,
        Some(Fault::ConnectionReset) => {
            return Answer::Deliver(Delivery {
                head: String::new(),
                body: Vec::new(),
                drip: None,
                ending: Ending::Reset,
                bill: None,
            });
        }
        _ => {}
    }
    if let Some(problem) = fault.and_then(|fault| problem(call, fault)) {
        let retry_after = match fault {
            Some(Fault::RateLimited { retry_after }) => {
                retry_after.map(|retry_after| retry_after.header())
            }
            _ => None,
        };
        return Answer::Deliver(refusal(call.wire, problem, &request_id(call.number), retry_after));
    }

    let billed = reply.billed(call.prompt_bytes);
    let speech = Speech {
        call: call.number,
        model: reply.model.as_deref().unwrap_or(&call.model),
        text: &reply.text,
        stop: reply.stop,
        usage: reply.claimed(billed),
        wants_usage: call.wants_usage,
    };
    let mut delivery =
        if call.stream { streamed(call, fault, &speech) } else { unary(call, fault, &speech) };
    delivery.bill =
        Some(Bill { call: call.number, usage: billed, reported: told(call, fault, speech.usage) });
    Answer::Deliver(delivery)
}

/// An error answer. Also for requests that are no call, which have no number.
pub(crate) fn refusal(
    wire: Wire,
    problem: Problem,
    request_id: &str,
    retry_after: Option<String>,
) -> Delivery {
    let mut body = Vec::with_capacity(256);
    problem.write(wire, request_id, &mut body);
    let head = Head {
        status: problem.status(wire),
        content_type: "application/json",
        length: Length::Known(body.len()),
        retry_after: retry_after.as_deref(),
    };
    Delivery {
        head: head.render(wire, request_id),
        body,
        drip: None,
        ending: Ending::KeepAlive,
        bill: None,
    }
}

/// A reply as one wire will put it.
struct Speech<'a> {
    call: u64,
    model: &'a str,
    text: &'a str,
    stop: Stop,
    /// What the answer says about usage.
    usage: Option<Usage>,
    wants_usage: bool,
}

/// The error that a fault comes to, for those that do.
fn problem(call: &Call, fault: &Fault) -> Option<Problem> {
    match fault {
        Fault::RateLimited { .. } => Some(Problem::RateLimited),
        Fault::ServerError => Some(Problem::ServerError),
        Fault::Overloaded => Some(Problem::Overloaded),
        Fault::Unauthorized => Some(Problem::Unauthorized),
        Fault::ContextOverflow { window } => {
            // The message must make sense even if the test's prompt is short.
            let prompt = tokens(call.prompt_bytes).max(window.saturating_add(1));
            Some(Problem::ContextOverflow { prompt, window: *window })
        }
        Fault::MidStreamError => (!call.stream).then_some(Problem::ServerError),
        Fault::ConnectionReset
        | Fault::ResetMidBody
        | Fault::HalfBody
        | Fault::EarlyEnd
        | Fault::InvalidJson
        | Fault::HtmlBody
        | Fault::SlowDrip { .. }
        | Fault::Hang => None,
    }
}

fn unary(call: &Call, fault: Option<&Fault>, speech: &Speech<'_>) -> Delivery {
    let mut body = Vec::with_capacity(speech.text.len() + 768);
    match call.wire {
        Wire::OpenAi => openai::unary(speech, &mut body),
        Wire::Anthropic => anthropic::unary(speech, &mut body),
        Wire::Ollama => ollama::unary(speech, &mut body),
    }
    let whole = body.len();
    let mut promised = whole;
    let mut ending = Ending::KeepAlive;
    let mut content_type = "application/json";
    match fault {
        Some(Fault::HalfBody) => {
            body.truncate(whole / 2);
            ending = Ending::Close;
        }
        Some(Fault::ResetMidBody) => {
            body.truncate(whole / 2);
            ending = Ending::Reset;
        }
        Some(Fault::EarlyEnd | Fault::InvalidJson) => {
            body.truncate(whole / 2);
            promised = body.len();
        }
        Some(Fault::HtmlBody) => {
            body = http::WEB_PAGE.to_vec();
            promised = body.len();
            content_type = "text/html";
        }
        _ => {}
    }
    let head =
        Head { status: 200, content_type, length: Length::Known(promised), retry_after: None };
    let head = head.render(call.wire, &request_id(call.number));
    Delivery { head, body, drip: drip(fault), ending, bill: None }
}

fn streamed(call: &Call, fault: Option<&Fault>, speech: &Speech<'_>) -> Delivery {
    if fault == Some(&Fault::HtmlBody) {
        return unary(call, fault, speech);
    }
    let mut events = EventStream::for_text(speech.text.len());
    match call.wire {
        Wire::OpenAi => openai::stream(speech, &mut events),
        Wire::Anthropic => anthropic::stream(speech, &mut events),
        Wire::Ollama => ollama::stream(speech, &mut events),
    }
    let (body, ending) = match fault {
        Some(Fault::HalfBody) => (events.cut_inside_the_event_after_first_delta(), Ending::Close),
        Some(Fault::ResetMidBody) => (events.cut_after_first_delta(), Ending::Reset),
        Some(Fault::EarlyEnd) => (events.replace_after_first_delta(|_| {}), Ending::KeepAlive),
        Some(Fault::InvalidJson) => (
            events.replace_after_first_delta(|events| match call.wire {
                Wire::OpenAi => events.closing(|out| {
                    out.extend_from_slice(b"data: {\"id\":\"chatcmpl-\",\"choi\n\n")
                }),
                Wire::Anthropic => events.closing(|out| {
                    out.extend_from_slice(
                        b"event: content_block_delta\ndata: {\"type\":\"content_bl\n\n",
                    );
                }),
                Wire::Ollama => {
                    events.closing(|out| out.extend_from_slice(b"{\"model\":\"\",\"mess\n"))
                }
            }),
            Ending::KeepAlive,
        ),
        Some(Fault::MidStreamError) => (
            events.replace_after_first_delta(|events| {
                let request_id = request_id(call.number);
                match call.wire {
                    Wire::OpenAi => events.closing(|out| {
                        out.extend_from_slice(b"data: ");
                        Problem::ServerError.write(call.wire, &request_id, out);
                        out.extend_from_slice(b"\n\n");
                    }),
                    Wire::Anthropic => events.closing(|out| {
                        out.extend_from_slice(b"event: error\ndata: ");
                        Problem::Overloaded.write(call.wire, &request_id, out);
                        out.extend_from_slice(b"\n\n");
                    }),
                    Wire::Ollama => events.closing(|out| {
                        Problem::ServerError.write(call.wire, &request_id, out);
                        out.push(b'\n');
                    }),
                }
            }),
            Ending::KeepAlive,
        ),
        _ => (events.finish(), Ending::KeepAlive),
    };
    let content_type = match call.wire {
        Wire::OpenAi | Wire::Anthropic => "text/event-stream; charset=utf-8",
        Wire::Ollama => "application/x-ndjson",
    };
    let head = Head { status: 200, content_type, length: Length::Chunked, retry_after: None };
    let head = head.render(call.wire, &request_id(call.number));
    Delivery { head, body, drip: drip(fault), ending, bill: None }
}

fn drip(fault: Option<&Fault>) -> Option<Drip> {
    match fault {
        Some(&Fault::SlowDrip { chunk, every }) => Some(Drip { chunk: chunk.max(1), every }),
        _ => None,
    }
}

/// What a client that reads everything learns about usage.
fn told(call: &Call, fault: Option<&Fault>, claimed: Option<Usage>) -> Option<Usage> {
    let whole = matches!(fault, None | Some(Fault::SlowDrip { .. }));
    let asked = !call.stream || call.wants_usage;
    let usage = claimed.filter(|_| whole && asked)?;
    Some(match call.wire {
        Wire::OpenAi | Wire::Anthropic => usage,
        Wire::Ollama => Usage { input: usage.prompt(), output: usage.output, ..Usage::ZERO },
    })
}

/// The id of an answer: the wire's prefix and the number of the call, written without a string of
/// its own because every chunk of a stream carries it.
#[derive(Debug, Clone, Copy)]
struct Id {
    prefix: &'static str,
    call: u64,
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}{:020}", self.prefix, self.call))
    }
}

fn request_id(call: u64) -> String {
    format!("req_{call:020}")
}
