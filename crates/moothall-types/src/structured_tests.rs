use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::{PromptRole, TokenUsage, UsageBasis};

fn reply(text: &str, stop: StopReason) -> ModelReply {
    ModelReply {
        fallback: None,
        text: text.to_owned(),
        stop,
        model: "test".to_owned(),
        usage: TokenUsage::default(),
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    }
}

fn score_is_small(value: &Value) -> Vec<String> {
    match value["score"].as_u64() {
        Some(0..=10) => Vec::new(),
        _ => vec!["score is not between 0 and 10".to_owned()],
    }
}

#[track_caller]
fn check(text: &str, expected: Result<Value, OutputFault>) {
    assert_eq!(read_json(&reply(text, StopReason::End), &score_is_small), expected);
}

#[test]
fn bare_json_and_one_fenced_block_are_read() {
    check(r#" {"score": 3} "#, Ok(json!({"score": 3})));
    check("Sure:\n```json\n{\"score\": 3}\n```\n", Ok(json!({"score": 3})));
}

#[test]
fn prose_is_never_searched_for_json() {
    let text = r#"The score is {"score": 3}."#;
    assert!(matches!(
        read_json(&reply(text, StopReason::End), &score_is_small),
        Err(OutputFault::NotJson { .. })
    ));
}

#[test]
fn two_fenced_blocks_are_ambiguous() {
    let text = "```\n{\"score\": 3}\n```\n```\n{\"score\": 4}\n```\n";
    assert!(matches!(
        read_json(&reply(text, StopReason::End), &score_is_small),
        Err(OutputFault::NotJson { .. })
    ));
}

#[test]
fn a_range_that_decoders_ignore_is_validated() {
    check(
        r#"{"score": 11}"#,
        Err(OutputFault::Invalid { problems: vec!["score is not between 0 and 10".to_owned()] }),
    );
}

#[test]
fn a_cut_off_answer_is_refused_even_if_it_parses() {
    assert_eq!(
        read_json(&reply(r#"{"score": 1}"#, StopReason::MaxTokens), &score_is_small),
        Err(OutputFault::CutOff)
    );
}

#[test]
fn a_repeated_request_appends_turns_without_changing_the_prefix() {
    let request = ModelRequest::ask("openai/gpt-5-mini".parse().unwrap(), "Score it.", 50);
    let again = ask_again(
        &request,
        r#"{"score": 11}"#,
        &OutputFault::Invalid { problems: vec!["too large".to_owned()] },
    );
    assert_eq!(again.turns[..1], request.turns[..]);
    assert_eq!(again.turns[1].role, PromptRole::Assistant);
    assert!(again.turns[2].block.text.contains("- too large\n"));
    assert_eq!(again.turns.len(), 3);
}

#[test]
fn an_empty_answer_is_not_sent_back_as_an_empty_turn() {
    let request = ModelRequest::ask("openai/gpt-5-mini".parse().unwrap(), "Score it.", 50);
    let again =
        ask_again(&request, "  ", &OutputFault::NotJson { error: "nothing there".to_owned() });
    assert_eq!(
        again.turns.iter().map(|turn| turn.role).collect::<Vec<_>>(),
        [PromptRole::User, PromptRole::User]
    );
}

proptest! {
    #[test]
    fn any_reply_is_read_without_a_panic(text in any::<String>()) {
        let _ = read_json(&reply(&text, StopReason::End), &score_is_small);
    }
}
