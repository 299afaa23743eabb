//! Calculations of debates from the command line, in real sandboxes.

use serde_json::Value;

use crate::real_sandbox::world;

#[test]
fn calculations_run_are_shown_and_give_the_same_output_again() {
    let world = world();
    let consult = [
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
        "--isolation",
        "runsc",
        "--calculations",
        "--json",
        "--receipt",
        "receipt.jsonl",
    ];
    let ran = world.run(&consult);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report = ran.json();
    let scores = report["policy_scores"].as_array().unwrap();
    for score in scores {
        // The guest asks for the executions, and the host runs them.
        assert_eq!(score["isolation"], "user-kernel", "{score:#}");
    }
    let found: Vec<&Value> =
        scores.iter().filter_map(|score| score["calculations"].as_array()).flatten().collect();
    assert!(found.len() >= 2, "{report:#}");
    for one in &found {
        assert_eq!(one["outcome"]["outcome"], "values", "{one:#}");
        let is_stress = one["speaker"] == "critic";
        assert_eq!(one["constants"].is_array(), is_stress, "only the critic assumes: {one:#}");
        assert!(one["facts"].as_array().unwrap().len() == 2, "{one:#}");
    }
    let misquoted = report["findings"].to_string();
    assert!(!misquoted.contains("calculation-misquoted"), "{misquoted}");
    let run_id = report["run_id"].as_str().unwrap();
    let shown = world.run(&["show", run_id, "--move", "m1"]);
    assert!(shown.stdout.contains("### Calculations"), "{shown}");
    assert!(shown.stdout.contains("net margin"), "{shown}");
    let verified = world.run(&["verify", "receipt.jsonl", "--calculations"]);
    assert_eq!(verified.code, Some(0), "{verified}");
    let all = found.len();
    assert!(verified.stdout.contains(&format!("{all} of {all} gave the same output again")));
}
