use super::*;

#[track_caller]
fn check(status: u16, body: &str, expected: FailureKind, detail: &str) {
    let expected =
        ModelFailure::new(expected, detail).with_status(status).with_retry_after_ms(Some(7));
    assert_eq!(of_status(status, Some(7), body.as_bytes()), expected);
}

#[test]
fn every_http_status_maps_to_a_failure_kind() {
    let body = r#"{"error":{"message":"No.","type":"some_error"}}"#;
    for (status, expected) in [
        (301, FailureKind::BadRequest),
        (400, FailureKind::BadRequest),
        (401, FailureKind::Auth),
        (402, FailureKind::Auth),
        (403, FailureKind::Auth),
        (404, FailureKind::BadRequest),
        (405, FailureKind::BadRequest),
        (408, FailureKind::TimedOut),
        (409, FailureKind::Server),
        (413, FailureKind::BadRequest),
        (422, FailureKind::BadRequest),
        (425, FailureKind::Server),
        (429, FailureKind::RateLimited),
        (500, FailureKind::Server),
        (502, FailureKind::Server),
        (503, FailureKind::Overloaded),
        (504, FailureKind::Server),
        (529, FailureKind::Overloaded),
        (599, FailureKind::Server),
    ] {
        check(status, body, expected, "No.");
    }
}

#[test]
fn context_overflow_messages_of_every_provider_are_recognised() {
    for (status, message) in [
        (
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        ),
        (400, "Input tokens exceed the configured limit. context_length_exceeded"),
        (
            400,
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        (400, "prompt is too long: 208310 tokens > 200000 maximum"),
        (
            400,
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
        ),
        (
            400,
            "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
        ),
        (
            400,
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens.",
        ),
        (400, "the input length exceeds the context length"),
        (
            400,
            "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it",
        ),
        (413, "Prompt is too long"),
        (422, "exceed_context_size_error"),
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        check(status, &body, FailureKind::ContextOverflow, message);
    }
    // Groq reports it only in the code, not in the message.
    check(
        400,
        r#"{"error":{"message":"Please reduce the length of the messages.","code":"context_length_exceeded"}}"#,
        FailureKind::ContextOverflow,
        "Please reduce the length of the messages.",
    );
    // The same text has another meaning with a different status.
    check(
        429,
        r#"{"error":{"message":"maximum context length"}}"#,
        FailureKind::RateLimited,
        "maximum context length",
    );
}

#[test]
fn the_message_is_found_in_every_shape_of_error() {
    let kind = FailureKind::Server;
    check(
        500,
        r#"{"type":"error","error":{"type":"api_error","message":"Internal"}}"#,
        kind,
        "Internal",
    );
    check(
        500,
        r#"{"error":"model runner has unexpectedly stopped"}"#,
        kind,
        "model runner has unexpectedly stopped",
    );
    // Google wraps errors in a list.
    check(
        500,
        "[{\n  \"error\": {\n    \"code\": 500,\n    \"message\": \"An internal error has occurred.\",\n    \"status\": \"INTERNAL\"\n  }\n}\n]",
        kind,
        "An internal error has occurred.",
    );
    check(500, "<html>Bad Gateway</html>", kind, "<html>Bad Gateway</html>");
    check(500, r#"{"detail":"no"}"#, kind, r#"{"detail":"no"}"#);
    check(500, r#"{"error":{"code":7}}"#, kind, r#"{"error":{"code":7}}"#);
    check(500, "", kind, "");
    assert_eq!(of_status(500, None, b"\xff\xfeA").detail, "\u{fffd}\u{fffd}A");
}

#[test]
fn a_long_error_message_is_truncated_and_sanitized() {
    let failure = of_status(500, None, "a\u{1b}[31m\n".repeat(1000).as_bytes());
    assert_eq!(failure.detail.chars().count(), 300);
    assert!(!failure.detail.chars().any(char::is_control));
}

/// Monday, 9 November 2026, 12:00:00 GMT.
const NOW_MS: u64 = 1_794_225_600_000;

#[track_caller]
fn check_retry(headers: &[(&str, &str)], expected: Option<u64>) {
    let header =
        |name: &str| headers.iter().find(|(header, _)| *header == name).map(|(_, value)| *value);
    assert_eq!(retry_after_ms(header, NOW_MS), expected, "{headers:?}");
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

#[test]
fn a_retry_delay_is_read_from_either_header() {
    check_retry(&[], None);
    check_retry(&[("retry-after-ms", "1500")], Some(1500));
    check_retry(&[("retry-after-ms", " 12.9 ")], Some(12));
    check_retry(&[("retry-after", "7")], Some(7000));
    check_retry(&[("retry-after", "0")], Some(0));
    check_retry(&[("retry-after", "0.25")], Some(250));
    check_retry(&[("retry-after", " 20 ")], Some(20_000));
    check_retry(&[("retry-after-ms", "10"), ("retry-after", "7")], Some(10));
}

#[test]
fn a_retry_delay_may_be_a_date() {
    check_retry(&[("retry-after", "Mon, 09 Nov 2026 12:00:30 GMT")], Some(30_000));
    check_retry(&[("retry-after", "Mon, 09 Nov 2026 11:59:59 GMT")], Some(0));
    check_retry(&[("retry-after", "Tue, 09 Nov 2027 12:00:00 GMT")], Some(DAY_MS));
}

#[test]
fn an_invalid_retry_delay_is_ignored() {
    for value in [
        "",
        "soon",
        "-1",
        "-0.5",
        "NaN",
        "inf",
        "-inf",
        "infinity",
        "1e999",
        "1,5",
        "0x10",
        "Mon, 09 Nov 2026",
        "Thu, 01 Jan 1960 00:00:00 GMT",
    ] {
        check_retry(&[("retry-after", value)], None);
        check_retry(&[("retry-after-ms", value)], None);
        // An invalid header does not hide a valid one.
        check_retry(&[("retry-after-ms", value), ("retry-after", "7")], Some(7000));
    }
}

#[test]
fn a_retry_delay_is_capped_at_one_day() {
    for value in ["86401", "1e300", "99999999999999999999999999"] {
        check_retry(&[("retry-after", value)], Some(DAY_MS));
    }
    check_retry(&[("retry-after-ms", "1e300")], Some(DAY_MS));
}

#[test]
fn a_bad_key_or_used_up_quota_is_never_retryable() {
    let kind = |status: u16, body: &str| of_status(status, None, body.as_bytes()).kind;
    let empty = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    assert_eq!(kind(429, empty), FailureKind::Auth);
    let google = r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#;
    assert_eq!(kind(400, google), FailureKind::Auth);
    assert_eq!(kind(429, r#"{"error":{"message":"slow down"}}"#), FailureKind::RateLimited);
}

#[test]
fn a_code_inside_a_body_is_read_like_a_status() {
    let kind = |json: &str| of_error_object(&serde_json::from_str(json).unwrap()).kind;
    assert_eq!(kind(r#"{"code":401,"message":"No auth"}"#), FailureKind::Auth);
    assert_eq!(kind(r#"{"code":402,"message":"Pay"}"#), FailureKind::Auth);
    assert_eq!(kind(r#"{"code":400,"message":"Bad"}"#), FailureKind::BadRequest);
    assert_eq!(kind(r#"{"code":502,"message":"Down"}"#), FailureKind::Server);
    assert_eq!(
        kind(r#"{"type":"invalid_request_error","message":"Bad"}"#),
        FailureKind::BadRequest
    );
    assert_eq!(kind(r#"{"message":"Who knows"}"#), FailureKind::Server);
}

#[test]
fn an_oversized_error_object_is_not_parsed() {
    let long = format!(r#"{{"message":"{}"}}"#, "x".repeat(MAX_ERROR_BYTES));
    let failure = of_error_object(&serde_json::from_str(&long).unwrap());
    assert_eq!(failure.detail, "the provider reported an error without a message");
}
