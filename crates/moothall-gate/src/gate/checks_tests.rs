use super::*;
use crate::gate::{GateAction, PolicyLayer, PolicyLayerName};

fn policy(more: &str) -> Policy {
    let text = format!(
        "version = 1\n[[check]]\nid = \"tests\"\nrun = [\"python3\", \"-m\", \"unittest\"]\ntimeout = \"90s\"\n{more}"
    );
    Policy::of(&[PolicyLayer::new(PolicyLayerName::Workspace, text)]).unwrap()
}

#[test]
fn a_check_request_contains_the_tree_and_the_command() {
    let check = &policy("").checks[0];
    let file = FileRef::of(b"#!/bin/sh\n");
    let tree = BTreeMap::from([
        ("a.py".parse().unwrap(), (file, false)),
        ("run.sh".parse().unwrap(), (file, true)),
    ]);
    let request = check_request(check, &tree).unwrap();
    assert_eq!(request.argv, ["python3", "-I", "check.py"]);
    assert_eq!(request.image, "python");
    assert_eq!((request.limits.wall_ms, request.limits.cpu_seconds), (90_000, 90));
    assert_eq!(request.inputs.len(), 2);
    let told = &request.sources[&"check.json".parse().unwrap()];
    assert_eq!(told, r#"{"run":["python3","-m","unittest"],"executable":["run.sh"]}"#);
}

#[test]
fn a_draft_check_passes_only_with_exit_code_zero() {
    let ends = [
        (ExecutionExit::Exited { code: 0 }, CheckOutcome::Passed),
        (ExecutionExit::Exited { code: 1 }, CheckOutcome::Failed),
        (ExecutionExit::Exited { code: 127 }, CheckOutcome::NotRun),
        (ExecutionExit::Signalled { signal: 9 }, CheckOutcome::Failed),
        (ExecutionExit::OutOfMemory, CheckOutcome::Failed),
        (ExecutionExit::TimedOut, CheckOutcome::TimedOut),
        (ExecutionExit::SandboxDied { detail: String::new() }, CheckOutcome::NotRun),
    ];
    for (exit, outcome) in ends {
        assert_eq!(check_outcome(&exit), outcome, "{exit}");
    }
}

#[test]
fn a_policy_chooses_the_action_for_a_failed_check_and_for_a_late_one() {
    let policy = policy("on_fail = \"reject\"\non_timeout = \"reject\"\n");
    let path = RelPath::parse("a.py").unwrap();
    let found = |outcome| {
        let results = [CheckResult { id: "tests".to_owned(), outcome }];
        let found = check_findings(&policy, std::iter::once(&path), &results);
        found.into_iter().map(|one| (one.rule, one.instead)).collect::<Vec<_>>()
    };
    let reject = Some(GateAction::Reject);
    assert_eq!(found(CheckOutcome::Passed), []);
    assert_eq!(found(CheckOutcome::Failed), [(GateRule::CheckFailed, reject)]);
    assert_eq!(found(CheckOutcome::TimedOut), [(GateRule::CheckTimeout, reject)]);
    assert_eq!(found(CheckOutcome::NotRun), [(GateRule::GateError, None)]);
}

#[test]
fn build_output_is_not_passed_to_a_check_unless_configured() {
    let handed = |policy: &Policy| {
        let paths = ["src/a.py", "target/x", "web/node_modules/x/y.js", "docs/a.md"];
        let has =
            |path: &&str| policy.includes_file(&policy.checks[0], &RelPath::parse(path).unwrap());
        paths.into_iter().filter(has).collect::<Vec<_>>()
    };
    assert_eq!(handed(&policy("")), ["src/a.py", "docs/a.md"]);
    assert_eq!(handed(&policy("files = [\"src/**\"]\n")), ["src/a.py"]);
    assert_eq!(handed(&policy("without = [\"docs/**\"]\n")).len(), 3);
}
