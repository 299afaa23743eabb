//! Tests with a real model: the small local one of `tools/local-model`, which CI starts.
//!
//! They fail if it is missing: `MOOTHALL_TEST_LOCAL_MODEL` must contain its address.

use std::collections::{BTreeMap, VecDeque};

use moothall_core::ask::AskWorkflow;
use moothall_core::consult::board;
use moothall_core::debate::{CallSettings, Debate, DebateInput, base_calls};
use moothall_core::model::{
    FailureKind, ModelName, ModelReply, ModelRequest, OutputSchema, PromptBlock, StopReason,
    Temperature, UsageBasis,
};
use moothall_core::structured::{OutputFault, read_json};
use moothall_core::{Conclusion, Effect, EffectId, EffectResult, RunVerdict, Workflow as _};
use moothall_models::settings::ProviderSettings;
use moothall_models::{
    Catalog, Gateway, GatewayOptions, ProviderConnections, RecordingMode, RunLedger, SchemaCheck,
};

use serde_json::json;

use crate::support::Heard;

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "impact": { "type": "integer", "minimum": 1, "maximum": 10 },
        "word": { "type": "string", "maxLength": 12 },
        "sure": { "type": "boolean" }
    },
    "required": ["impact", "word", "sure"],
    "additionalProperties": false
}"#;

fn gateway() -> Gateway {
    let url = std::env::var("MOOTHALL_TEST_LOCAL_MODEL").expect(
        "MOOTHALL_TEST_LOCAL_MODEL is not set: start tools/local-model/up.sh and set it to http://127.0.0.1:28411",
    );
    let settings =
        || ProviderSettings { base_url: Some(format!("{url}/v1")), ..ProviderSettings::default() };
    let mut catalog = Catalog::built_in().unwrap();
    let providers = ["openai", "anthropic"].map(|name| (name.to_owned(), settings()));
    catalog.configure(&BTreeMap::from(providers)).unwrap();
    Gateway::new(GatewayOptions {
        catalog,
        keys: BTreeMap::new(),
        retry: Default::default(),
        recording: RecordingMode::Off,
        connections: ProviderConnections::default(),
    })
}

fn request(provider: &str, question: &str) -> ModelRequest {
    let model = format!("{provider}/smollm2-135m").parse().unwrap();
    ModelRequest {
        system: vec![PromptBlock::new("You are a terse assistant.")],
        temperature: Some(Temperature::ZERO),
        ..ModelRequest::ask(model, question, 24)
    }
}

async fn ask(request: &ModelRequest) -> ModelReply {
    gateway().call(request, &RunLedger::unlimited(), None).await.result.unwrap()
}

fn check_plain(reply: &ModelReply) {
    assert!(!reply.text.trim().is_empty());
    assert_eq!(reply.usage_basis, UsageBasis::Reported);
    assert!(
        reply.usage.prompt() > 10 && (1..=24).contains(&reply.usage.output),
        "{:?}",
        reply.usage
    );
    assert_eq!(reply.cost_micro_usd, None, "nobody told us its price");
}

#[tokio::test]
async fn answers_on_the_openai_wire() {
    let reply = ask(&request("openai", "Name three colours.")).await;
    check_plain(&reply);
    assert_eq!(reply.model, "smollm2-135m");
}

#[tokio::test]
async fn answers_on_the_anthropic_wire() {
    check_plain(&ask(&request("anthropic", "Name three colours.")).await);
}

#[tokio::test]
async fn the_local_model_streams_the_same_text_as_its_complete_answer() {
    for provider in ["openai", "anthropic"] {
        let request = request(provider, "Name three animals.");
        let mut heard = Heard::default();
        let gateway = gateway();
        let ledger = RunLedger::unlimited();
        let streamed = gateway.call(&request, &ledger, Some(&mut heard)).await.result.unwrap();
        assert_eq!(heard.text, streamed.text);
        check_plain(&streamed);
        // At temperature 0 and with a fixed seed the model is deterministic.
        assert_eq!(gateway.call(&request, &ledger, None).await.result.unwrap().text, streamed.text);
    }
}

#[tokio::test]
async fn follows_a_schema_on_the_openai_wire() {
    let mut request = request("openai", "Rate the idea of opening a second shop. Use JSON.");
    request.max_tokens = 80;
    let schema = OutputSchema::parse("rating", SCHEMA).unwrap();
    let check = SchemaCheck::new(&schema).unwrap();
    request.schema = Some(schema);
    let reply = ask(&request).await;
    let value = read_json(&reply, &check).unwrap();
    assert!((1..=10).contains(&value["impact"].as_u64().unwrap()));
}

#[tokio::test]
async fn prose_from_the_local_model_instead_of_json_is_requested_again() {
    // The server ignores schemas in this API format, which simulates a model that returns prose.
    let mut question = request("anthropic", "Say hello to the board.");
    let schema = OutputSchema::parse("rating", SCHEMA).unwrap();
    let check = SchemaCheck::new(&schema).unwrap();
    question.schema = Some(schema);
    let first = ask(&question).await;
    let fault = read_json(&first, &check).unwrap_err();
    assert!(matches!(fault, OutputFault::NotJson { .. } | OutputFault::CutOff), "{fault:?}");

    let gateway = gateway();
    let mut workflow = AskWorkflow::new(question, Box::new(check)).unwrap();
    let mut step = workflow.start();
    let mut asked = Vec::new();
    let outcome = loop {
        if let Some(outcome) = step.outcome {
            break outcome;
        }
        let (id, effect) = step.perform.pop().unwrap();
        let Effect::CallModel(request) = effect else { panic!("{effect:?}") };
        asked.push(id.to_string());
        let report = gateway.call(&request, &RunLedger::unlimited(), None).await;
        step = workflow.resume(&id, EffectResult::from(report.result)).unwrap();
    };
    assert_eq!(asked, ["answer", "answer/ask-2"]);
    // Such a small model may or may not succeed the second time; the test checks only that a bad
    // reply does not pass.
    match outcome.conclusion {
        Conclusion::Answered { .. } => assert_eq!(outcome.verdict, RunVerdict::Pass),
        _ => assert_eq!(outcome.verdict, RunVerdict::Fail),
    }
}

#[tokio::test]
async fn the_local_model_reports_a_prompt_that_exceeds_its_window() {
    for provider in ["openai", "anthropic"] {
        let long = request(provider, &"word ".repeat(12_000));
        let report = gateway().call(&long, &RunLedger::unlimited(), None).await;
        let failure = report.result.unwrap_err();
        assert_eq!(
            (failure.kind, report.timing.tries),
            (FailureKind::ContextOverflow, 1),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn the_local_model_stops_at_max_tokens_and_reports_it() {
    let reply = ask(&request("openai", "Tell a very long story about a town and its hall.")).await;
    assert_eq!((reply.stop, reply.usage.output), (StopReason::MaxTokens, 24));
}

#[tokio::test]
async fn the_local_model_reports_tokens_read_from_its_cache() {
    let dossier =
        "The company sells instruments to laboratories and lists its accounts each year. "
            .repeat(12);
    let mut first = request("openai", "Who are the customers?");
    first.system = vec![PromptBlock::new(dossier)];
    first.max_tokens = 4;
    let gateway = gateway();
    let ledger = RunLedger::unlimited();
    gateway.call(&first, &ledger, None).await.result.unwrap();
    let again = gateway.call(&first, &ledger, None).await.result.unwrap();
    assert!(again.usage.cache_read * 10 > again.usage.prompt() * 8, "{:?}", again.usage);
}

#[tokio::test]
async fn the_token_estimate_is_close_to_the_local_models_count() {
    let prose = "A moot hall was where a town argued a matter, tried it and gave a verdict before acting on it. ".repeat(8);
    let sheet = "| [F0:Revenue:FY2024] | 391,035,000,000 | USD | 2024-09-28 |\n".repeat(8);
    let json = r#"{"impact": 7, "feasibility": 8, "reason": "the plan is sound"} "#.repeat(10);
    for (kind, text) in [("prose", prose), ("fact sheet", sheet), ("json", json)] {
        let mut question = request("openai", &text);
        question.max_tokens = 1;
        let (expected, at_most) =
            (question.prompt_tokens_expected(), question.prompt_tokens_at_most());
        let real = ask(&question).await.usage.prompt();
        let percent = expected * 100 / real;
        assert!((75..=125).contains(&percent), "{kind}: {expected} expected, {real} real");
        assert!(real <= at_most, "{kind}: {real} real, at most {at_most}");
    }
}

/// Minimum share of prompt tokens read from the cache in a debate of four rounds; longer debates
/// reuse more.
const LEAST_READ: f64 = 0.85;

/// The number of debate rounds to measure.
const ROUNDS: &str = "MOOTHALL_TEST_DEBATE_ROUNDS";

/// The debate, its prompts and the cache are real. Its replies are scripted, because the model
/// would rarely follow the format, which would cause retries.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "the figure of a long debate")]
async fn reads_most_of_a_debates_prompts_from_its_cache() {
    let rounds = std::env::var(ROUNDS).map_or(4, |rounds| rounds.parse().unwrap());
    let gateway = gateway();
    let mut debate = Debate::new(debate_input(rounds)).unwrap();
    let mut step = debate.start();
    let (mut read, mut all, mut calls) = (0, 0, 0);
    let mut open: VecDeque<(EffectId, Effect)> = VecDeque::new();
    while step.outcome.is_none() {
        open.extend(step.perform);
        let (id, effect) = open.pop_front().unwrap();
        let Effect::CallModel(request) = effect else { panic!("{effect:?}") };
        let request = ModelRequest { max_tokens: 4, ..*request };
        let reply = gateway.call(&request, &RunLedger::unlimited(), None).await.result.unwrap();
        read += reply.usage.cache_read;
        all += reply.usage.prompt();
        calls += 1;
        let text = words(id.as_str());
        let stop = StopReason::End;
        step = debate
            .resume(&id, EffectResult::ModelReplied(ModelReply { text, stop, ..reply }))
            .unwrap();
    }
    let share = read as f64 / all as f64;
    println!("{rounds} rounds, {calls} calls: {read} of {all} prompt tokens were read, {share:.3}");
    assert_eq!(calls, base_calls(rounds, 3));
    assert!(share >= LEAST_READ, "{share}");
}

/// A dossier of about 400 tokens, to fit the model's context window.
fn debate_input(rounds: u32) -> DebateInput {
    let board = board();
    let model: ModelName = "openai/smollm2-135m".parse().unwrap();
    let fact =
        "The company sells instruments and service contracts to laboratories, and it says so. ";
    DebateInput {
        move_id: "m1".to_owned(),
        company: "Helix Instruments (HLXI)".to_owned(),
        dossier: format!("# Dossier\n\n{}", fact.repeat(25)).into(),
        move_markdown: "# m1: Sell service contracts\n\nOne dealer sells them first.\n".into(),
        machine_findings: Vec::new(),
        rounds,
        critic: board.critic,
        decision_makers: board.decision_makers,
        metrics: board.metrics,
        critic_model: model.clone().into(),
        decision_maker_model: model.into(),
        calls: CallSettings::default(),
        prompts: moothall_core::OwnTexts::default(),
        scoring: moothall_core::debate::DebateScoring::default(),
        calculations: None,
    }
}

/// About 40 tokens in the required format.
fn words(id: &str) -> String {
    let message =
        format!("In {id} nothing new is shown, and the point stands as it was made before.");
    let scores = id.contains("/score/").then(|| {
        json!({
            "impact": 5, "feasibility": 6, "risk_adjusted_return": 4, "strategic_alignment": 7,
            "reasoning": "It may work.",
        })
    });
    match id {
        id if id.contains("critic") => {
            json!({"message": message, "objections": [], "withdrawn": []}).to_string()
        }
        _ => json!({
            "message": message, "stance": "hold", "answers": [], "conceded": [], "scores": scores,
        })
        .to_string(),
    }
}
