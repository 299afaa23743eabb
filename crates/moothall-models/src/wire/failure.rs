//! What a provider's complaint means.

use std::borrow::Cow;

use moothall_core::model::{FailureKind, ModelFailure};
use serde::Deserialize;
use serde_json::Value;

/// The longest pause that a header can ask for; beyond it the number is a mistake or a trap.
const MAX_RETRY_AFTER_MS: u64 = 24 * 60 * 60 * 1000;

/// Words with which providers say that the prompt does not fit.
const OVERFLOW: [&str; 9] = [
    "exceed_context_size",
    "context_length_exceeded",
    "prompt is too long",
    "maximum context length",
    "context window",
    "exceeds the available context",
    "input length exceeds",
    "exceed context limit",
    "input token count",
];

/// The failure that an HTTP status and its body stand for.
pub(super) fn of_status(status: u16, retry_after_ms: Option<u64>, body: &[u8]) -> ModelFailure {
    let text = String::from_utf8_lossy(body);
    let kind = match status {
        401 | 403 => FailureKind::Auth,
        404 => FailureKind::BadRequest,
        408 => FailureKind::TimedOut,
        400 | 413 | 422 if says_overflow(&text) => FailureKind::ContextOverflow,
        429 => FailureKind::RateLimited,
        503 | 529 => FailureKind::Overloaded,
        // 409 and 425 ask to come again later.
        409 | 425 | 500..=599 => FailureKind::Server,
        _ => FailureKind::BadRequest,
    };
    ModelFailure::new(kind, message(&text)).with_status(status).with_retry_after_ms(retry_after_ms)
}

/// The failure that an error object in the middle of a good answer stands for.
pub(super) fn of_error_object(error: &ErrorObject) -> ModelFailure {
    let words = &error.words;
    let kind = if words.contains("overloaded")
        || words.contains("unavailable")
        || matches!(error.code, Some(503 | 529))
    {
        FailureKind::Overloaded
    } else if words.contains("rate_limit")
        || words.contains("rate limit")
        || error.code == Some(429)
    {
        FailureKind::RateLimited
    } else if says_overflow(words) {
        FailureKind::ContextOverflow
    } else {
        FailureKind::Server
    };
    ModelFailure::new(
        kind,
        error.message.as_deref().unwrap_or("the provider reported an error without a message"),
    )
}

/// The error part of a message, in the three shapes that exist on every wire: a string, or an
/// object with a message, a type and perhaps a code, which is a number for some providers and a
/// word for others.
#[derive(Debug, Deserialize)]
#[serde(from = "Value")]
pub(super) struct ErrorObject {
    message: Option<String>,
    code: Option<u64>,
    /// All that it says, in lower case.
    words: String,
}

impl From<Value> for ErrorObject {
    fn from(error: Value) -> Self {
        let text = |field: &str| error.get(field).and_then(Value::as_str);
        let message = error.as_str().or_else(|| text("message"));
        let words: Vec<&str> =
            [text("type"), text("code"), message].into_iter().flatten().collect();
        Self {
            message: message.map(str::to_owned),
            code: error.get("code").and_then(Value::as_u64),
            words: words.join(" ").to_ascii_lowercase(),
        }
    }
}

fn says_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    OVERFLOW.iter().any(|words| text.contains(words))
}

/// The message inside an error body, or the body itself.
fn message(body: &str) -> Cow<'_, str> {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return Cow::Borrowed(body) };
    // Google wraps its errors in a list.
    let error = value.get(0).unwrap_or(&value).get("error").cloned();
    match error.map(ErrorObject::from).and_then(|error| error.message) {
        Some(text) => Cow::Owned(text),
        None => Cow::Borrowed(body),
    }
}

/// How long the provider asks us to wait: `retry-after-ms`, or `retry-after` in seconds or as a
/// date. `now_ms` is the time in milliseconds since 1970, given so that this stays a function.
pub fn retry_after_ms<'a>(header: impl Fn(&str) -> Option<&'a str>, now_ms: u64) -> Option<u64> {
    let number = |name: &str| header(name)?.trim().parse::<f64>().ok();
    let milliseconds = |number: f64| (number.is_finite() && number >= 0.0).then_some(number as u64);
    let date = || {
        let at = httpdate::parse_http_date(header("retry-after")?.trim()).ok()?;
        let at = at.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(u64::try_from(at.as_millis()).ok()?.saturating_sub(now_ms))
    };
    // A header that makes no sense does not hide one that does.
    let asked = number("retry-after-ms")
        .and_then(milliseconds)
        .or_else(|| number("retry-after").and_then(|seconds| milliseconds(seconds * 1000.0)))
        .or_else(date);
    asked.map(|asked| asked.min(MAX_RETRY_AFTER_MS))
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
