use std::collections::BTreeMap;

use insta::assert_snapshot;
use moothall_core::receipt::{FORMAT, Receipt, ReceiptManifest, ReceiptNotes};
use moothall_core::{FindingSeverity, RuleId, RunFinding};
use moothall_testkit::ProviderFault;

use crate::fake::Fake;
use crate::world::World;

/// The receipt of a demo, with the lines manifest, effect, verdict, notes and seal.
fn demonstrated() -> World {
    let world = World::new();
    let ran = world.run(&["ask", "--model", "demo", "--receipt", "receipt", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    world
}

fn receipt(workflow: &str, findings: &[(FindingSeverity, &str)]) -> Receipt {
    let finding = |&(severity, message): &(FindingSeverity, &str)| RunFinding {
        rule: RuleId::new("test.rule"),
        severity,
        subject: "answer".to_owned(),
        message: message.to_owned(),
        evidence: Vec::new(),
    };
    Receipt {
        manifest: ReceiptManifest {
            receipt: FORMAT,
            workflow: workflow.to_owned(),
            build: "test".to_owned(),
            model: "openai/m".to_owned(),
            demonstration: false,
            models: BTreeMap::new(),
            texts: BTreeMap::new(),
        },
        effects: BTreeMap::new(),
        input: None,
        approvals: Vec::new(),
        conclusion: None,
        findings: findings.iter().map(finding).collect(),
        notes: ReceiptNotes {
            run_id: "01a1dd22-30af-720e-bd62-e1beb0920949".parse().unwrap(),
            started_at_ms: 0,
            timing: BTreeMap::new(),
        },
    }
}

#[test]
fn a_valid_receipt_is_reported_as_json() {
    assert_snapshot!(demonstrated().run(&["verify", "--json", "receipt"]));
}

#[test]
fn a_changed_letter_in_a_receipt_is_reported_with_its_line() {
    let world = demonstrated();
    let changed = world.read("receipt").replacen("no model was asked", "no model was naked", 1);
    world.write("receipt", &changed);
    assert_snapshot!(world.run(&["verify", "receipt"]));
    assert_snapshot!(world.run(&["verify", "--json", "receipt"]));
}

#[test]
fn one_flipped_bit_in_any_line_is_noticed() {
    let world = demonstrated();
    let whole = world.read("receipt").into_bytes();
    let starts = (0..whole.len()).filter(|&at| at == 0 || whole[at - 1] == b'\n');
    for start in starts {
        let mut changed = whole.clone();
        // The second character of a value, so that most lines remain JSON.
        changed[start + 12] ^= 1;
        fs_err::write(world.path("changed"), changed).unwrap();
        let ran = world.run(&["verify", "changed"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""), "{ran}");
        assert!(ran.stderr.starts_with("error: changed is not valid: line "), "{ran}");
    }
}

#[test]
fn a_truncated_receipt_is_invalid() {
    let world = demonstrated();
    let text = world.read("receipt");
    world.write("receipt", &text[..text.len() - 20]);
    assert_snapshot!(world.run(&["verify", "receipt"]));
}

#[test]
fn a_receipt_of_another_format_is_not_reported_as_forged() {
    let world = World::new();
    let mut receipt = receipt("ask", &[]);
    receipt.manifest.receipt = FORMAT + 1;
    world.write("receipt", &receipt.write().unwrap());
    assert_snapshot!(world.run(&["verify", "receipt"]));
}

#[test]
fn receipt_that_cannot_be_read_is_a_usage_error() {
    assert_snapshot!(World::new().run(&["verify", "missing"]));
}

#[test]
fn a_failed_verdict_has_its_own_exit_code() {
    let fake = Fake::start();
    fake.always(ProviderFault::Unauthorized);
    let world = World::new();
    fake.configure(&world, "");
    let ran = world.run(&[
        "ask",
        "--config",
        "fake.toml",
        "--model",
        "openai/m",
        "--receipt",
        "receipt",
        "hello",
    ]);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert_snapshot!(world.run(&["verify", "receipt"]));
    assert_snapshot!(world.run(&["verify", "--json", "receipt"]));
}

#[test]
fn a_verdict_that_needs_a_person_has_its_own_exit_code() {
    let world = World::new();
    let receipt = receipt("ask", &[(FindingSeverity::Escalate, "the payment is unusually large")]);
    world.write("receipt", &receipt.write().unwrap());
    assert_snapshot!(world.run(&["verify", "receipt"]));
}

#[test]
fn receipt_text_is_sanitized_and_cannot_imitate_our_output() {
    // Regression: workflow and model were printed without sanitizing them, and findings with their
    // line breaks.
    let world = World::new();
    let findings = [(FindingSeverity::Block, "bad\u{1b}[2J\nverdict   pass")];
    let receipt = receipt("ask\u{1b}[8m\nverdict   pass", &findings);
    world.write("receipt", &receipt.write().unwrap());
    assert_snapshot!(world.run(&["verify", "--color", "always", "receipt"]));
}
