use super::*;

fn check(rule: &'static str, evidence: &str, stdout: &str, expected: &[&str]) {
    let mut finding = RunFinding::new(rule, FindingSeverity::Block, "attempt-1/execute", "differs");
    finding.evidence = vec![evidence.to_owned()];
    assert_eq!(comparison(&finding, stdout), expected);
}

#[test]
fn what_a_contract_expected_is_shown_with_what_the_program_printed() {
    check("contract.pattern", "expected: 42", "x\n41\n\n", &["expected: 42", "got:      41"]);
    check("contract.pattern", "expected: 42", "\n", &["expected: 42", "got:      (nothing)"]);
    // The message of this rule quotes the line that differs.
    check("contract.text", "expected line 2: 3", "2\n4\n", &["expected line 2: 3"]);
    check("input.missing", "line 7", "41\n", &[]);
}

#[test]
fn long_output_beside_an_expectation_is_cut() {
    let printed = "7".repeat(MAX_SHOWN_CHARS + 1);
    let got = format!("got:      {}…", "7".repeat(MAX_SHOWN_CHARS));
    check("contract.pattern", "expected: 42", &printed, &["expected: 42", &got]);
}
