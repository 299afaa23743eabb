use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::model::{ModelReply, StopReason, TokenUsage, UsageBasis};
use crate::{FindingSeverity, MicroUsd, RuleId};

fn finding(severity: FindingSeverity) -> RunFinding {
    RunFinding {
        rule: RuleId::new("output.schema"),
        severity,
        subject: "answer".to_owned(),
        message: "count is missing".to_owned(),
        evidence: vec!["line 1".to_owned()],
    }
}

fn receipt(findings: Vec<RunFinding>) -> Receipt {
    let id = |text: &str| text.parse::<EffectId>().unwrap();
    let record = |text: &str| EffectRecord {
        request_sha256: Sha256Hex::of(text.as_bytes()),
        result: EffectResult::ModelReplied(ModelReply {
            fallback: None,
            text: text.to_owned(),
            stop: StopReason::End,
            model: "gpt-5-mini".to_owned(),
            usage: TokenUsage { input: 9, output: 2, ..TokenUsage::default() },
            usage_basis: UsageBasis::Reported,
            cost_micro_usd: Some(MicroUsd::new(7)),
        }),
    };
    Receipt {
        manifest: ReceiptManifest {
            receipt: FORMAT,
            workflow: "ask".to_owned(),
            build: "0.1.0".to_owned(),
            model: "openai/gpt-5-mini".to_owned(),
            demonstration: false,
            models: BTreeMap::new(),
            texts: BTreeMap::new(),
        },
        effects: BTreeMap::from([
            (id("answer/ask-2"), record("two")),
            (id("answer"), record("one")),
        ]),
        input: None,
        approvals: Vec::new(),
        conclusion: None,
        findings,
        notes: ReceiptNotes {
            run_id: "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap(),
            started_at_ms: 1_762_000_000_000,
            timing: BTreeMap::from([(id("answer"), EffectTiming { latency_ms: 812, tries: 2 })]),
        },
    }
}

#[test]
fn a_receipt_reads_back_and_gives_its_verdict() {
    let receipt = receipt(vec![finding(FindingSeverity::Note), finding(FindingSeverity::Block)]);
    let verified = verify(receipt.write().unwrap().as_bytes()).unwrap();
    assert_eq!(verified.receipt, receipt);
    assert_eq!(verified.verdict, RunVerdict::Fail);
}

#[test]
fn equal_runs_have_the_same_head_despite_different_times_and_ids() {
    let mut later = receipt(Vec::new());
    later.notes.run_id = "019a85c1-0000-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap();
    later.notes.started_at_ms += 5;
    later.notes.timing.clear();
    let head = |receipt: &Receipt| verify(receipt.write().unwrap().as_bytes()).unwrap().head;
    assert_eq!(head(&receipt(Vec::new())), head(&later));
}

#[test]
fn every_flipped_bit_is_found() {
    let text = receipt(vec![finding(FindingSeverity::Warn)]).write().unwrap();
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            assert!(
                verify(&bytes).is_err(),
                "bit {bit} of byte {at} ({:?})",
                text.as_bytes()[at] as char
            );
        }
    }
}

#[test]
fn a_changed_record_is_reported_at_the_line_that_breaks_the_chain() {
    let text = receipt(Vec::new()).write().unwrap().replacen("\"input\":9", "\"input\":8", 1);
    let fault = verify(text.as_bytes()).unwrap_err();
    assert_eq!(fault.line, 3);
    assert!(matches!(fault.problem, ReceiptProblem::BrokenChain { .. }), "{fault}");
}

#[test]
fn a_forged_verdict_is_detected_even_with_recomputed_hashes() {
    // The forger changes the verdict and recomputes every hash.
    let honest = receipt(Vec::new()).write().unwrap();
    let mut forged = String::new();
    let mut prev = None;
    for line in honest.lines().filter(|line| line.contains("\"record\"")) {
        let ReceiptLine { record, .. } = serde_json::from_str::<ReceiptLine>(line).unwrap();
        let record = match record {
            ReceiptRecord::Verdict(_) => ReceiptRecord::Verdict(RunVerdict::Fail),
            other => other,
        };
        prev = Some(push_line(&mut forged, &ReceiptLine { prev, record }).unwrap());
    }
    let fault = verify(forged.as_bytes()).unwrap_err();
    assert_eq!(
        fault.problem,
        ReceiptProblem::WrongVerdict { written: RunVerdict::Fail, derived: RunVerdict::Pass }
    );
}

#[test]
fn a_receipt_cut_at_any_line_is_incomplete() {
    let text = receipt(vec![finding(FindingSeverity::Warn)]).write().unwrap();
    let lines = text.lines().count();
    for kept in 0..lines {
        let cut: String = text.split_inclusive('\n').take(kept).collect();
        let fault = verify(cut.as_bytes()).unwrap_err();
        assert_eq!(fault, ReceiptFault { line: kept + 1, problem: ReceiptProblem::Incomplete });
    }
}

#[test]
fn a_receipt_with_data_after_its_end_is_refused() {
    let text = receipt(Vec::new()).write().unwrap() + "{}\n";
    assert_eq!(verify(text.as_bytes()).unwrap_err().problem, ReceiptProblem::Trailing);
}

#[test]
fn a_receipt_of_a_newer_format_is_reported_as_such() {
    let mut newer = receipt(Vec::new());
    newer.manifest.receipt = FORMAT + 1;
    assert_eq!(
        verify(newer.write().unwrap().as_bytes()).unwrap_err().problem,
        ReceiptProblem::OtherFormat(FORMAT + 1)
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(verify(&bytes).is_err());
    }
}
