//! Replies that are complete but wrong.

use moothall_testkit::{ProviderBehaviour, ProviderProtocol, ReplyStop, ReplyUsage, UsageReport};
use serde_json::{Value, json};

use crate::client::{Answer, Mode, ask_once, every_way};

/// The stop reason, as spelled by the protocol.
fn stop(answer: &Answer, wire: ProviderProtocol, mode: Mode) -> String {
    let events = if mode == Mode::Unary { vec![answer.json()] } else { answer.events() };
    let pointers: &[&str] = match wire {
        ProviderProtocol::OpenAi => &["/choices/0/finish_reason"],
        ProviderProtocol::Anthropic => &["/stop_reason", "/delta/stop_reason"],
        ProviderProtocol::Ollama => &["/done_reason"],
    };
    let found = |event: &Value| {
        pointers.iter().find_map(|pointer| Some(event.pointer(pointer)?.as_str()?.to_owned()))
    };
    events.iter().rev().find_map(found).unwrap()
}

/// Prompt and output tokens, summed as a client would.
fn usage(answer: &Answer, wire: ProviderProtocol, mode: Mode) -> Option<(u64, u64)> {
    let events = if mode == Mode::Unary { vec![answer.json()] } else { answer.events() };
    let number =
        |pointer: &str| events.iter().rev().find_map(|event| event.pointer(pointer)?.as_u64());
    match wire {
        ProviderProtocol::OpenAi => {
            Some((number("/usage/prompt_tokens")?, number("/usage/completion_tokens")?))
        }
        ProviderProtocol::Anthropic => {
            let prefix = if mode == Mode::Unary { "" } else { "/message" };
            let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
            let input: Option<u64> =
                input.iter().map(|name| number(&format!("{prefix}/usage/{name}"))).sum();
            Some((input?, number("/usage/output_tokens")?))
        }
        ProviderProtocol::Ollama => Some((number("/prompt_eval_count")?, number("/eval_count")?)),
    }
}

#[tokio::test]
async fn every_reason_to_stop_has_its_name_on_every_wire() {
    for (reason, expected) in [
        (ReplyStop::End, ["stop", "end_turn", "stop"]),
        (ReplyStop::MaxTokens, ["length", "max_tokens", "length"]),
        (ReplyStop::Refusal, ["stop", "refusal", "stop"]),
        (ReplyStop::ContentFilter, ["content_filter", "refusal", "stop"]),
    ] {
        for (wire, mode) in every_way() {
            let (answer, stats) =
                ask_once(ProviderBehaviour::text("I cannot").with_stop(reason), wire, mode).await;
            let expected =
                expected[ProviderProtocol::ALL.iter().position(|other| *other == wire).unwrap()];
            assert_eq!(stop(&answer, wire, mode), expected, "{reason:?} {wire:?} {mode:?}");
            assert_eq!(answer.text(wire, mode), "I cannot");
            assert_eq!(stats.bills.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_refusal_is_marked_in_wire_formats_that_support_it() {
    let refusal = ProviderBehaviour::refusal("I cannot");
    let (answer, _) = ask_once(refusal.clone(), ProviderProtocol::OpenAi, Mode::Unary).await;
    let message = json!({"role": "assistant", "content": null, "refusal": "I cannot"});
    assert_eq!(answer.json()["choices"][0]["message"], message);

    let details = json!({
        "type": "refusal",
        "category": null,
        "explanation": "This request was declined by the fake provider.",
    });
    let (answer, _) = ask_once(refusal.clone(), ProviderProtocol::Anthropic, Mode::Unary).await;
    assert_eq!(answer.json()["stop_details"], details);
    let (answer, _) = ask_once(refusal, ProviderProtocol::Anthropic, Mode::Streamed).await;
    let delta = answer.events().into_iter().find(|event| event["type"] == "message_delta").unwrap();
    assert_eq!(delta["delta"]["stop_details"], details);
}

#[tokio::test]
async fn an_empty_text_is_a_normal_end_without_content() {
    for (wire, mode) in every_way() {
        let (answer, stats) = ask_once(ProviderBehaviour::empty_text(), wire, mode).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.text(wire, mode), "", "{wire:?} {mode:?}");
        assert!(["stop", "end_turn"].contains(&stop(&answer, wire, mode).as_str()));
        assert_eq!((usage(&answer, wire, mode).unwrap().1, stats.bills.len()), (0, 1));
    }
    let (answer, _) =
        ask_once(ProviderBehaviour::empty_text(), ProviderProtocol::Anthropic, Mode::Unary).await;
    assert_eq!(answer.json()["content"], json!([]));
}

#[tokio::test]
async fn a_wrong_schema_is_valid_json_with_unexpected_fields() {
    for (wire, mode) in every_way() {
        let (answer, _) = ask_once(ProviderBehaviour::wrong_schema(), wire, mode).await;
        let value: Value = serde_json::from_str(&answer.text(wire, mode)).unwrap();
        assert_eq!(value, json!({"unexpected": true}), "{wire:?} {mode:?}");
    }
}

#[tokio::test]
async fn a_silent_truncation_reports_and_bills_exactly_the_window() {
    for (wire, mode) in every_way() {
        let (answer, stats) =
            ask_once(ProviderBehaviour::silent_truncation(4096), wire, mode).await;
        let (prompt, output) = usage(&answer, wire, mode).unwrap();
        assert_eq!((prompt + output, stats.billed.total()), (4096, 4096), "{wire:?} {mode:?}");
        assert!(output > 0);
    }
}

#[tokio::test]
async fn wrong_usage_is_reported_as_configured_and_billed_correctly() {
    for (reported, expected) in [
        (UsageReport::Nothing, None),
        (UsageReport::Instead(ReplyUsage::ZERO), Some((0, 0))),
        (UsageReport::Instead(ReplyUsage::HUGE), Some((1_000_000_000_000, 1_000_000_000_000))),
    ] {
        for (wire, mode) in every_way() {
            let (answer, stats) =
                ask_once(ProviderBehaviour::wrong_usage(reported), wire, mode).await;
            assert_eq!(usage(&answer, wire, mode), expected, "{reported:?} {wire:?} {mode:?}");
            assert_eq!(
                stats.bills[0].reported.map(|usage| (usage.prompt(), usage.output)),
                expected
            );
            // The question has 32 bytes, with the Anthropic protocol 9 more for the system prompt;
            // the text has 39.
            let input = if wire == ProviderProtocol::Anthropic { 11 } else { 8 };
            assert_eq!(stats.billed, ReplyUsage { input, output: 10, ..ReplyUsage::ZERO });
        }
    }
}

#[tokio::test]
async fn cached_tokens_are_part_of_the_prompt_on_every_wire() {
    let spent = ReplyUsage { input: 1, cache_read: 20, cache_write: 300, output: 4000 };
    for (wire, mode) in every_way() {
        let (answer, stats) =
            ask_once(ProviderBehaviour::text("hello").with_usage(spent), wire, mode).await;
        assert_eq!(usage(&answer, wire, mode), Some((321, 4000)), "{wire:?} {mode:?}");
        assert_eq!(stats.billed, spent);
    }
}
