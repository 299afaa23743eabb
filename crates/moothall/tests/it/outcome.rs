//! Forecasts of a panel and their outcomes in later filings, without an API key and a network.

use serde_json::Value;

use crate::serve::{Server, runtime};
use crate::world::World;

/// A consultation as of the end of 2024, with forecasts; returns its id.
fn back_test(world: &World) -> String {
    let ran = world.run(&[
        "consult",
        "HLXI",
        "--as-of",
        "2024-12-31",
        "--verdict",
        "panel",
        "--model",
        "demo",
        "--rounds",
        "1",
        "--isolation",
        "none",
        "--yes",
        "--json",
    ]);
    assert!(ran.code == Some(0) || ran.code == Some(3), "{ran}");
    ran.json()["run_id"].as_str().unwrap().to_owned()
}

fn length(value: &Value) -> usize {
    value.as_array().unwrap().len()
}

#[test]
fn forecasts_are_resolved_by_the_first_later_filing_and_scored() {
    let world = World::new();
    let run = back_test(&world);
    // No prompt has a figure that was filed later: revenue of 2024 was filed in 2025.
    for call in ["analyst_1", "m1/d1/panel/P1", "forecast/P1"] {
        let shown = world.run(&["calls", &run, call]).stdout;
        assert!(shown.contains("$1,143 million"), "{shown}");
        assert!(!shown.contains("1,189") && !shown.contains("1188600"), "{shown}");
    }
    let calls = world.run(&["calls", &run, "--json"]).json();
    let calls = calls["calls"].as_array().unwrap().iter();
    assert_eq!(calls.filter(|call| call["purpose"] == "forecast").count(), 5);

    let early = ["outcome", "record", &run, "--as-of", "2025-02-01", "--json"];
    let early = world.run(&early).json();
    assert_eq!(length(&early["outcomes"]), 0, "{early:#}");
    let recorded = ["outcome", "record", &run, "--as-of", "2025-03-31", "--json"];
    let recorded = world.run(&recorded).json();
    let outcomes = recorded["outcomes"].as_array().unwrap();
    assert!(!outcomes.is_empty(), "{recorded:#}");
    for outcome in outcomes {
        assert_eq!(outcome["filed"], "2025-02-27", "{outcome:#}");
    }
    assert_eq!(
        length(&recorded["questions"]),
        outcomes.len() + recorded["open"].as_u64().unwrap() as usize
    );

    // The catalog does not say what the model has learned, and the answers were filed before the run.
    let score = world.run(&["outcome", "score", "--json"]).json();
    assert_eq!(score["report"]["headline"], Value::Null, "{score:#}");
    let text = world.run(&["outcome", "score"]);
    assert!(text.stdout.contains("too few to judge"), "{text}");
    let with_knowledge = |until: &str| {
        let catalog = format!("[model.\"demo\"]\nknowledge_until = \"{until}\"\n");
        world.write("catalog.toml", &catalog);
        let path = world.path("catalog.toml");
        world.write_config("moothall.toml", &format!("catalog = \"{}\"\n", path.display()));
        world.run(&["outcome", "score", &run, "--json"]).json()["report"].clone()
    };
    let counted = with_knowledge("2024-06-30");
    assert_eq!(counted["headline"]["forecasts"], 5 * outcomes.len(), "{counted:#}");
    assert_eq!(counted["possibly_known"], Value::Null);
    let known = with_knowledge("2025-06-30");
    assert_eq!(known["headline"], Value::Null, "{known:#}");
    assert_eq!(known["possibly_known"]["forecasts"], 5 * outcomes.len());
}

#[test]
fn a_taken_move_is_noted_and_unusable_requests_are_refused() {
    let world = World::new();
    let run = back_test(&world);
    let noted = ["outcome", "record", &run, "--move", "m2", "--taken", "2025-03-01"];
    let ran = world.run(&noted);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "m2 was taken on 2025-03-01\n"), "{ran}");
    let ran = world.run(&["outcome", "record", &run, "--move", "m99", "--taken", "2025-03-01"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("no move `m99`"), "{ran}");
    let ran = world.run(&["outcome", "score"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("moothall outcome record"), "{ran}");
    let plain = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "demo",
        "--moves",
        "1",
        "--rounds",
        "1",
        "--isolation",
        "none",
        "--yes",
        "--json",
    ];
    let plain = world.run(&plain).json()["run_id"].as_str().unwrap().to_owned();
    let ran = world.run(&["outcome", "record", &plain]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("has no verdict of a panel"), "{ran}");
}

#[test]
fn announced_moves_of_the_lead_are_answered_by_notes_after_a_year_and_counted_by_tier() {
    let world = World::new();
    let run = back_test(&world);
    let record = |more: &[&str]| {
        let ran = world.run(&[&["outcome", "record", &run], more].concat());
        assert_eq!(ran.code, Some(0), "{ran}");
        ran
    };
    let early = record(&["--as-of", "2025-12-31", "--json"]).json();
    let questions = early["announcements"].as_array().unwrap();
    assert!(questions.len() >= 2, "{early:#}");
    let asked = world.run(&["calls", &run, "forecast/P1"]).stdout;
    for question in questions {
        assert_eq!(question["last_day"], "2025-12-31", "{question:#}");
        let title = question["title"].as_str().unwrap();
        assert!(asked.contains(&format!("8-K or 6-K by 2025-12-31: {title}")), "{asked}");
    }
    let move_of = |at: usize| questions[at]["move_id"].as_str().unwrap().to_owned();
    let noted = record(&["--move", &move_of(0), "--taken", "2025-05-01"]);
    assert!(noted.stdout.contains("was taken on 2025-05-01"), "{noted}");
    // Announced moves are not counted before the others can be.
    let early = record(&["--as-of", "2025-12-31", "--json"]).json();
    assert_eq!(length(&early["announced"]), 0, "{early:#}");
    let open = record(&["--as-of", "2026-01-01"]).stdout;
    assert!(open.contains(&format!("`--move {} --not-taken`", move_of(1))), "{open}");
    let noted = record(&["--move", &move_of(1), "--not-taken"]);
    assert!(noted.stdout.contains("was not taken until "), "{noted}");
    let late = record(&["--as-of", "2026-01-01", "--json"]).json();
    let happened: Vec<&Value> =
        late["announced"].as_array().unwrap().iter().map(|one| &one["happened"]).collect();
    assert_eq!(happened, [true, false], "{late:#}");
    // Filings of an earlier day answer nothing, and take no answer back.
    let again = record(&["--as-of", "2025-12-31", "--json"]).json();
    assert_eq!(again["announced"], late["announced"]);
    let report = world.run(&["outcome", "score", "--json"]).json()["report"].clone();
    let lead = &report["by_tier"]["lead"];
    assert_eq!((&lead["taken"], &lead["not_taken"]), (&1.into(), &1.into()), "{report:#}");
    assert_eq!(lead["moves"], questions.len(), "{report:#}");
    assert_eq!(report["by_tier"]["behind"]["taken"], 0, "{report:#}");
    assert_eq!(report["announcements"], Value::Null, "the catalog has no date for the model");
    assert_eq!(report["announcements_possibly_known"]["forecasts"], 2 * 5, "{report:#}");
    let text = world.run(&["outcome", "score"]).stdout;
    assert!(text.contains("moves taken, as noted: lead 1 of "), "{text}");
    // A corrected note takes its answer back.
    record(&["--move", &move_of(0), "--not-taken"]);
    let open = record(&["--as-of", "2025-12-31", "--json"]).json();
    assert_eq!(length(&open["announced"]), 1, "{open:#}");
    for wrong in
        [&["--move", "m2"][..], &["--not-taken"], &["--taken", "2025-05-01", "--not-taken"]]
    {
        let ran = world.run(&[&["outcome", "record", &run], wrong].concat());
        assert_eq!(ran.code, Some(2), "{ran}");
    }
}

#[test]
fn recorded_outcomes_are_in_backups_and_in_the_http_api() {
    let world = World::new();
    let run = back_test(&world);
    let recorded = world.run(&["outcome", "record", &run, "--json"]).json();
    let score = world.run(&["outcome", "score", "--json"]).stdout;
    let saved = world.run(&["backup", "runs.tar"]);
    assert_eq!(saved.code, Some(0), "{saved}");
    world.run(&["runs", "rm", &run, "--yes"]);
    assert_eq!(world.run(&["outcome", "score"]).code, Some(2));
    let restored = world.run(&["restore", "runs.tar", "--force"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(world.run(&["outcome", "score", "--json"]).stdout, score);

    let server = Server::start(&world, &[]);
    let shown = runtime().block_on(async {
        server.get(&format!("/api/runs/{run}/forecasts")).await.text().await.unwrap()
    });
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let rows = shown["questions"].as_array().unwrap();
    assert_eq!(rows.len(), length(&recorded["questions"]) + length(&recorded["announcements"]));
    let first = &recorded["outcomes"][0];
    let row = rows.iter().find(|row| row["id"] == first["question"]).unwrap();
    assert_eq!(row["happened"], first["happened"]);
    let filed = format!(" million, filed on {} (", first["filed"].as_str().unwrap());
    assert!(row["basis"].as_str().unwrap().contains(&filed), "{row:#}");
    assert!(row["chance"].as_u64().unwrap() <= 1_000, "{row:#}");
    assert_eq!(
        rows.iter().filter(|row| row["happened"] != Value::Null).count(),
        length(&recorded["outcomes"]) + length(&recorded["announced"])
    );
}
