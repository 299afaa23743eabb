//! How the server handles one call: the reply, its fault and its latency.

use std::time::{Duration, SystemTime};

use crate::reply::{FakeReply, ReplyStop, ReplyUsage, UsageReport};

/// How the server handles one call. The crate documentation lists what each behaviour sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderBehaviour {
    /// Time between the last byte of the request and the first byte of the response, with or
    /// without a fault.
    pub latency: Duration,
    /// The fault in delivering the reply, if any.
    pub fault: Option<ProviderFault>,
    /// The model's reply. Not sent if the fault prevents a response.
    pub reply: FakeReply,
}

impl ProviderBehaviour {
    /// A reply with this text and no fault.
    pub fn text(text: impl Into<String>) -> Self {
        Self::reply(FakeReply::text(text))
    }

    /// This reply without a fault.
    pub fn reply(reply: FakeReply) -> Self {
        Self { latency: Duration::ZERO, fault: None, reply }
    }

    /// A reply with an empty text.
    pub fn empty_text() -> Self {
        Self::text("")
    }

    /// The model refuses, encoded as each protocol does.
    pub fn refusal(text: impl Into<String>) -> Self {
        Self::text(text).with_stop(ReplyStop::Refusal)
    }

    /// Valid JSON that matches none of our schemas.
    pub fn wrong_schema() -> Self {
        Self::text(r#"{"unexpected":true}"#)
    }

    /// A normal reply to a prompt that was cut to fit into `window` tokens: its usage adds up to
    /// the window.
    pub fn silent_truncation(window: u64) -> Self {
        Self::reply(FakeReply {
            truncated_to: Some(window),
            ..FakeReply::text("I answered the part of the question that I saw.")
        })
    }

    /// A normal reply whose usage is missing or wrong.
    pub fn wrong_usage(reported: UsageReport) -> Self {
        Self::text("The numbers beside this text are wrong.").reporting(reported)
    }

    /// Delays the response.
    #[must_use]
    pub fn with_latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn with_fault(mut self, fault: ProviderFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Sets the billed usage, which is estimated otherwise.
    #[must_use]
    pub fn with_usage(mut self, usage: ReplyUsage) -> Self {
        self.reply.usage = Some(usage);
        self
    }

    /// Sets the usage that the response reports, if it differs from the billed usage.
    #[must_use]
    pub fn reporting(mut self, reported: UsageReport) -> Self {
        self.reply.reported = reported;
        self
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn with_stop(mut self, stop: ReplyStop) -> Self {
        self.reply.stop = stop;
        self
    }

    /// Sets the model named in the response, if it differs from the requested model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.reply.model = Some(model.into());
        self
    }
}

impl Default for ProviderBehaviour {
    fn default() -> Self {
        Self::text("Hello from the fake provider.")
    }
}

impl From<ProviderFault> for ProviderBehaviour {
    fn from(fault: ProviderFault) -> Self {
        Self::default().with_fault(fault)
    }
}

/// A fault in delivering a reply to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderFault {
    /// 429: too many requests.
    RateLimited {
        /// The retry header, if the response has one.
        retry_after: Option<RetryAfter>,
    },
    /// 500.
    ServerError,
    /// 529 for Anthropic, 503 for the others.
    Overloaded,
    /// 401: invalid API key.
    Unauthorized,
    /// 400: the prompt is larger than the context window.
    ContextOverflow {
        /// The window named in the message, in tokens.
        window: u64,
    },
    /// The connection is reset before the first byte of a response.
    ConnectionReset,
    /// The connection is reset after the first delta, or half a unary body.
    ResetMidBody,
    /// The connection is closed before the announced end of the body.
    HalfBody,
    /// The body ends correctly at the HTTP level, but before the reply does: a stream without its
    /// final events.
    EarlyEnd,
    /// 200 with invalid JSON.
    InvalidJson,
    /// 200 with an HTML page, as sent by some proxies.
    HtmlBody,
    /// An error event after the first delta. A unary call gets a 500.
    MidStreamError,
    /// The body is sent in small pieces.
    SlowDrip {
        /// Bytes per piece, at least one.
        chunk: usize,
        /// Pause before each piece.
        every: Duration,
    },
    /// No response until the client disconnects.
    Hang,
    /// Exactly this response, such as one from a vendor's documentation.
    Verbatim(VerbatimResponse),
}

/// A complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerbatimResponse {
    pub status: u16,
    pub content_type: &'static str,
    pub retry_after: Option<RetryAfter>,
    pub body: Vec<u8>,
}

/// When a rate-limited client may retry, in each of the formats that providers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// `retry-after: 7`.
    Seconds(u64),
    /// `retry-after-ms: 250`.
    Milliseconds(u64),
    /// `retry-after: Sun, 06 Nov 1994 08:49:37 GMT`. Loses fractions of a second.
    Date(SystemTime),
}

impl RetryAfter {
    /// The header line without its line ending.
    pub(crate) fn header(self) -> String {
        match self {
            Self::Seconds(seconds) => format!("retry-after: {seconds}"),
            Self::Milliseconds(milliseconds) => format!("retry-after-ms: {milliseconds}"),
            Self::Date(date) => format!("retry-after: {}", httpdate::fmt_http_date(date)),
        }
    }
}
