//! Checks the recorded runs that test the web UI's reducer. `cargo xtask codegen` writes them; this
//! fails if the program now produces different events.

use std::collections::BTreeSet;

use moothall_core::{EventEnvelope, SequencedEvent};
use serde_json::Value;

use crate::fake::Fake;
use crate::world::World;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/fixtures");

/// The fixed id of committed runs, because every run has a new one.
const RUN: &str = "019b8e00-0000-7000-8000-000000000001";

/// The events of the run in `world`, with fixed times 100 ms apart.
fn told(world: &World) -> Vec<EventEnvelope> {
    let runs = world.run(&["runs", "--json"]).json();
    let run = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let printed = world.run(&["events", &run, "--json"]).stdout;
    let events = printed.lines().map(|line| serde_json::from_str::<SequencedEvent>(line).unwrap());
    let envelope = |event: SequencedEvent| {
        let (minutes, rest) = (event.seq / 600, event.seq % 600);
        let at = format!("2026-01-05T09:{minutes:02}:{:02}.{}00Z", rest / 10, rest % 10);
        EventEnvelope { seq: event.seq, run_id: RUN.parse().unwrap(), at, body: event.event.body }
    };
    events.map(envelope).collect()
}

/// The events regardless of their order, because debates run concurrently.
fn told_by(lines: &str) -> BTreeSet<String> {
    let without_place = |line: &str| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        let fields = event.as_object_mut().unwrap();
        fields.retain(|name, _| !matches!(name.as_str(), "seq" | "at" | "run_id"));
        event.to_string()
    };
    lines.lines().map(without_place).collect()
}

#[track_caller]
fn check(name: &str, arguments: &[&str]) {
    let world = World::new();
    let ran = world.run(arguments);
    assert!(ran.code.is_some_and(|code| code == 0 || code == 3), "{ran}");
    check_told(name, &world);
}

/// Compares the events of the run in `world` with the committed ones.
#[track_caller]
fn check_told(name: &str, world: &World) {
    let lines: String = told(world)
        .iter()
        .map(|envelope| serde_json::to_string(envelope).unwrap() + "\n")
        .collect();
    let path = format!("{FOLDER}/{name}.ndjson");
    let committed = fs_err::read_to_string(&path).unwrap_or_default();
    if told_by(&committed) == told_by(&lines) {
        return;
    }
    if std::env::var_os("MOOTHALL_CODEGEN").is_some() {
        fs_err::write(&path, lines).unwrap();
        return;
    }
    assert_eq!(told_by(&committed), told_by(&lines), "hint: `cargo xtask codegen` writes {path}");
}

const SMALL: [&str; 13] = [
    "consult",
    "HLXI",
    "--verdict",
    "off",
    "--model",
    "demo",
    "--moves",
    "4",
    "--rounds",
    "3",
    "--isolation",
    "none",
    "--yes",
];

#[test]
fn the_web_fixture_of_a_consultation_is_up_to_date() {
    check("run", &SMALL);
}

#[test]
fn the_web_fixture_of_a_paused_consultation_is_up_to_date() {
    check("paused", &[&SMALL[..], &["--pause-after", "moves"]].concat());
}

#[test]
fn the_web_fixture_of_a_cancelled_consultation_is_up_to_date() {
    let world = World::new();
    let ran = world.run(&[&SMALL[..], &["--pause-after", "moves"]].concat());
    assert_eq!(ran.code, Some(3), "{ran}");
    let runs = world.run(&["runs", "--json"]).json();
    let cancelled = world.run(&["cancel", runs["runs"][0]["run_id"].as_str().unwrap()]);
    assert_eq!(cancelled.code, Some(0), "{cancelled}");
    check_told("cancelled", &world);
}

#[test]
fn the_web_fixture_of_a_failed_consultation_is_up_to_date() {
    let fake = Fake::saying("");
    let world = World::new();
    fake.configure(&world, "");
    let more = ["--config", "fake.toml", "--model", "ollama/qwen3", "--source", "synthetic"];
    let consult =
        ["consult", "HLXI", "--verdict", "off", "--moves", "4", "--isolation", "none", "--yes"];
    let ran = world.run(&[&consult[..], &more].concat());
    assert_eq!(ran.code, Some(4), "{ran}");
    check_told("failed", &world);
}
