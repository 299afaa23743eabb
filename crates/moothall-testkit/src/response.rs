//! Turns a call and a behaviour into the bytes to send, without I/O. A fault determines which bytes
//! are announced, which are sent, and how the connection ends.

mod anthropic;
mod http;
mod ollama;
mod openai;
mod stream;

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::{
    behaviour::{ProviderBehaviour, ProviderFault, VerbatimResponse},
    call::ProviderCall,
    error_response::ErrorResponse,
    protocol::{ProviderProtocol, write_json},
    reply::{ReplyStop, ReplyUsage, tokens},
    stats::CallBill,
};
use http::{BodyLength, ResponseHead};
use stream::EventStream;

#[derive(Debug)]
pub(crate) enum ProviderResponse {
    Deliver(ResponseDelivery),
    /// Send nothing until the client disconnects.
    Hang,
}

/// The bytes of a response and how to send them.
#[derive(Debug)]
pub(crate) struct ResponseDelivery {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) drip: Option<SlowDelivery>,
    pub(crate) ending: ConnectionEnd,
    pub(crate) bill: Option<CallBill>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SlowDelivery {
    pub(crate) chunk: usize,
    pub(crate) every: Duration,
}

/// What happens to the connection after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    KeepAlive,
    Close,
    Reset,
}

pub(crate) fn answer(call: &ProviderCall, behaviour: &ProviderBehaviour) -> ProviderResponse {
    let ProviderBehaviour { fault, reply, .. } = behaviour;
    let fault = fault.as_ref();
    match fault {
        Some(ProviderFault::Hang) => return ProviderResponse::Hang,
        Some(ProviderFault::ConnectionReset) => {
            return ProviderResponse::Deliver(ResponseDelivery {
                head: String::new(),
                body: Vec::new(),
                drip: None,
                ending: ConnectionEnd::Reset,
                bill: None,
            });
        }
        Some(ProviderFault::Verbatim(response)) => {
            return ProviderResponse::Deliver(verbatim(call, response));
        }
        _ => {}
    }
    if let Some(problem) = fault.and_then(|fault| problem(call, fault)) {
        let retry_after = match fault {
            Some(ProviderFault::RateLimited { retry_after }) => {
                retry_after.map(|retry_after| retry_after.header())
            }
            _ => None,
        };
        return ProviderResponse::Deliver(refusal(
            call.wire,
            problem,
            &request_id(call.number),
            retry_after,
        ));
    }

    let billed = reply.billed(call.prompt_bytes);
    let reply_content = ReplyContent {
        call: call.number,
        model: reply.model.as_deref().unwrap_or(&call.model),
        text: &reply.text,
        stop: reply.stop,
        usage: reply.claimed(billed),
        wants_usage: call.wants_usage,
    };
    let mut delivery = if call.stream {
        streamed(call, fault, &reply_content)
    } else {
        unary(call, fault, &reply_content)
    };
    delivery.bill = Some(CallBill {
        call: call.number,
        usage: billed,
        reported: reported_usage(call, fault, reply_content.usage),
    });
    ProviderResponse::Deliver(delivery)
}

fn verbatim(call: &ProviderCall, response: &VerbatimResponse) -> ResponseDelivery {
    let retry_after = response.retry_after.map(|retry_after| retry_after.header());
    let head = ResponseHead {
        status: response.status,
        content_type: response.content_type,
        length: BodyLength::Known(response.body.len()),
        retry_after: retry_after.as_deref(),
    };
    ResponseDelivery {
        head: head.render(call.wire, &request_id(call.number)),
        body: response.body.clone(),
        drip: None,
        ending: ConnectionEnd::KeepAlive,
        bill: None,
    }
}

/// An error response, also used for requests that are not model calls and have no number.
pub(crate) fn refusal(
    wire: ProviderProtocol,
    problem: ErrorResponse,
    request_id: &str,
    retry_after: Option<String>,
) -> ResponseDelivery {
    let mut body = Vec::with_capacity(256);
    problem.write(wire, request_id, &mut body);
    let head = ResponseHead {
        status: problem.status(wire),
        content_type: "application/json",
        length: BodyLength::Known(body.len()),
        retry_after: retry_after.as_deref(),
    };
    ResponseDelivery {
        head: head.render(wire, request_id),
        body,
        drip: None,
        ending: ConnectionEnd::KeepAlive,
        bill: None,
    }
}

/// The content of a reply, before it is encoded for a protocol.
struct ReplyContent<'a> {
    call: u64,
    model: &'a str,
    text: &'a str,
    stop: ReplyStop,
    /// The usage that the response reports.
    usage: Option<ReplyUsage>,
    wants_usage: bool,
}

/// The error response for a fault; `None` for faults that do not cause one.
fn problem(call: &ProviderCall, fault: &ProviderFault) -> Option<ErrorResponse> {
    match fault {
        ProviderFault::RateLimited { .. } => Some(ErrorResponse::RateLimited),
        ProviderFault::ServerError => Some(ErrorResponse::ServerError),
        ProviderFault::Overloaded => Some(ErrorResponse::Overloaded),
        ProviderFault::Unauthorized => Some(ErrorResponse::Unauthorized),
        ProviderFault::ContextOverflow { window } => {
            // The message must make sense even if the test's prompt is short.
            let prompt = tokens(call.prompt_bytes).max(window.saturating_add(1));
            Some(ErrorResponse::ContextOverflow { prompt, window: *window })
        }
        ProviderFault::MidStreamError => (!call.stream).then_some(ErrorResponse::ServerError),
        ProviderFault::ConnectionReset
        | ProviderFault::ResetMidBody
        | ProviderFault::HalfBody
        | ProviderFault::EarlyEnd
        | ProviderFault::InvalidJson
        | ProviderFault::HtmlBody
        | ProviderFault::SlowDrip { .. }
        | ProviderFault::Verbatim(_)
        | ProviderFault::Hang => None,
    }
}

fn unary(
    call: &ProviderCall,
    fault: Option<&ProviderFault>,
    reply_content: &ReplyContent<'_>,
) -> ResponseDelivery {
    let mut body = Vec::with_capacity(reply_content.text.len() + 768);
    match call.wire {
        ProviderProtocol::OpenAi => openai::unary(reply_content, &mut body),
        ProviderProtocol::Anthropic => anthropic::unary(reply_content, &mut body),
        ProviderProtocol::Ollama => ollama::unary(reply_content, &mut body),
    }
    let full_length = body.len();
    let mut promised = full_length;
    let mut ending = ConnectionEnd::KeepAlive;
    let mut content_type = "application/json";
    match fault {
        Some(ProviderFault::HalfBody) => {
            body.truncate(full_length / 2);
            ending = ConnectionEnd::Close;
        }
        Some(ProviderFault::ResetMidBody) => {
            body.truncate(full_length / 2);
            ending = ConnectionEnd::Reset;
        }
        Some(ProviderFault::EarlyEnd | ProviderFault::InvalidJson) => {
            body.truncate(full_length / 2);
            promised = body.len();
        }
        Some(ProviderFault::HtmlBody) => {
            body = http::WEB_PAGE.to_vec();
            promised = body.len();
            content_type = "text/html";
        }
        _ => {}
    }
    let head = ResponseHead {
        status: 200,
        content_type,
        length: BodyLength::Known(promised),
        retry_after: None,
    };
    let head = head.render(call.wire, &request_id(call.number));
    ResponseDelivery { head, body, drip: drip(fault), ending, bill: None }
}

fn streamed(
    call: &ProviderCall,
    fault: Option<&ProviderFault>,
    reply_content: &ReplyContent<'_>,
) -> ResponseDelivery {
    if fault == Some(&ProviderFault::HtmlBody) {
        return unary(call, fault, reply_content);
    }
    let mut events = EventStream::for_text(reply_content.text.len());
    match call.wire {
        ProviderProtocol::OpenAi => openai::stream(reply_content, &mut events),
        ProviderProtocol::Anthropic => anthropic::stream(reply_content, &mut events),
        ProviderProtocol::Ollama => ollama::stream(reply_content, &mut events),
    }
    let (body, ending) = match fault {
        Some(ProviderFault::HalfBody) => {
            (events.cut_inside_the_event_after_first_delta(), ConnectionEnd::Close)
        }
        Some(ProviderFault::ResetMidBody) => (events.cut_after_first_delta(), ConnectionEnd::Reset),
        Some(ProviderFault::EarlyEnd) => {
            (events.replace_after_first_delta(|_| {}), ConnectionEnd::KeepAlive)
        }
        Some(ProviderFault::InvalidJson) => (
            events.replace_after_first_delta(|events| match call.wire {
                ProviderProtocol::OpenAi => events.closing(|out| {
                    out.extend_from_slice(b"data: {\"id\":\"chatcmpl-\",\"choi\n\n")
                }),
                ProviderProtocol::Anthropic => events.closing(|out| {
                    out.extend_from_slice(
                        b"event: content_block_delta\ndata: {\"type\":\"content_bl\n\n",
                    );
                }),
                ProviderProtocol::Ollama => {
                    events.closing(|out| out.extend_from_slice(b"{\"model\":\"\",\"mess\n"))
                }
            }),
            ConnectionEnd::KeepAlive,
        ),
        Some(ProviderFault::MidStreamError) => (
            events.replace_after_first_delta(|events| {
                let request_id = request_id(call.number);
                match call.wire {
                    ProviderProtocol::OpenAi => events.closing(|out| {
                        out.extend_from_slice(b"data: ");
                        ErrorResponse::ServerError.write(call.wire, &request_id, out);
                        out.extend_from_slice(b"\n\n");
                    }),
                    ProviderProtocol::Anthropic => events.closing(|out| {
                        out.extend_from_slice(b"event: error\ndata: ");
                        ErrorResponse::Overloaded.write(call.wire, &request_id, out);
                        out.extend_from_slice(b"\n\n");
                    }),
                    ProviderProtocol::Ollama => events.closing(|out| {
                        ErrorResponse::ServerError.write(call.wire, &request_id, out);
                        out.push(b'\n');
                    }),
                }
            }),
            ConnectionEnd::KeepAlive,
        ),
        _ => (events.finish(), ConnectionEnd::KeepAlive),
    };
    let content_type = match call.wire {
        ProviderProtocol::OpenAi | ProviderProtocol::Anthropic => {
            "text/event-stream; charset=utf-8"
        }
        ProviderProtocol::Ollama => "application/x-ndjson",
    };
    let head =
        ResponseHead { status: 200, content_type, length: BodyLength::Chunked, retry_after: None };
    let head = head.render(call.wire, &request_id(call.number));
    ResponseDelivery { head, body, drip: drip(fault), ending, bill: None }
}

fn drip(fault: Option<&ProviderFault>) -> Option<SlowDelivery> {
    match fault {
        Some(&ProviderFault::SlowDrip { chunk, every }) => {
            Some(SlowDelivery { chunk: chunk.max(1), every })
        }
        _ => None,
    }
}

/// The usage that a client learns if it reads the whole response.
fn reported_usage(
    call: &ProviderCall,
    fault: Option<&ProviderFault>,
    claimed: Option<ReplyUsage>,
) -> Option<ReplyUsage> {
    let is_complete = matches!(fault, None | Some(ProviderFault::SlowDrip { .. }));
    let requests_usage = !call.stream || call.wants_usage;
    let usage = claimed.filter(|_| is_complete && requests_usage)?;
    Some(match call.wire {
        ProviderProtocol::OpenAi | ProviderProtocol::Anthropic => usage,
        ProviderProtocol::Ollama => {
            ReplyUsage { input: usage.prompt(), output: usage.output, ..ReplyUsage::ZERO }
        }
    })
}

/// The id of a response: the protocol's prefix and the call number. Serialized without allocating,
/// because every chunk of a stream contains it.
#[derive(Debug, Clone, Copy)]
struct ResponseId {
    prefix: &'static str,
    call: u64,
}

impl Serialize for ResponseId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}{:020}", self.prefix, self.call))
    }
}

fn request_id(call: u64) -> String {
    format!("req_{call:020}")
}
