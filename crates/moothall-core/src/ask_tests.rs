use serde_json::{Value, json};

use super::*;
use crate::RunVerdict;
use crate::model::{FailureKind, ModelFailure, OutputSchema, StopReason, TokenUsage, UsageBasis};

fn request(schema: Option<&str>) -> ModelRequest {
    let mut request = ModelRequest::ask("openai/gpt-5-mini".parse().unwrap(), "How many?", 50);
    request.schema = schema.map(|text| OutputSchema::parse("answer", text).unwrap());
    request
}

fn has_count(value: &Value) -> Vec<String> {
    if value["count"].is_u64() { Vec::new() } else { vec!["count is missing".to_owned()] }
}

fn reply(text: &str) -> EffectResult {
    EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text: text.to_owned(),
        stop: StopReason::End,
        model: "gpt-5-mini".to_owned(),
        usage: TokenUsage { input: 10, output: 3, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    })
}

/// Runs the workflow on a list of answers and returns its outcome and all event keys.
fn run(
    schema: Option<&str>,
    answers: impl IntoIterator<Item = EffectResult>,
) -> (Outcome, Vec<String>) {
    let mut workflow = AskWorkflow::new(request(schema), Box::new(has_count)).unwrap();
    let mut answers = answers.into_iter();
    let mut step = workflow.start();
    let mut keys = Vec::new();
    loop {
        keys.extend(step.publish.iter().map(|event| event.key.clone()));
        if let Some(outcome) = step.outcome {
            assert!(answers.next().is_none(), "an answer was not asked for");
            return (outcome, keys);
        }
        let [(id, _)] = step.perform.as_slice() else { panic!("one effect at a time: {step:?}") };
        step = workflow.resume(id, answers.next().expect("the workflow asks too often")).unwrap();
    }
}

#[test]
fn a_plain_question_ends_with_its_answer() {
    let (outcome, keys) = run(None, [reply("Three.")]);
    assert_eq!(
        outcome,
        Outcome::new(Vec::new(), Conclusion::Answered { text: "Three.".to_owned(), value: None })
    );
    assert_eq!(keys, ["run:run_started", "answer:model_replied", "run:run_finished"]);
}

#[test]
fn an_answer_that_repeats_the_question_is_kept_with_a_warning() {
    let question = "Name the three largest costs of this company.\n\
                    Costs of goods were $1.2 billion, salaries were $340 million.\n\
                    Rent was $25 million, interest was $12 million.";
    let warnings = |answer: &str| -> Vec<String> {
        let mut request = request(None);
        request.turns[0].block.text = question.into();
        let mut workflow = AskWorkflow::new(request, Box::new(has_count)).unwrap();
        let id = workflow.start().perform[0].0.clone();
        let outcome = workflow.resume(&id, reply(answer)).unwrap().outcome.unwrap();
        assert!(matches!(outcome.conclusion, Conclusion::Answered { .. }), "{answer}");
        outcome.findings.iter().map(|found| found.rule.to_string()).collect()
    };
    assert_eq!(warnings(question), ["output.echo"]);
    assert_eq!(warnings(&format!("Here they are:\n{question}")), ["output.echo"]);
    let quoted = "Salaries are the second largest cost, as the text shows:\n\
                  Costs of goods were $1.2 billion, salaries were $340 million.\n\
                  The largest cost is the cost of goods, and rent is the third.";
    assert_eq!(warnings(quoted), [""; 0]);
    assert_eq!(warnings("Goods, salaries, rent."), [""; 0]);
    // A question may ask for one of its lines.
    assert_eq!(warnings("Rent was $25 million, interest was $12 million."), [""; 0]);
}

#[test]
fn an_answer_that_violates_the_schema_is_requested_once_more() {
    let (outcome, keys) = run(Some("{}"), [reply("three"), reply(r#"{"count":3}"#)]);
    assert_eq!(outcome.verdict, RunVerdict::Pass);
    assert_eq!(
        outcome.conclusion,
        Conclusion::Answered {
            text: r#"{"count":3}"#.to_owned(),
            value: Some(json!({"count": 3}))
        }
    );
    assert_eq!(
        keys,
        [
            "run:run_started",
            "answer:model_replied",
            "answer:output_rejected",
            "answer/ask-2:model_replied",
            "run:run_finished"
        ]
    );
}

#[test]
fn a_second_invalid_answer_ends_the_run() {
    let (outcome, keys) = run(Some("{}"), [reply("three"), reply(r#"{"number":3}"#)]);
    assert_eq!(outcome.verdict, RunVerdict::Fail);
    assert_eq!(outcome.conclusion, Conclusion::Unusable { text: r#"{"number":3}"#.to_owned() });
    assert_eq!(outcome.findings[0].rule.to_string(), "output.schema");
    assert_eq!(keys.last().unwrap(), "run:run_finished");
}

#[test]
fn a_failed_call_fails_the_run() {
    let failed = EffectResult::ModelFailed(ModelFailure::new(FailureKind::Auth, "no"));
    let (outcome, keys) = run(None, [failed]);
    assert_eq!(outcome.conclusion, Conclusion::Failed { kind: FailureKind::Auth });
    assert_eq!(keys, ["run:run_started", "answer:model_failed", "run:run_failed"]);
}

#[test]
fn a_truncated_answer_warns_and_an_empty_one_is_unusable() {
    let cut = |text: &str| match reply(text) {
        EffectResult::ModelReplied(reply) => {
            EffectResult::ModelReplied(ModelReply { stop: StopReason::MaxTokens, ..reply })
        }
        other => other,
    };
    let (outcome, _) = run(None, [cut("Thr")]);
    assert_eq!(
        (outcome.verdict, outcome.findings[0].severity),
        (RunVerdict::Pass, FindingSeverity::Warn)
    );
    // A thinking model can use up all its tokens for thinking.
    let (outcome, keys) = run(None, [cut("")]);
    assert_eq!(outcome.verdict, RunVerdict::Fail);
    assert_eq!(outcome.conclusion, Conclusion::Unusable { text: String::new() });
    assert_eq!(keys.last().unwrap(), "run:run_finished");
}

#[test]
fn the_same_results_give_the_same_steps() {
    let steps = || {
        let mut workflow = AskWorkflow::new(request(Some("{}")), Box::new(has_count)).unwrap();
        let first: EffectId = "answer".parse().unwrap();
        let second = first.child("ask-2").unwrap();
        [
            workflow.start(),
            workflow.resume(&first, reply("three")).unwrap(),
            workflow.resume(&second, reply(r#"{"count":3}"#)).unwrap(),
        ]
    };
    assert_eq!(steps(), steps());
}

#[test]
fn a_result_nobody_waits_for_changes_nothing() {
    let mut workflow = AskWorkflow::new(request(None), Box::new(has_count)).unwrap();
    let first: EffectId = "answer".parse().unwrap();
    let other: EffectId = "answer/ask-2".parse().unwrap();
    let early = workflow.resume(&first, reply("x")).unwrap_err();
    assert_eq!(early.stage, "not started");
    let _ = workflow.start();
    assert!(workflow.resume(&other, reply("x")).is_err());
    assert!(workflow.resume(&first, reply("x")).unwrap().outcome.is_some());
    assert!(workflow.resume(&first, reply("x")).is_err());
    assert_eq!(workflow.start(), Step::default());
}
