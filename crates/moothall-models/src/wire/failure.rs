//! What a provider's complaint means.

use std::borrow::Cow;

use moothall_core::model::{FailureKind, ModelFailure};
use serde::Deserialize;

/// The longest pause that a header can ask for; beyond it the number is a mistake or a trap.
const MAX_RETRY_AFTER_MS: u64 = 24 * 60 * 60 * 1000;

/// Words with which providers say that the prompt does not fit.
const OVERFLOW: [&str; 7] = [
    "exceed_context_size",
    "context_length_exceeded",
    "prompt is too long",
    "maximum context length",
    "context window",
    "exceeds the available context",
    "input length exceeds",
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
pub(super) fn of_error_object(error: &ErrorObject<'_>) -> ModelFailure {
    let words = format!(
        "{} {}",
        error.kind.as_deref().unwrap_or(""),
        error.message.as_deref().unwrap_or("")
    )
    .to_ascii_lowercase();
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
    } else if says_overflow(&words) {
        FailureKind::ContextOverflow
    } else {
        FailureKind::Server
    };
    ModelFailure::new(
        kind,
        error.message.as_deref().unwrap_or("the provider reported an error without a message"),
    )
}

/// The error part of a message, in the three shapes that exist: a string, or an object with a message, a type and perhaps a code.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ErrorObject<'a> {
    #[serde(borrow, default)]
    pub(super) message: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "number_or_nothing")]
    pub(super) code: Option<u16>,
}

/// Codes are numbers for some providers and words for others; the words say nothing that `type` does not.
fn number_or_nothing<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u16>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_u64().and_then(|code| u16::try_from(code).ok()))
}

fn says_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    OVERFLOW.iter().any(|words| text.contains(words))
}

/// The message inside an error body, or the body itself.
fn message(body: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Body {
        error: serde_json::Value,
    }
    let Ok(Body { error }) = serde_json::from_str(body) else { return Cow::Borrowed(body) };
    match error.get("message").unwrap_or(&error).as_str() {
        Some(text) => Cow::Owned(text.to_owned()),
        None => Cow::Borrowed(body),
    }
}

/// How long the provider asks us to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. `now_ms` is the time in
/// milliseconds since 1970, given so that this stays a function.
pub fn retry_after_ms<'a>(header: impl Fn(&str) -> Option<&'a str>, now_ms: u64) -> Option<u64> {
    let milliseconds = |number: f64| (number.is_finite() && number >= 0.0).then_some(number as u64);
    let asked = if let Some(value) = header("retry-after-ms") {
        milliseconds(value.trim().parse().ok()?)
    } else {
        let value = header("retry-after")?.trim();
        match value.parse::<f64>() {
            Ok(seconds) => milliseconds(seconds * 1000.0),
            Err(_) => {
                let at = httpdate::parse_http_date(value)
                    .ok()?
                    .duration_since(std::time::UNIX_EPOCH)
                    .ok()?;
                Some(u64::try_from(at.as_millis()).ok()?.saturating_sub(now_ms))
            }
        }
    };
    asked.map(|asked| asked.min(MAX_RETRY_AFTER_MS))
}
