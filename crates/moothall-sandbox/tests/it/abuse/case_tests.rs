use moothall_core::Sha256Hex;
use moothall_core::sandbox::{CapturedOutput, IsolationClass, SandboxAttestation};

use super::*;

const NOTED: Case = case("noted", "", "").notes(&[Note {
    on: EngineName::Runc,
    attempts: &["a door"],
    reach: Reach::Host,
    words: "it has no lock",
}]);

#[track_caller]
fn check(case: Case, exit: ExecutionExit, stdout: &str, expected: &[&str]) {
    let sha256 = Sha256Hex::of(b"");
    let attestation = SandboxAttestation {
        engine: "runc".to_owned(),
        engine_version: String::new(),
        class: IsolationClass::SharedKernel,
        image: String::new(),
        image_sha256: sha256,
        guest_sha256: sha256,
        limits: SandboxLimits::default(),
        held_by: BTreeMap::new(),
        self_tests: Vec::new(),
    };
    let execution = SandboxExecution {
        exit,
        stdout: CapturedOutput { text: stdout.to_owned(), truncated: false },
        stderr: CapturedOutput::default(),
        files: BTreeMap::new(),
        left_behind: Vec::new(),
        attestation,
    };
    let files = BTreeMap::new();
    let seen = Seen { engine: EngineName::Runc, execution: &execution, files: &files };
    assert_eq!(case.problems(&seen), expected);
}

const ZERO: ExecutionExit = ExecutionExit::Exited { code: 0 };

#[test]
fn an_abuse_case_that_is_fully_refused_has_no_problem() {
    check(case("", "", ""), ZERO, "held a door: EPERM\nsaw a lock: True\n", &[]);
}

#[test]
fn an_unexpected_exit_of_an_abuse_case_is_a_problem() {
    let problem = "ended by signal 9; expected exit 0";
    check(case("", "", ""), ExecutionExit::Signalled { signal: 9 }, "", &[problem]);
}

#[test]
fn an_unrefused_action_is_a_problem_unless_it_is_documented() {
    let stdout = "hole a door: 'open'\nsaw a lock: False\n";
    let problems = ["not refused: a door: 'open'", "not so: a lock"];
    check(case("", "", ""), ZERO, stdout, &problems);
    check(NOTED, ZERO, "hole a door: 'open'\n", &[]);
}

#[test]
fn an_outdated_note_about_an_unrefused_action_is_a_problem() {
    check(NOTED, ZERO, "held a door: EPERM\n", &["noted as a hole and refused: a door"]);
}
