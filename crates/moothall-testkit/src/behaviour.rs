//! How one call is treated: a reply, what goes wrong with it, and how long it takes.

use std::time::{Duration, SystemTime};

use crate::reply::{Reply, Reported, Stop, Usage};

/// How the server treats one call. The crate documentation has the table of what goes over the
/// wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behaviour {
    /// Time between the last byte of the request and the first of the answer, whatever that answer
    /// is.
    pub latency: Duration,
    /// What goes wrong in getting the reply to the client, if anything.
    pub fault: Option<Fault>,
    /// What the model says. Faults that prevent an answer leave it unsaid.
    pub reply: Reply,
}

impl Behaviour {
    /// A healthy answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self::reply(Reply::text(text))
    }

    /// An answer as described.
    pub fn reply(reply: Reply) -> Self {
        Self { latency: Duration::ZERO, fault: None, reply }
    }

    /// An answer without a word.
    pub fn empty_text() -> Self {
        Self::text("")
    }

    /// The model declines, in each wire's way of saying so.
    pub fn refusal(text: impl Into<String>) -> Self {
        Self::text(text).with_stop(Stop::Refusal)
    }

    /// Valid JSON that no schema of ours asks for.
    pub fn wrong_schema() -> Self {
        Self::text(r#"{"unexpected":true}"#)
    }

    /// A healthy looking answer to the little of the prompt that fitted into `window` tokens: its
    /// usage adds up to the window.
    pub fn silent_truncation(window: u64) -> Self {
        Self::reply(Reply {
            truncated_to: Some(window),
            ..Reply::text("I answered the part of the question that I saw.")
        })
    }

    /// A healthy answer whose usage is missing or absurd.
    pub fn wrong_usage(reported: Reported) -> Self {
        Self::text("The numbers beside this text are wrong.").reporting(reported)
    }

    /// Waits this long before answering.
    #[must_use]
    pub fn with_latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Lets something go wrong with this reply.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Sets what is billed, instead of an estimate.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.reply.usage = Some(usage);
        self
    }

    /// Sets what the answer says about its usage, instead of the truth.
    #[must_use]
    pub fn reporting(mut self, reported: Reported) -> Self {
        self.reply.reported = reported;
        self
    }

    /// Sets why the model stopped.
    #[must_use]
    pub fn with_stop(mut self, stop: Stop) -> Self {
        self.reply.stop = stop;
        self
    }

    /// Answers in the name of another model than the one asked for.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.reply.model = Some(model.into());
        self
    }
}

impl Default for Behaviour {
    fn default() -> Self {
        Self::text("Hello from the fake provider.")
    }
}

impl From<Fault> for Behaviour {
    fn from(fault: Fault) -> Self {
        Self::default().with_fault(fault)
    }
}

/// What goes wrong in getting a reply to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// 429: the client asks too often.
    RateLimited {
        /// The header that says when to come back, if there is one.
        retry_after: Option<RetryAfter>,
    },
    /// 500.
    ServerError,
    /// 529 on the Anthropic wire, 503 on the others.
    Overloaded,
    /// 401: the key is wrong.
    Unauthorized,
    /// 400: the prompt is larger than the context window.
    ContextOverflow {
        /// The window named in the message, in tokens.
        window: u64,
    },
    /// The connection is reset before any byte of an answer.
    ConnectionReset,
    /// The connection is reset after the first delta, or half a unary body.
    ResetMidBody,
    /// The connection is closed before the promised end of the body.
    HalfBody,
    /// The body ends as HTTP asks, but before the reply does: a stream without its final events.
    EarlyEnd,
    /// 200 with broken JSON.
    InvalidJson,
    /// 200 with a web page, as proxies like to send.
    HtmlBody,
    /// An error event after the first delta. A unary call gets a 500.
    MidStreamError,
    /// The body comes in small pieces.
    SlowDrip {
        /// Bytes a piece, at least one.
        chunk: usize,
        /// Pause before each piece.
        every: Duration,
    },
    /// No answer, until the client gives up.
    Hang,
}

/// When a rate limited client may come back, in each of the forms that providers use.
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
    /// The header line, without its end.
    pub(crate) fn header(self) -> String {
        match self {
            Self::Seconds(seconds) => format!("retry-after: {seconds}"),
            Self::Milliseconds(milliseconds) => format!("retry-after-ms: {milliseconds}"),
            Self::Date(date) => format!("retry-after: {}", httpdate::fmt_http_date(date)),
        }
    }
}
