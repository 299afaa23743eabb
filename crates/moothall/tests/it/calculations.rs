//! Calculations in debates without a sandbox: they are recorded as not run.

use serde_json::Value;

use crate::world::{Ran, World};

const CONSULT: [&str; 11] = [
    "consult",
    "HLXI",
    "--model",
    "demo",
    "--moves",
    "2",
    "--rounds",
    "2",
    "--verdict",
    "off",
    "--yes",
];

fn consult(world: &World, more: &[&str]) -> Ran {
    world.run(&[&CONSULT, more].concat())
}

/// The calculations of all debates in a report.
fn calculations(report: &Value) -> Vec<&Value> {
    let scores = report["policy_scores"].as_array().unwrap();
    scores.iter().filter_map(|score| score["calculations"].as_array()).flatten().collect()
}

#[test]
fn without_a_sandbox_a_calculation_is_recorded_as_not_run_and_the_debate_ends() {
    let world = World::new();
    let none = ["--isolation", "none"];
    let more = ["--calculations", "--json", "--receipt", "receipt.jsonl", "--memo", "memo.md"];
    let ran = consult(&world, &[&none[..], &more].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report = ran.json();
    let found = calculations(&report);
    assert!(found.len() >= 2, "each debate has one: {report:#}");
    for one in found {
        assert_eq!(one["outcome"]["outcome"], "not-run", "{one:#}");
        assert_eq!(one["outcome"]["why"], "no sandbox for calculations");
    }
    assert!(report["policy_scores"][0]["rounds_done"] == 2);
    let verified = world.run(&["verify", "receipt.jsonl", "--calculations"]);
    assert_eq!(verified.code, Some(0), "{verified}");
    assert!(verified.stdout.contains("0 of 0 gave the same output again; "), "{verified}");
    let memo = world.read("memo.md");
    assert!(memo.contains("### Calculations"), "{memo}");
}

#[test]
fn calculations_are_off_unless_they_are_requested() {
    let world = World::new();
    let ran = consult(&world, &["--isolation", "none", "--json"]);
    assert!(calculations(&ran.json()).is_empty());
    assert!(!ran.stdout.contains("X0:"));
}

#[test]
fn calculations_change_no_number_of_calls() {
    let world = World::new();
    let calls = |more: &[&str]| {
        let estimate =
            consult(&world, &[more, &["--isolation", "none", "--estimate", "--json"]].concat());
        estimate.json()["all_calls"].clone()
    };
    assert_eq!(calls(&["--calculations"]), calls(&[]));
}

#[test]
fn a_run_with_calculations_needs_a_sandbox_before_it_starts() {
    let world = World::new();
    let ran = consult(&world, &["--calculations"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.stderr.contains("no sandbox for calculations"), "{ran}");
    assert!(ran.stderr.contains("hint: "), "{ran}");
    let runs = world.run(&["runs", "--json"]).json();
    assert_eq!(runs["runs"], serde_json::json!([]), "nothing was started");
}
