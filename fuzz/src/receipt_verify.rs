//! No bytes make the verifier panic, and every receipt it accepts is identical to the receipt
//! written from the parsed contents.
//!
//! Input: a digit that selects the case, then
//! - `0`: the bytes of a receipt;
//! - `1`: changes to a genuine receipt, which must all be detected;
//! - `2`: records without their hashes, one per line, with the notes last. The target computes the
//!   hashes, as the forger of a receipt would.

use std::collections::BTreeMap;

use moothall_core::model::{FailureKind, ModelFailure};
use moothall_core::receipt::{
    EffectRecord, EffectTiming, FORMAT, Receipt, ReceiptManifest, ReceiptNotes, VerifiedReceipt,
    verify,
};
use moothall_core::{EffectResult, FindingSeverity, RuleId, RunFinding, RunVerdict, Sha256Hex};

pub fn receipt_verify(data: &[u8]) {
    let [choice, bytes @ ..] = data else { return };
    match choice % 3 {
        0 => check_accepted(bytes),
        1 => check_changed(bytes),
        _ => check_accepted(forged(bytes).as_bytes()),
    }
}

fn check_accepted(bytes: &[u8]) {
    let Ok(VerifiedReceipt { receipt, verdict, .. }) = verify(bytes) else { return };
    assert_eq!(verdict, RunVerdict::of(&receipt.findings));
    assert_eq!(receipt.write().unwrap().as_bytes(), bytes);
}

/// Every three bytes are one change: the position (two bytes) and the new byte.
fn check_changed(bytes: &[u8]) {
    let severity = match bytes.len() % 4 {
        0 => FindingSeverity::Note,
        1 => FindingSeverity::Warn,
        2 => FindingSeverity::Escalate,
        _ => FindingSeverity::Block,
    };
    let genuine = genuine(severity).write().unwrap().into_bytes();
    let mut changed = genuine.clone();
    for change in bytes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % (changed.len() + 1);
        match (change[2], changed.get_mut(at)) {
            (0, Some(_)) => drop(changed.remove(at)),
            (1, Some(byte)) => {
                let byte = *byte;
                changed.insert(at, byte);
            }
            (2, Some(_)) => changed.truncate(at),
            (new, Some(byte)) => *byte = new,
            (new, None) => changed.push(new),
        }
    }
    match verify(&changed) {
        Ok(verified) => {
            assert_eq!(changed, genuine, "a change was not found");
            assert_eq!(verified.verdict, verify(&genuine).unwrap().verdict);
        }
        Err(_) => assert_ne!(changed, genuine, "a genuine receipt was refused"),
    }
}

fn forged(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\n');
    let (records, notes) = text.rsplit_once('\n').unwrap_or(("", text));
    let mut receipt = String::new();
    let mut prev = "null".to_owned();
    let mut head = Sha256Hex::of(b"");
    for record in records.lines() {
        let line = format!("{{\"prev\":{prev},\"record\":{record}}}");
        head = Sha256Hex::of(line.as_bytes());
        prev = format!("\"{head}\"");
        receipt.push_str(&line);
        receipt.push('\n');
    }
    receipt.push_str(&format!("{{\"head\":\"{head}\",\"notes\":{notes}}}\n"));
    let seal = Sha256Hex::of(receipt.as_bytes());
    receipt.push_str(&format!("{{\"sha256\":\"{seal}\"}}\n"));
    receipt
}

fn genuine(severity: FindingSeverity) -> Receipt {
    let id = || "answer".parse().unwrap();
    let failure = ModelFailure::new(FailureKind::Overloaded, "busy").with_status(529);
    let record = EffectRecord {
        request_sha256: Sha256Hex::of(b"request"),
        result: EffectResult::ModelFailed(failure),
    };
    let finding = RunFinding {
        rule: RuleId::new("model.failed"),
        severity,
        subject: "answer".to_owned(),
        message: "overloaded: busy".to_owned(),
        evidence: vec!["line 1".to_owned()],
    };
    Receipt {
        manifest: ReceiptManifest {
            receipt: FORMAT,
            workflow: "ask".to_owned(),
            build: "0.1.0".to_owned(),
            model: "demo".to_owned(),
            demonstration: true,
            models: BTreeMap::new(),
            texts: BTreeMap::new(),
        },
        input: None,
        effects: BTreeMap::from([(id(), record)]),
        approvals: Vec::new(),
        conclusion: None,
        findings: vec![finding],
        notes: ReceiptNotes {
            run_id: "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap(),
            started_at_ms: 1_762_000_000_000,
            timing: BTreeMap::from([(id(), EffectTiming { latency_ms: 812, tries: 2 })]),
        },
    }
}
