use serde_json::Value;

use super::*;
use crate::model::OutputSchema;
use crate::program::support::{Case, ended, execution, expect_text, rules};

fn has_count(value: &Value) -> Vec<String> {
    if value["count"].is_u64() { Vec::new() } else { vec!["count is missing".to_owned()] }
}

fn judged(contract: &ProgramContract, stdout: &str) -> Vec<RunFinding> {
    let case = Case {
        contract: contract.clone(),
        execution: execution(ended(0), stdout, ""),
        ..Case::new("t", "x")
    };
    case.with(|attempt| judge(attempt, &has_count))
}

#[track_caller]
fn check(contract: &ProgramContract, stdout: &str, expected: Option<(&str, &str)>) {
    let found: Vec<_> = judged(contract, stdout)
        .into_iter()
        .map(|finding| (finding.rule.to_string(), finding.message))
        .collect();
    let expected: Vec<_> =
        expected.into_iter().map(|(rule, message)| (rule.to_owned(), message.to_owned())).collect();
    assert_eq!(found, expected);
}

#[test]
fn expected_text_must_match_the_output_except_trailing_white_space() {
    let contract = expect_text("2\n3\n");
    check(&contract, "2\n3", None);
    check(&contract, "2\n3\n\n \n", None);
    let differs = |message: &'static str| Some(("contract.text", message));
    check(&contract, "2\n4", differs("the output is not what was expected: line 2 is `4`"));
    check(&contract, "2", differs("the output ends after line 1; more was expected"));
    check(&contract, "2\n3\n5", differs("the output goes on after line 2 with `5`"));
    check(
        &contract,
        "2\r\n3",
        differs("the output differs from what was expected in its line ends"),
    );
    check(&contract, " \n", differs("the program printed nothing"));
    // The expected output is only in the evidence: messages are shown to models.
    assert_eq!(judged(&contract, "2\n4")[0].evidence, ["expected line 2: 3"]);
}

#[test]
fn an_expected_pattern_is_found_in_the_output() {
    let pattern = "^[0-9]+$".parse().unwrap();
    let contract = ProgramContract {
        expect: Some(OutputExpectation::Pattern { pattern }),
        ..ProgramContract::default()
    };
    check(&contract, "55\n", None);
    check(
        &contract,
        "it is 55\n",
        Some(("contract.pattern", "the output does not have the expected form")),
    );
}

#[test]
fn the_output_must_be_one_value_that_matches_the_expected_schema() {
    let schema = OutputSchema::parse("s", "{}").unwrap();
    let contract = ProgramContract {
        expect: Some(OutputExpectation::Schema { schema }),
        ..ProgramContract::default()
    };
    check(&contract, "{\"count\": 3}\n", None);
    check(&contract, "{}", Some(("contract.schema", "count is missing")));
    check(
        &contract,
        "Here: {}",
        Some((
            "contract.schema",
            "the output is not a single JSON value: expected value at line 1 column 1",
        )),
    );
}

#[test]
fn declared_outputs_must_be_there() {
    let contract =
        ProgramContract { outputs: vec!["a/b.png".parse().unwrap()], ..ProgramContract::default() };
    let missing = "the program did not leave `a/b.png` in /workspace/out";
    check(&contract, "", Some(("contract.output-missing", missing)));
    let case = Case { contract, ..Case::new("t", "x") }.left(&["a/b.png"]);
    assert_eq!(case.with(|attempt| judge(attempt, &has_count)), []);
}

#[test]
fn a_crashed_program_is_not_compared_with_its_contract() {
    let case = Case { contract: expect_text("1"), ..Case::new("t", "x") }.failed("");
    let found = case.with(|attempt| judge(attempt, &has_count));
    assert_eq!(rules(&found), [("run.crashed".to_owned(), FindingSeverity::Block)]);
}

#[test]
fn a_check_passes_only_with_exit_code_zero() {
    use crate::sandbox::ExecutionExit;
    assert_eq!(checked(&execution(ended(0), "fine", ""), "c"), []);
    let no = checked(&execution(ended(1), "", "Traceback\nAssertionError: total\n"), "c");
    assert_eq!(no[0].message, "the check says no (exit code 1): AssertionError: total");
    for exit in [
        ExecutionExit::TimedOut,
        ExecutionExit::OutOfMemory,
        ExecutionExit::SandboxDied { detail: String::new() },
    ] {
        let found = checked(&execution(exit, "", ""), "c");
        assert_eq!(rules(&found), [("contract.check".to_owned(), FindingSeverity::Block)]);
    }
}

#[test]
fn patterns_and_contracts_are_checked_when_they_are_read() {
    let read = |text: &str| serde_json::from_str::<ProgramContract>(text);
    let good = r#"{"expect":{"expect":"pattern","pattern":"^a+$"},"outputs":["a.png"]}"#;
    let contract = read(good).unwrap();
    assert_eq!(serde_json::to_string(&contract).unwrap(), good);
    for bad in [
        r#"{"expect":{"expect":"pattern","pattern":"("}}"#,
        r#"{"outputs":["../a"]}"#,
        r#"{"unknown":1}"#,
        r#"{"expect":{"expect":"pattern","pattern":"(a{1000}){1000}"}}"#,
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
