use moothall_core::MicroUsd;
use moothall_core::model::{ModelName, OutputSchema};

use super::*;
use crate::catalog::{Catalog, ModelPrices, TokenPrice};

fn price(input: u64, output: u64) -> TokenPrice {
    TokenPrice {
        input: MicroUsd::new(input),
        output: MicroUsd::new(output),
        ..TokenPrice::default()
    }
}

/// One dollar per million prompt tokens and ten per million output tokens: 1 and 10 millionths
/// each.
fn card() -> ModelCard {
    let model: ModelName = "lab/m".parse().unwrap();
    let prices = ModelPrices { base: price(1_000_000, 10_000_000), above: None };
    ModelCard { prices: Some(prices), ..Catalog::built_in().unwrap().card(&model) }
}

fn request(question: &str) -> ModelRequest {
    ModelRequest::ask("lab/m".parse().unwrap(), question, 100)
}

/// About 1,000 tokens: 4,000 letters and the framing.
fn long_request() -> ModelRequest {
    request(&"word ".repeat(960))
}

fn said(text: &str, stop: RawStopReason, usage: Option<TokenUsage>) -> RawReply {
    RawReply { text: text.to_owned(), stop, usage, model: Some("m-2026".to_owned()) }
}

fn used(input: u64, output: u64) -> Option<TokenUsage> {
    Some(TokenUsage { input, output, ..TokenUsage::default() })
}

fn amount(micros: u64, tokens: u64) -> CallCost {
    CallCost { usd: Some(MicroUsd::new(micros)), tokens }
}

#[track_caller]
fn check(request: &ModelRequest, answer: RawReply, window: Option<u64>, expected: CheckedReply) {
    assert_eq!(judge(request, &card(), BackendReply { answer, window }), expected);
}

#[track_caller]
fn check_usable(
    answer: RawReply,
    usage: TokenUsage,
    basis: UsageBasis,
    stop: StopReason,
    micros: u64,
) {
    let expected = CheckedReply {
        amount: amount(micros, usage.total()),
        basis,
        result: Ok(ModelReply {
            fallback: None,
            text: answer.text.clone(),
            stop,
            model: "m-2026".to_owned(),
            usage,
            usage_basis: basis,
            cost_micro_usd: Some(MicroUsd::new(micros)),
        }),
    };
    check(&request("Why?"), answer, None, expected);
}

#[track_caller]
fn check_unusable(
    request: &ModelRequest,
    answer: RawReply,
    window: Option<u64>,
    amount: CallCost,
    kind: FailureKind,
    detail: &str,
) {
    let judged = judge(request, &card(), BackendReply { answer, window });
    assert_eq!((judged.amount, judged.result), (amount, Err(ModelFailure::new(kind, detail))));
}

#[test]
fn a_complete_answer_becomes_a_reply_with_its_cost() {
    let usage = used(12, 3);
    check_usable(
        said("Because.", RawStopReason::End, usage),
        usage.unwrap(),
        UsageBasis::Reported,
        StopReason::End,
        42,
    );
    check_usable(
        said("Bec", RawStopReason::MaxTokens, usage),
        usage.unwrap(),
        UsageBasis::Reported,
        StopReason::MaxTokens,
        42,
    );
    check_usable(
        said("Because.", RawStopReason::Other, usage),
        usage.unwrap(),
        UsageBasis::Reported,
        StopReason::Other,
        42,
    );
}

#[test]
fn an_answer_without_a_model_name_gets_the_requested_one() {
    let answer = RawReply { model: None, ..said("a", RawStopReason::End, used(12, 1)) };
    let judged = judge(&request("Why?"), &card(), BackendReply { answer, window: None });
    assert_eq!(judged.result.unwrap().model, "m");
}

#[test]
fn a_refusal_fails_but_its_usage_is_billed() {
    let kind = FailureKind::Refused;
    check_unusable(
        &request("Why?"),
        said("I would rather not.", RawStopReason::Refusal, used(12, 3)),
        None,
        amount(42, 15),
        kind,
        "the model refused: I would rather not.",
    );
    check_unusable(
        &request("Why?"),
        said(" \n", RawStopReason::Refusal, used(12, 3)),
        None,
        amount(42, 15),
        kind,
        "the model refused to answer",
    );
    check_unusable(
        &request("Why?"),
        said(&"é".repeat(500), RawStopReason::Refusal, used(12, 3)),
        None,
        amount(42, 15),
        kind,
        &format!("the model refused: {}", "é".repeat(200)),
    );
}

#[test]
fn an_empty_answer_is_not_a_reply() {
    for stop in [RawStopReason::End, RawStopReason::Other] {
        check_unusable(
            &request("Why?"),
            said(" \n\t", stop, used(12, 3)),
            None,
            amount(42, 15),
            FailureKind::EmptyReply,
            "the reply has no text",
        );
    }
}

#[test]
fn an_answer_truncated_before_its_first_word_is_not_empty() {
    let usage = used(12, 100);
    check_usable(
        said("", RawStopReason::MaxTokens, usage),
        usage.unwrap(),
        UsageBasis::Reported,
        StopReason::MaxTokens,
        1012,
    );
}

#[test]
fn a_truncated_prompt_is_detected_by_its_token_count() {
    let expected = long_request().prompt_tokens_expected();
    assert_eq!(expected, 1060);
    check_unusable(
        &long_request(),
        said("Because.", RawStopReason::End, used(264, 2)),
        None,
        amount(284, 266),
        FailureKind::ContextTruncated,
        "the provider counted 264 prompt tokens of about 1060 sent, so the prompt was truncated",
    );
    let at_the_edge = said("Because.", RawStopReason::End, used(265, 2));
    let judged =
        judge(&long_request(), &card(), BackendReply { answer: at_the_edge, window: None });
    assert!(judged.result.is_ok());
}

#[test]
fn cached_prompt_tokens_count_as_read() {
    let usage = TokenUsage { input: 4, cache_read: 1000, output: 2, ..TokenUsage::default() };
    let answer = said("Because.", RawStopReason::End, Some(usage));
    let judged = judge(&long_request(), &card(), BackendReply { answer, window: None });
    assert!(judged.result.is_ok());
}

#[test]
fn a_short_prompt_is_never_reported_as_truncated() {
    let answer = said("Because.", RawStopReason::End, used(1, 2));
    let request = request(&"word ".repeat(320));
    assert!(request.prompt_tokens_expected() < MIN_CHECKED_PROMPT);
    assert!(judge(&request, &card(), BackendReply { answer, window: None }).result.is_ok());
}

#[test]
fn a_schema_missing_from_the_prompt_count_is_not_truncation() {
    // Regression: Ollama and llama.cpp do not add the schema to the prompt. With the schema in the
    // estimate, a short question with a long schema looked truncated and failed permanently.
    let fields: Vec<_> =
        (0..60).map(|field| format!(r#""field_{field}":{{"type":"string"}}"#)).collect();
    let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, fields.join(","));
    let schema = Some(OutputSchema::parse("wide", &schema).unwrap());
    let request = ModelRequest { schema, ..request("Fill in the form, please.") };
    assert!(request.prompt_tokens_expected() > 1000);
    let answer = said("{}", RawStopReason::End, used(40, 2));
    assert!(judge(&request, &card(), BackendReply { answer, window: None }).result.is_ok());
}

#[test]
fn a_completely_full_context_window_means_a_truncated_prompt() {
    let detail = "prompt and reply fill the context window of 4096 tokens completely, so the prompt was truncated";
    let request = request(&"word ".repeat(4000));
    for (input, output) in [(4090, 6), (4096, 0), (4097, 3)] {
        check_unusable(
            &request,
            said("Because.", RawStopReason::End, used(input, output)),
            Some(4096),
            amount(input + 10 * output, input + output),
            FailureKind::ContextTruncated,
            detail,
        );
    }
    let answer = said("Because.", RawStopReason::End, used(4090, 5));
    assert!(judge(&request, &card(), BackendReply { answer, window: Some(4096) }).result.is_ok());
}

#[test]
fn missing_counts_are_estimated() {
    let expected = TokenUsage {
        input: request("Why?").prompt_tokens_expected(),
        output: tokens_expected("Because."),
        ..TokenUsage::default()
    };
    let micros = expected.input + 10 * expected.output;
    for usage in [None, used(0, 0), used(0, 7)] {
        check_usable(
            said("Because.", RawStopReason::End, usage),
            expected,
            UsageBasis::Estimated,
            StopReason::End,
            micros,
        );
    }
}

#[test]
fn estimated_usage_never_reports_a_truncated_prompt() {
    let answer = said("Because.", RawStopReason::End, None);
    let judged = judge(&long_request(), &card(), BackendReply { answer, window: Some(1062) });
    assert!(judged.result.is_ok());
}

#[test]
fn impossible_token_counts_are_capped_at_the_possible_maximum() {
    let most = TokenUsage {
        input: request("Why?").prompt_tokens_at_most(),
        output: 100,
        ..TokenUsage::default()
    };
    let huge = TokenUsage {
        input: u64::MAX,
        cache_read: u64::MAX,
        cache_write_5m: u64::MAX,
        cache_write_1h: u64::MAX,
        output: u64::MAX,
        reasoning: u64::MAX,
    };
    // Each count is bounded separately: a wrong prompt count says nothing about the output.
    let held = |input, output| TokenUsage { input, output, ..TokenUsage::default() };
    // Reasoning beyond the limit is accepted up to twice the limit plus 1024.
    let longest = 2 * 100 + 1024;
    for (usage, expected) in [
        (used(most.input + 1, 1), held(most.input, 1)),
        (used(1, longest + 1), held(1, longest)),
        (Some(huge), TokenUsage { reasoning: longest, ..held(most.input, longest) }),
    ] {
        check_usable(
            said("Because.", RawStopReason::End, usage),
            expected,
            UsageBasis::Bounded,
            StopReason::End,
            expected.input + expected.output * 10,
        );
    }
    check_usable(
        said("Because.", RawStopReason::End, used(1, 101)),
        held(1, 101),
        UsageBasis::Reported,
        StopReason::End,
        1011,
    );
    check_usable(
        said("Because.", RawStopReason::End, Some(most)),
        most,
        UsageBasis::Reported,
        StopReason::End,
        most.input + 1000,
    );
}

#[track_caller]
fn check_cost(prices: ModelPrices, usage: TokenUsage, expected: u64) {
    let question = "word ".repeat(40_000);
    let request = ModelRequest { max_tokens: 1000, ..request(&question) };
    let card = ModelCard { prices: Some(prices), ..card() };
    let answer = said("Because.", RawStopReason::End, Some(usage));
    let judged = judge(&request, &card, BackendReply { answer, window: None });
    assert_eq!(judged.amount, amount(expected, usage.total()));
}

#[test]
fn every_kind_of_token_has_its_price() {
    let base = TokenPrice {
        input: MicroUsd::new(1_000_000),
        output: MicroUsd::new(5_000_000),
        cache_read: Some(MicroUsd::new(100_000)),
        cache_write_5m: Some(MicroUsd::new(1_250_000)),
        cache_write_1h: Some(MicroUsd::new(2_000_000)),
    };
    let usage = TokenUsage {
        input: 1000,
        cache_read: 10_000,
        cache_write_5m: 400,
        cache_write_1h: 300,
        output: 20,
        reasoning: 15,
    };
    // 1000 + 1000 + 500 + 600 + 100; reasoning is part of the output and not billed twice.
    check_cost(ModelPrices { base, above: None }, usage, 3200);
    // Without cache prices, cached tokens cost the same as others.
    check_cost(ModelPrices { base: price(1_000_000, 5_000_000), above: None }, usage, 11_800);
}

#[test]
fn long_context_prices_apply_above_the_threshold() {
    let prices = ModelPrices {
        base: price(1_000_000, 1_000_000),
        above: Some((20_000, price(5_000_000, 7_000_000))),
    };
    let usage = TokenUsage { input: 15_000, cache_read: 5000, output: 10, ..TokenUsage::default() };
    check_cost(prices, usage, 20_010);
    check_cost(prices, TokenUsage { cache_read: 5001, ..usage }, 100_005 + 70);
}

#[test]
fn a_model_without_a_price_has_no_bill() {
    let card = ModelCard { prices: None, ..card() };
    let answer = said("Because.", RawStopReason::End, used(12, 3));
    let judged = judge(&request("Why?"), &card, BackendReply { answer, window: None });
    assert_eq!(judged.amount, CallCost { usd: None, tokens: 15 });
    assert_eq!(judged.result.unwrap().cost_micro_usd, None);
}

#[test]
fn a_reply_that_ends_in_a_loop_is_truncated() {
    let text = format!("The margin fell. {}", "It fell again. ".repeat(100));
    let answered =
        BackendReply { answer: said(&text, RawStopReason::End, used(12, 3)), window: None };
    let reply = judge(&request("Why?"), &card(), answered).result.unwrap();
    assert_eq!(reply.stop, StopReason::MaxTokens);
    assert_eq!(reply.text, "The margin fell. It fell again");
}
