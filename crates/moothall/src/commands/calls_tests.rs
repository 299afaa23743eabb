use moothall_core::model::CallPurpose;

use super::*;

fn call(path: &str, reasons: &[&str]) -> ModelCall {
    ModelCall {
        seq: 1,
        call: path.parse().unwrap(),
        purpose: CallPurpose::Critic,
        role: "critic".to_owned(),
        member: Some("critic".to_owned()),
        stage: "debate".to_owned(),
        move_id: Some("m7".to_owned()),
        round: Some(3),
        model: "openai/gpt-4.1-mini".parse().unwrap(),
        started_at_ms: 65_000,
        length_ms: 1_250,
        queued_ms: Some(30),
        prompt_tokens: 12_345,
        cached_tokens: 11_000,
        output_tokens: 345,
        cost_micro_usd: None,
        attempts: 2,
        retry: false,
        result: if reasons.is_empty() { CallResult::Used } else { CallResult::Rejected },
        reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
    }
}

#[test]
fn the_table_fits_every_terminal_of_at_least_40_columns() {
    let long = "the answer does not match its schema: `stance` is missing; ".repeat(4);
    let calls = [call("m7/round-3/critic/D2/ask-2", &[]), call("m12/round-10/critic/D3", &[&long])];
    let calls: Vec<&ModelCall> = calls.iter().collect();
    for width in 40..200 {
        let text = table(&calls, 0, Some(width));
        for line in anstream::adapter::strip_str(&text).to_string().lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
            assert!(line.contains("m7/") || line.contains("m12/") || line.contains("CALL"));
        }
        assert!(text.contains("used") && text.contains("rejec"), "{width}: {text}");
    }
}

#[test]
fn a_wide_table_has_every_column() {
    let calls = [call("m7/round-3/critic/D2", &["`stance` is missing"])];
    let text = table(&calls.iter().collect::<Vec<_>>(), 60_000, None);
    let text = anstream::adapter::strip_str(&text).to_string();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    let expected = [
        "START QUEUED LENGTH CALL ROLE MODEL IN CACHED OUT COST ATTEMPTS RESULT",
        "5.0s 30ms 1.2s m7/round-3/critic/D2 critic openai/gpt-4.1-mini 12,345 11,000 345 unknown 2 \
         rejected: `stance` is missing",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn durations_and_counts_are_short() {
    let durations = [0, 999, 1_000, 59_999, 60_000, 605_000].map(duration);
    assert_eq!(durations, ["0ms", "999ms", "1.0s", "59.9s", "1m00s", "10m05s"]);
    let counts = [0, 999, 1_000, 1_234_567].map(grouped);
    assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
}
