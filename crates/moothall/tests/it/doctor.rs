//! `moothall doctor` on a machine with missing parts.

use serde_json::{Value, json};

use crate::world::World;

const ENGINES: [&str; 4] = ["microvm", "runsc", "runc", "crun"];

/// Regression: it printed one line of error and nothing about the rest of the machine.
#[test]
fn doctor_without_an_image_prints_every_row_and_what_is_missing() {
    let world = World::new();
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    for engine in ENGINES {
        assert!(ran.stdout.lines().any(|line| line.starts_with(engine)), "{engine} in {ran}");
    }
    for part in [
        "hint: build the image: `moothall image build python`",
        "images: none; build one with `moothall image build python`\n",
        "runs: file ",
        "guard: works, with overlays",
        "keys: none; set one with `moothall key set PROVIDER`\n",
        "model: none; choose one with `moothall init`, or pass `--model demo`\n",
    ] {
        assert!(ran.stdout.contains(part), "{part} in {ran}");
    }
    let version = env!("CARGO_PKG_VERSION");
    let first = format!("moothall {version}, built from source: /");
    assert!(ran.stdout.starts_with(&first), "{ran}");
    let ran = world.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    let report = ran.json();
    assert_eq!((&report["version"], &report["installed_as"]), (&version.into(), &"source".into()));
    let names: Vec<_> =
        report["engines"].as_array().unwrap().iter().map(|row| &row["engine"]).collect();
    assert_eq!(names, ENGINES);
    let parts = [&report["images"], &report["keys"], &report["model"], &report["runs"]["file"]];
    let file = world.root().join("home/.local/share/moothall/moothall.db");
    assert_eq!(parts, [&json!([]), &json!([]), &Value::Null, &json!(file)], "{ran}");
    let problem = &report["problems"][0];
    assert_eq!(problem["part"], "image python", "{ran}");
    assert_eq!(problem["hint"], "build the image: `moothall image build python`", "{ran}");
}

/// Regression: some rows named a problem and no next step.
#[test]
fn every_engine_that_does_not_work_has_a_next_step() {
    let without_engines = World::new().with("PATH", "/nonexistent");
    for world in [World::new(), without_engines] {
        let ran = world.run(&["doctor"]);
        let lines: Vec<&str> = ran.stdout.lines().collect();
        for engine in ENGINES {
            let row = lines.iter().position(|line| line.starts_with(engine)).unwrap();
            let hint = lines[row + 2].trim_start();
            assert!(hint.starts_with("hint: "), "{engine}: {hint} in {ran}");
        }
        let report = world.run(&["doctor", "--json"]).json();
        for row in report["engines"].as_array().unwrap() {
            assert!(row["problem"].is_string() && row["advice"].is_string(), "{row}");
        }
    }
}

#[test]
fn doctor_names_the_source_of_a_key_and_the_selected_model() {
    let world = World::new()
        .with("OPENAI_API_KEY", "sk-not-a-real-key")
        .with("MOOTHALL_MODEL", "openai/gpt-4.1-mini");
    let ran = world.run(&["doctor"]);
    assert!(ran.stdout.contains("\nkeys: openai ("), "{ran}");
    assert!(ran.stdout.contains("\nmodel: openai/gpt-4.1-mini\n"), "{ran}");
    let report = world.run(&["doctor", "--json"]).json();
    assert_eq!(report["keys"][0]["provider"], "openai", "{report}");
    assert_eq!(report["model"], "openai/gpt-4.1-mini", "{report}");
}

#[test]
fn doctor_without_its_database_still_prints_every_other_row() {
    let world = World::new().with("MOOTHALL_DATABASE_URL", "postgres://u:hunter2@127.0.0.1:1/x");
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    for engine in ENGINES {
        assert!(ran.stdout.lines().any(|line| line.starts_with(engine)), "{engine} in {ran}");
    }
    assert!(ran.stdout.contains("runs: "), "{ran}");
    let ran = world.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    let report = ran.json();
    let problems = report["problems"].as_array().unwrap();
    let parts: Vec<_> = problems.iter().map(|problem| problem["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["image python", "runs"], "{ran}");
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("hunter2"), "{ran}");
}
