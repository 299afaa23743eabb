use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{ended, execution, expect_text, files, reply, rules};
use super::*;
use crate::model::{CallPurpose, FailureKind, ModelFailure, StopReason};
use crate::sandbox::{
    CapturedOutput, ExecuteRequest, ExecutionExit, IsolationClass, SandboxFailure,
    SandboxFailureKind,
};

const READ_USERS: &str = "Read data from users.json and print usernames";

fn input(task: &str) -> ProgramInput {
    ProgramInput::new(
        task,
        "openai/gpt-5-mini".parse::<crate::model::ModelName>().unwrap(),
        "python",
    )
}

fn workflow(input: ProgramInput) -> ProgramRun {
    ProgramRun::new(input, Box::new(|_: &Value| Vec::new())).unwrap()
}

fn said(text: &str) -> EffectResult {
    EffectResult::ModelReplied(reply(text))
}

fn wrote(code: &str) -> EffectResult {
    said(
        &json!({"code": code, "dependencies": [], "reasoning": "r", "confidence": 0.9}).to_string(),
    )
}

fn printed(stdout: &str) -> EffectResult {
    EffectResult::Executed(Box::new(execution(ended(0), stdout, "")))
}

fn crashed(stderr: &str) -> EffectResult {
    EffectResult::Executed(Box::new(execution(ended(1), "", stderr)))
}

/// A recorded run: its outcome, its events by key, and its requests.
struct Ran {
    outcome: Outcome,
    events: Vec<RunEvent>,
    asked: Vec<(String, Effect)>,
}

impl Ran {
    fn keys(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.key.as_str()).collect()
    }

    fn rules(&self) -> Vec<(String, FindingSeverity)> {
        rules(&self.outcome.findings)
    }

    fn execution(&self, id: &str) -> &ExecuteRequest {
        match self.asked.iter().find(|(asked, _)| asked == id) {
            Some((_, Effect::Execute(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    fn question(&self, id: &str) -> &ModelRequest {
        match self.asked.iter().find(|(asked, _)| asked == id) {
            Some((_, Effect::CallModel(request))) => request,
            other => panic!("{other:?}"),
        }
    }
}

/// Runs the workflow with a list of results.
#[track_caller]
fn run(input: ProgramInput, results: impl IntoIterator<Item = EffectResult>) -> Ran {
    let mut workflow = workflow(input);
    let mut results = results.into_iter();
    let mut step = workflow.start();
    let (mut events, mut asked) = (Vec::new(), Vec::new());
    loop {
        events.extend(step.publish);
        if let Some(outcome) = step.outcome {
            assert!(results.next().is_none(), "a result was not asked for");
            return Ran { outcome, events, asked };
        }
        let [(id, effect)] = step.perform.as_slice() else { panic!("one effect at a time") };
        asked.push((id.to_string(), effect.clone()));
        step = workflow.resume(id, results.next().expect("it asks too often")).unwrap();
    }
}

fn rule(name: &str, severity: FindingSeverity) -> (String, FindingSeverity) {
    (name.to_owned(), severity)
}

#[test]
fn a_program_that_satisfies_its_contract_passes() {
    let input = ProgramInput { contract: expect_text("55\n"), ..input("Add 1 to 10") };
    let ran = run(input, [wrote("print(sum(range(11)))"), printed("55\n")]);
    let expected = ProgramResult {
        attempts: 1,
        code_from: Some("attempt-1/generate".parse().unwrap()),
        code_sha256: Some(Sha256Hex::of(b"print(sum(range(11)))")),
        exit: Some(ended(0)),
        class: Some(IsolationClass::UserKernel),
        stdout: CapturedOutput { text: "55\n".to_owned(), truncated: false },
        stderr: CapturedOutput::default(),
        files: BTreeMap::new(),
    };
    assert_eq!(ran.outcome, Outcome::new(Vec::new(), Conclusion::Passed(Box::new(expected))));
    assert_eq!(
        ran.keys(),
        [
            "run:run_started",
            "attempt-1/generate:attempt_started",
            "attempt-1/generate:model_replied",
            "attempt-1/generate:code_generated",
            "attempt-1/execute:executed",
            "attempt-1/execute:judged",
            "run:run_finished",
        ]
    );
    let request = ran.execution("attempt-1/execute");
    assert_eq!(request.argv, ["python3", "main.py"]);
    assert_eq!(request.sources[&"main.py".parse().unwrap()], "print(sum(range(11)))");
    assert!(request.collect);
}

#[test]
fn without_a_contract_a_program_ran_and_did_not_pass() {
    let ran = run(input("Dance"), [wrote("print(1)"), printed("1\n")]);
    assert!(matches!(ran.outcome.conclusion, Conclusion::Ran(_)), "{:?}", ran.outcome);
    assert_eq!(ran.outcome.verdict, RunVerdict::Pass);
}

#[test]
fn exit_code_zero_alone_does_not_satisfy_a_contract() {
    let input = ProgramInput { contract: expect_text("55"), attempts: 1, ..input("Add 1 to 10") };
    let ran = run(input, [wrote("print(54)"), printed("54\n")]);
    assert!(matches!(ran.outcome.conclusion, Conclusion::NotPassed(_)), "{:?}", ran.outcome);
    assert_eq!(ran.rules(), [rule("contract.text", FindingSeverity::Block)]);
}

#[test]
fn a_failed_attempt_is_criticised_and_the_next_prompt_says_why() {
    let ran = run(
        input("Dance"),
        [
            wrote("prnt(1)"),
            crashed("NameError: prnt"),
            said("Write print."),
            wrote("print(1)"),
            printed("1"),
        ],
    );
    assert!(matches!(&ran.outcome.conclusion, Conclusion::Ran(last) if last.attempts == 2));
    // Findings of the first attempt are not findings of the run.
    assert_eq!(ran.rules(), []);
    assert_eq!(
        ran.keys()[4..],
        [
            "attempt-1/execute:executed",
            "attempt-1/execute:judged",
            "attempt-1/critique:model_replied",
            "attempt-1/critique:critiqued",
            "attempt-2/generate:attempt_started",
            "attempt-2/generate:model_replied",
            "attempt-2/generate:code_generated",
            "attempt-2/execute:executed",
            "attempt-2/execute:judged",
            "run:run_finished",
        ]
    );
    let critique = ran.question("attempt-1/critique");
    assert_eq!(critique.purpose, CallPurpose::Critique);
    let (first, second) = (ran.question("attempt-1/generate"), ran.question("attempt-2/generate"));
    assert_eq!((first.purpose, &first.system), (CallPurpose::Generate, &second.system));
    assert_eq!(second.turns[..1], first.turns[..]);
    let taught = &second.turns[2].block.text;
    assert!(taught.contains("NameError: prnt") && taught.contains("Write print."), "{taught}");
}

#[test]
fn if_every_attempt_fails_the_last_one_is_the_result() {
    let results = (1..=3).flat_map(|number| {
        let error = format!("Error: {}", "x".repeat(number));
        let mut results = vec![wrote(&format!("f({number})")), crashed(&error)];
        if number < 3 {
            results.push(said("Hm."));
        }
        results
    });
    let ran = run(input("Dance"), results.collect::<Vec<_>>());
    assert!(matches!(&ran.outcome.conclusion, Conclusion::NotPassed(last) if last.attempts == 3));
    assert_eq!(ran.rules(), [rule("run.crashed", FindingSeverity::Block)]);
    assert_eq!(ran.outcome.findings[0].subject, "attempt-3/execute");
}

#[test]
fn the_same_failure_again_ends_the_run_early() {
    let error = "ModuleNotFoundError: No module named 'requests'";
    let results = [
        wrote("import requests"),
        crashed(error),
        said("No."),
        wrote("import requests as r"),
        crashed(error),
    ];
    let ran = run(input("Dance"), results);
    assert!(matches!(&ran.outcome.conclusion, Conclusion::NotPassed(last) if last.attempts == 2));
    assert_eq!(
        ran.rules(),
        [
            rule("run.crashed", FindingSeverity::Block),
            rule("dependency.missing", FindingSeverity::Block),
            rule("network.attempted", FindingSeverity::Warn),
            rule("run.repeated", FindingSeverity::Block),
        ]
    );
}

#[test]
fn fabricated_input_data_never_passes() {
    let made_up = "# Create sample data since file doesn't exist in sandbox\nsample_data = [{'username': 'alice', 'id': 1}]\nfor user in sample_data:\n    print(user['username'])\n";
    let honest =
        "import json\nfor user in json.load(open('users.json')):\n    print(user['username'])\n";
    let missing = "FileNotFoundError: [Errno 2] No such file or directory: 'users.json'";
    let after = [
        wrote(honest),
        crashed(missing),
        said("Create sample data inline."),
        wrote(made_up),
        printed("alice\n"),
    ];
    let two = ProgramInput { attempts: 2, ..input(READ_USERS) };
    let at_once = ProgramInput { attempts: 1, ..input(READ_USERS) };
    for ran in [run(two, after), run(at_once, [wrote(made_up), printed("alice\n")])] {
        assert!(matches!(ran.outcome.conclusion, Conclusion::NotPassed(_)), "{:?}", ran.outcome);
        assert_eq!(ran.outcome.verdict, RunVerdict::Fail);
        assert_eq!(ran.rules(), [rule("input.fabricated", FindingSeverity::Block)]);
    }
}

#[test]
fn an_answer_without_a_program_is_requested_once_more() {
    let ran = run(input("Dance"), [said("Sure!"), said("```python\nprint(1)\n```"), printed("1")]);
    assert_eq!(ran.rules(), [rule("output.asked-again", FindingSeverity::Note)]);
    assert_eq!(
        ran.keys()[2..6],
        [
            "attempt-1/generate:model_replied",
            "attempt-1/generate:output_rejected",
            "attempt-1/generate/ask-2:model_replied",
            "attempt-1/generate/ask-2:code_generated",
        ]
    );
    let Conclusion::Ran(last) = &ran.outcome.conclusion else { panic!("{:?}", ran.outcome) };
    assert_eq!(last.code_from, Some("attempt-1/generate/ask-2".parse().unwrap()));
    assert_eq!(ran.question("attempt-1/generate/ask-2").turns.len(), 3);
}

#[test]
fn two_attempts_in_a_row_without_a_program_end_the_run() {
    let recovers =
        run(input("Dance"), [said("Sure!"), said("No."), wrote("print(1)"), printed("1")]);
    assert!(matches!(&recovers.outcome.conclusion, Conclusion::Ran(last) if last.attempts == 2));
    assert!(recovers.keys().contains(&"attempt-1/generate/ask-2:judged"));
    let never = run(input("Dance"), ["a", "b", "c", "d"].map(said));
    let expected = Conclusion::NotPassed(Box::new(ProgramResult::without_program(2)));
    assert_eq!(never.outcome.conclusion, expected);
    assert_eq!(
        never.rules(),
        [
            rule("output.schema", FindingSeverity::Block),
            rule("run.repeated", FindingSeverity::Block)
        ]
    );
}

#[test]
fn a_check_receives_the_files_of_the_program_and_decides() {
    let contract =
        ProgramContract { check: Some("assert True".to_owned()), ..ProgramContract::default() };
    let input = ProgramInput {
        contract,
        inputs: files(&["sales.csv"]),
        attempts: 1,
        ..input("Sum up sales.csv")
    };
    let mut left = execution(ended(0), "12\n", "");
    left.files = files(&["a/b.png"]);
    let left = || EffectResult::Executed(Box::new(left.clone()));
    let ran = run(input.clone(), [wrote("print(12)"), left(), printed("fine")]);
    assert!(matches!(ran.outcome.conclusion, Conclusion::Passed(_)), "{:?}", ran.outcome);
    let check = ran.execution("attempt-1/check");
    let expected = ExecuteRequest {
        image: "python".to_owned(),
        sources: [
            ("check.py", "assert True"),
            ("exit.txt", "exit code 0\n"),
            ("stderr.txt", ""),
            ("stdout.txt", "12\n"),
        ]
        .map(|(path, text)| (path.parse().unwrap(), text.to_owned()))
        .into(),
        inputs: files(&["out/a/b.png", "sales.csv"]),
        argv: vec!["python3".to_owned(), "check.py".to_owned()],
        env: BTreeMap::new(),
        stdin: String::new(),
        limits: Default::default(),
        collect: false,
    };
    assert_eq!(*check, expected);

    let ran = run(input, [wrote("print(12)"), left(), crashed("AssertionError")]);
    assert_eq!(ran.rules(), [rule("contract.check", FindingSeverity::Block)]);
    assert_eq!(
        ran.keys()[4..],
        [
            "attempt-1/execute:executed",
            "attempt-1/check:executed",
            "attempt-1/execute:judged",
            "run:run_finished"
        ]
    );
}

#[test]
fn a_check_fails_if_an_output_file_cannot_be_passed_to_it() {
    let contract = ProgramContract { check: Some(String::new()), ..ProgramContract::default() };
    let input = ProgramInput { contract, attempts: 1, ..input("Dance") };
    let mut left = execution(ended(0), "", "");
    left.files = files(&[&["a"; 16].join("/")]);
    let ran = run(input, [wrote("print(1)"), EffectResult::Executed(Box::new(left))]);
    assert_eq!(ran.rules(), [rule("contract.check", FindingSeverity::Block)]);
}

#[test]
fn a_satisfied_contract_with_an_escalated_finding_needs_a_person() {
    let input = ProgramInput { contract: expect_text("The answer is 42"), ..input("Think") };
    let ran = run(input, [wrote("print('The answer is 42')"), printed("The answer is 42\n")]);
    assert!(matches!(ran.outcome.conclusion, Conclusion::Questioned(_)), "{:?}", ran.outcome);
    assert_eq!(ran.outcome.verdict, RunVerdict::NeedsPerson);
}

#[test]
fn an_unavailable_sandbox_fails_the_run_without_judging_the_program() {
    let failure = SandboxFailure {
        kind: SandboxFailureKind::Lost,
        detail: "the guest never answered".to_owned(),
    };
    let ran = run(input("Dance"), [wrote("print(1)"), EffectResult::NotExecuted(failure)]);
    assert_eq!(ran.outcome.conclusion, Conclusion::NotExecuted { kind: SandboxFailureKind::Lost });
    assert_eq!(ran.rules(), [rule("sandbox.failed", FindingSeverity::Block)]);
    assert_eq!(ran.keys().last(), Some(&"run:run_failed"));
    assert!(ran.keys().iter().all(|key| !key.ends_with(":judged")), "no program was judged");
}

#[test]
fn a_failed_call_fails_the_run_wherever_it_happens() {
    let failed = || EffectResult::ModelFailed(ModelFailure::new(FailureKind::Auth, "no"));
    for results in [
        vec![failed()],
        vec![said("?"), failed()],
        vec![wrote("x"), crashed("NameError"), failed()],
    ] {
        let ran = run(input("Dance"), results);
        assert_eq!(ran.outcome.conclusion, Conclusion::Failed { kind: FailureKind::Auth });
        assert_eq!(ran.keys().last(), Some(&"run:run_failed"));
    }
}

#[test]
fn a_result_nobody_waits_for_changes_nothing() {
    let mut workflow = workflow(input("Dance"));
    let id = |text: &str| -> EffectId { text.parse().unwrap() };
    let early = workflow.resume(&id("attempt-1/generate"), wrote("x")).unwrap_err();
    assert_eq!(early.stage, "not started");
    let _ = workflow.start();
    for (other, result) in [
        ("attempt-1/execute", printed("")),
        ("attempt-2/generate", wrote("x")),
        ("attempt-1/generate/ask-2", wrote("x")),
        ("attempt-1/generate", printed("")),
    ] {
        let unexpected = workflow.resume(&id(other), result).unwrap_err();
        assert_eq!(unexpected.stage, "waiting for a program", "{other}");
    }
    assert!(workflow.resume(&id("attempt-1/generate"), wrote("print(1)")).is_ok());
    assert!(workflow.resume(&id("attempt-1/generate"), wrote("print(1)")).is_err());
    assert!(workflow.resume(&id("attempt-1/execute"), printed("1")).unwrap().outcome.is_some());
    assert_eq!(workflow.start(), Step::default());
}

#[test]
fn an_invalid_program_input_is_refused() {
    let refused = |input: ProgramInput| {
        ProgramRun::new(input, Box::new(|_: &Value| Vec::new())).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused(input(" ")), InvalidProgramInput::NoTask);
    assert_eq!(refused(input(&"x".repeat(70_000))), InvalidProgramInput::LongTask);
    for attempts in [0, 11] {
        assert_eq!(refused(ProgramInput { attempts, ..input("a") }), InvalidProgramInput::Attempts);
    }
    let contract = ProgramContract { check: Some(String::new()), ..ProgramContract::default() };
    let in_the_way = ProgramInput { contract, inputs: files(&["out/a"]), ..input("a") };
    assert_eq!(refused(in_the_way), InvalidProgramInput::InputInTheWay("out/a".parse().unwrap()));
}

/// Text that contains programs, fences and JSON more often than random text.
fn text() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        Just("```python\n".to_owned()),
        Just("\n```\n".to_owned()),
        Just("{\"code\": \"".to_owned()),
        Just("\"}".to_owned()),
        Just("import socket\n".to_owned()),
        Just("try:\n  open('users.json', 'w')\nexcept: exit(0)\n".to_owned()),
        Just("No such file or directory: 'users.json'\n".to_owned()),
        Just("sample_data = [1, 2, 'x', \"\"\"y\n".to_owned()),
        "[ -~\n]{0,12}",
        ".{0,4}",
    ];
    proptest::collection::vec(words, 0..8).prop_map(|words| words.concat())
}

fn exit() -> impl Strategy<Value = ExecutionExit> {
    prop_oneof![
        3 => Just(ended(0)),
        2 => (-3..4_i32).prop_map(ended),
        1 => Just(ExecutionExit::Signalled { signal: 9 }),
        1 => Just(ExecutionExit::TimedOut),
        1 => Just(ExecutionExit::OutOfMemory),
        1 => text().prop_map(|detail| ExecutionExit::SandboxDied { detail }),
    ]
}

fn program() -> impl Strategy<Value = EffectResult> {
    prop_oneof![
        2 => text().prop_map(|code| wrote(&format!("{code}\n1"))),
        1 => text().prop_map(|text| said(&text)),
        1 => text().prop_map(|text| {
            EffectResult::ModelReplied(ModelReply { stop: StopReason::MaxTokens, ..reply(&text) })
        }),
    ]
}

fn result() -> impl Strategy<Value = EffectResult> {
    let executed =
        (exit(), text(), text(), any::<bool>()).prop_map(|(exit, stdout, stderr, cut)| {
            let mut execution = execution(exit, &stdout, &stderr);
            execution.stdout.truncated = cut;
            execution.files = if cut { files(&["users.json"]) } else { BTreeMap::new() };
            EffectResult::Executed(Box::new(execution))
        });
    let failed = Just(EffectResult::ModelFailed(ModelFailure::new(FailureKind::Server, "x")));
    let lost = Just(EffectResult::NotExecuted(SandboxFailure {
        kind: SandboxFailureKind::Lost,
        detail: "x".to_owned(),
    }));
    prop_oneof![20 => program(), 20 => executed, 1 => failed, 1 => lost]
}

fn contract() -> impl Strategy<Value = ProgramContract> {
    prop_oneof![
        Just(ProgramContract::default()),
        text().prop_map(|text| expect_text(&text)),
        Just(ProgramContract { check: Some("pass".to_owned()), ..ProgramContract::default() }),
        Just(ProgramContract {
            outputs: vec!["users.json".parse().unwrap()],
            ..ProgramContract::default()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    /// For any answers, programs and sandbox results in any order: nothing panics, unexpected
    /// results change nothing, no effect is requested twice, the run ends within its attempts, and
    /// verdict and conclusion agree.
    #[test]
    fn every_program_run_ends_within_its_attempts_with_a_matching_verdict(
        task in prop_oneof![Just(READ_USERS.to_owned()), text().prop_map(|text| format!("x{text}"))],
        attempts in 1..5_u32,
        contract in contract(),
        mut results in proptest::collection::vec(result(), 30),
    ) {
        let has_contract = !contract.is_empty();
        let mut workflow = workflow(ProgramInput { attempts, contract, ..input(&task) });
        let mut step = workflow.start();
        let mut asked = BTreeSet::new();
        let mut keys = BTreeSet::new();
        let outcome = loop {
            for event in &step.publish {
                prop_assert!(keys.insert(event.key.clone()), "{} twice", event.key);
                let text = serde_json::to_string(event).unwrap();
                prop_assert_eq!(&serde_json::from_str::<RunEvent>(&text).unwrap(), event);
            }
            if let Some(outcome) = step.outcome {
                prop_assert!(step.publish.last().unwrap().body.is_terminal());
                break outcome;
            }
            let [(id, effect)] = step.perform.as_slice() else { panic!("one effect at a time") };
            prop_assert!(asked.insert(id.clone()), "{id} twice");
            prop_assert!(effect.request_hash().is_ok());
            let other: EffectId = "attempt-9/execute".parse().unwrap();
            prop_assert!(workflow.resume(&other, printed("")).is_err());
            step = loop {
                // Results of the wrong kind are rejected and change nothing.
                let next = results.pop().unwrap_or_else(|| match effect {
                    Effect::CallModel(_) => wrote("1"),
                    Effect::Execute(_) => crashed("x"),
                    other => panic!("{other:?} is no effect of this workflow"),
                });
                match workflow.resume(id, next) {
                    Ok(step) => break step,
                    Err(unexpected) => prop_assert_eq!(&unexpected.id, id),
                }
            };
        };
        prop_assert!(asked.len() <= attempts as usize * 5);
        prop_assert_eq!(RunVerdict::of(&outcome.findings), outcome.verdict);
        let text = serde_json::to_string(&outcome).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Outcome>(&text).unwrap(), &outcome);
        let agrees = match &outcome.conclusion {
            Conclusion::Passed(last) => {
                has_contract && outcome.verdict == RunVerdict::Pass && last.exit == Some(ended(0))
            }
            Conclusion::Questioned(last) => {
                has_contract && outcome.verdict == RunVerdict::NeedsPerson && last.exit == Some(ended(0))
            }
            Conclusion::Ran(last) => {
                !has_contract && outcome.verdict == RunVerdict::Pass && last.exit == Some(ended(0))
            }
            Conclusion::NotPassed(last) => {
                outcome.verdict == RunVerdict::Fail && last.attempts <= attempts
            }
            Conclusion::Failed { .. } | Conclusion::NotExecuted { .. } => {
                outcome.verdict == RunVerdict::Fail
            }
            Conclusion::Answered { .. }
            | Conclusion::Edited(_)
            | Conclusion::Unusable { .. }
            | Conclusion::Debated(_)
            | Conclusion::NotDebated { .. }
            | Conclusion::Ranked(_)
            | Conclusion::NotGathered { .. } => false,
        };
        prop_assert!(agrees, "{outcome:?}");
    }
}
