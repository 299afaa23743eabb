//! Classifies errors of providers.

use std::borrow::Cow;

use moothall_core::model::{FailureKind, ModelFailure};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Longer delays are treated as an error or an attack.
const MAX_RETRY_AFTER_MS: u64 = 24 * 60 * 60 * 1000;

/// Phrases providers use if the prompt does not fit.
const OVERFLOW_PHRASES: [&str; 9] = [
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

/// The failure for an HTTP status and its body.
pub(crate) fn of_status(status: u16, retry_after_ms: Option<u64>, body: &[u8]) -> ModelFailure {
    let text = String::from_utf8_lossy(body);
    ModelFailure::new(kind_of(status, &text), message(&text))
        .with_status(status)
        .with_retry_after_ms(retry_after_ms)
}

/// Used for HTTP statuses and for error codes in bodies.
fn kind_of(status: u16, search_text: &str) -> FailureKind {
    match status {
        401..=403 => FailureKind::Auth,
        404 => FailureKind::BadRequest,
        408 => FailureKind::TimedOut,
        400 | 413 | 422 if mentions_overflow(search_text) => FailureKind::ContextOverflow,
        // Azure checks the prompt before a model sees it.
        400 if search_text.contains("content_filter") => FailureKind::Refused,
        // Some providers report an invalid key as 400 and an empty account as 429.
        400 | 429 if mentions_account(search_text) => FailureKind::Auth,
        429 => FailureKind::RateLimited,
        503 | 529 => FailureKind::Overloaded,
        // 409 and 425 mean: retry later.
        409 | 425 | 500..=599 => FailureKind::Server,
        _ => FailureKind::BadRequest,
    }
}

/// The failure for an error object in a successful response.
pub(crate) fn of_error_object(error: &ErrorObject) -> ModelFailure {
    let search_text = &error.search_text;
    let kind = match error.code {
        Some(status @ 400..=599) => kind_of(status, search_text),
        _ if search_text.contains("overloaded") || search_text.contains("unavailable") => {
            FailureKind::Overloaded
        }
        _ if mentions_account(search_text)
            || search_text.contains("authentication")
            || search_text.contains("permission") =>
        {
            FailureKind::Auth
        }
        _ if search_text.contains("rate_limit") || search_text.contains("rate limit") => {
            FailureKind::RateLimited
        }
        _ if mentions_overflow(search_text) => FailureKind::ContextOverflow,
        _ if search_text.contains("invalid_request") => FailureKind::BadRequest,
        _ => FailureKind::Server,
    };
    ModelFailure::new(
        kind,
        error.message.as_deref().unwrap_or("the provider reported an error without a message"),
    )
}

/// Whether a provider's error is about the API key or its account.
fn mentions_account(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    [
        "insufficient_quota",
        "api key not valid",
        "api_key_invalid",
        "invalid_api_key",
        "credit balance",
    ]
    .iter()
    .any(|phrase| text.contains(phrase))
}

/// The error of a message. All API formats use the same shapes: a string, or an object with a
/// message, a type and possibly a code, which is a number or a string depending on the provider.
#[derive(Debug, Deserialize)]
#[serde(from = "Box<RawValue>")]
pub(crate) struct ErrorObject {
    message: Option<String>,
    code: Option<u16>,
    /// Type, code and message in lower case.
    search_text: String,
}

/// Larger errors are not parsed, because parsing them would be expensive.
const MAX_ERROR_BYTES: usize = 64 * 1024;

impl From<Box<RawValue>> for ErrorObject {
    fn from(error: Box<RawValue>) -> Self {
        let readable = Some(error.get()).filter(|text| text.len() <= MAX_ERROR_BYTES);
        let value: Option<Value> = readable.and_then(|text| serde_json::from_str(text).ok());
        Self::from(value.unwrap_or_default())
    }
}

impl From<Value> for ErrorObject {
    fn from(error: Value) -> Self {
        let text = |field: &str| error.get(field).and_then(Value::as_str);
        let message = error.as_str().or_else(|| text("message"));
        let search_text: Vec<&str> =
            [text("type"), text("code"), message].into_iter().flatten().collect();
        let code = error.get("code").and_then(Value::as_u64);
        Self {
            message: message.map(str::to_owned),
            code: code.and_then(|code| u16::try_from(code).ok()),
            search_text: search_text.join(" ").to_ascii_lowercase(),
        }
    }
}

fn mentions_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    OVERFLOW_PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// The message in an error body, or the body itself.
fn message(body: &str) -> Cow<'_, str> {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return Cow::Borrowed(body) };
    // Google wraps errors in a list.
    let outer = value.get(0).unwrap_or(&value);
    // AWS and Mistral send the message without an object around it.
    let error = outer.get("error").or_else(|| outer.get("message")).cloned();
    match error.map(ErrorObject::from).and_then(|error| error.message) {
        Some(text) => Cow::Owned(text),
        None => Cow::Borrowed(body),
    }
}

/// The delay requested by the provider: `retry-after-ms`, or `retry-after` in seconds or as a date.
/// `now_ms` is in Unix milliseconds, passed in to keep this function pure.
pub fn retry_after_ms<'a>(header: impl Fn(&str) -> Option<&'a str>, now_ms: u64) -> Option<u64> {
    let number = |name: &str| header(name)?.trim().parse::<f64>().ok();
    let milliseconds = |number: f64| (number.is_finite() && number >= 0.0).then_some(number as u64);
    let date = || {
        let at = httpdate::parse_http_date(header("retry-after")?.trim()).ok()?;
        let at = at.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(u64::try_from(at.as_millis()).ok()?.saturating_sub(now_ms))
    };
    // An invalid header does not hide a valid one.
    let asked = number("retry-after-ms")
        .and_then(milliseconds)
        .or_else(|| number("retry-after").and_then(|seconds| milliseconds(seconds * 1000.0)))
        .or_else(date);
    asked.map(|asked| asked.min(MAX_RETRY_AFTER_MS))
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
