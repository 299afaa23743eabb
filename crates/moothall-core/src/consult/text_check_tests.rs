use serde_json::Value;

use super::super::Proposal;
use super::super::support::{claiming, evidence, made_up, proposal};
use super::*;

fn a_move(written: Value) -> Move {
    let proposal: Proposal = serde_json::from_value(written).unwrap();
    Move { move_id: "m1".to_owned(), analyst: "analyst_1".to_owned(), proposal }
}

fn rules(check: &TextCheck) -> Vec<(String, FindingSeverity)> {
    check.findings.iter().map(|found| (found.rule.to_string(), found.severity)).collect()
}

#[test]
fn a_move_whose_numbers_are_right_is_clean() {
    let check = TextCheck::of_move(&evidence(), &a_move(proposal("bicycles")));
    let support = SupportCount { supported: 1, total: 1 };
    assert_eq!(check, TextCheck { findings: Vec::new(), support });
}

#[test]
fn an_invalid_or_unknown_evidence_id_is_a_bad_citation() {
    let mut written = proposal("bicycles");
    written["evidence"] =
        serde_json::json!(["Revenue 2025", "F0:Revenue:FY1999", "F0:Revenue:FY2025"]);
    let check = TextCheck::of_move(&evidence(), &a_move(written));
    let bad = ("claims.bad-citation".to_owned(), FindingSeverity::Escalate);
    assert_eq!(rules(&check), [bad.clone(), bad]);
}

#[test]
fn findings_are_sorted_by_severity() {
    let thesis =
        "It could add 7% to revenue. Revenue was $1,350 million in FY2025 [F0:Revenue:FY2025].";
    let check = TextCheck::of_move(&evidence(), &a_move(claiming("bicycles", thesis)));
    assert_eq!(
        rules(&check),
        [
            ("claims.wrong-value".to_owned(), FindingSeverity::Escalate),
            ("claims.projection".to_owned(), FindingSeverity::Warn),
        ]
    );
    assert_eq!(check.support, SupportCount { supported: 0, total: 2 });
    assert_eq!(check.weight(), (1, 2));
}

#[test]
fn numbers_from_synthetic_evidence_are_counted_but_not_flagged() {
    let thesis = "Revenue was $1,350 million in FY2025 [F0:Revenue:FY2025]. Buy the shares.";
    let check = TextCheck::of_move(&made_up(), &a_move(claiming("bicycles", thesis)));
    assert_eq!(rules(&check), [("claims.advice".to_owned(), FindingSeverity::Escalate)]);
    assert_eq!(check.support, SupportCount { supported: 0, total: 1 });
}
