//! `moothall diff`.

use insta::{assert_json_snapshot, assert_snapshot};
use serde_json::json;

use crate::scene::{Scene, second_try};
use crate::world::World;

/// Consults HLXI as of a date, and returns the run id.
fn consulted(world: &World, as_of: &str, moves: &str) -> String {
    let small = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "demo",
        "--rounds",
        "1",
        "--yes",
        "--json",
    ];
    let ran = world.run(&[&small[..], &["--as-of", as_of, "--moves", moves]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    ran.json()["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn facts_gaps_scores_and_ranks_of_two_days_are_compared() {
    let world = World::new();
    let before = consulted(&world, "2025-12-31", "5");
    let after = consulted(&world, "2026-08-13", "5");
    let compared = world.run(&["diff", &before, &after, "--json"]).json();
    assert_eq!(compared["same"], false);
    assert_json_snapshot!(compared["diff"]);
    let told = world.run(&["diff", &before, &after]);
    // The first two lines contain ids and times.
    let told: Vec<&str> = told.stdout.lines().skip(2).collect();
    assert_snapshot!(told.join("\n"));
}

#[test]
fn the_same_question_twice_has_no_difference() {
    let world = World::new();
    let runs = [(); 2].map(|()| consulted(&world, "2026-08-13", "5"));
    let compared = world.run(&["diff", &runs[0], &runs[1], "--json"]).json();
    assert_eq!((&compared["same"], &compared["diff"]["moves"]), (&json!(true), &json!([])));
    assert_eq!(compared["diff"]["moves_unchanged"], 5);
    let told = world.run(&["diff", &runs[0], &runs[1]]);
    assert!(told.stdout.ends_with("no differences\n"), "{told}");
}

#[test]
fn moves_of_only_one_consultation_are_listed_as_added_or_removed() {
    let world = World::new();
    let few = consulted(&world, "2026-08-13", "5");
    let many = consulted(&world, "2026-08-13", "6");
    let changes = |before: &str, after: &str| -> Vec<String> {
        let compared = world.run(&["diff", before, after, "--json"]).json();
        let moves = compared["diff"]["moves"].as_array().unwrap().clone();
        let change = |one: &serde_json::Value| one["change"].as_str().unwrap().to_owned();
        moves.iter().map(change).filter(|change| change != "changed").collect()
    };
    assert_eq!(changes(&few, &many), ["appeared"]);
    assert_eq!(changes(&many, &few), ["went"]);
}

#[test]
fn consultations_about_different_companies_are_compared_only_by_force() {
    let world = World::new();
    fs_err::create_dir_all(world.path("papers")).unwrap();
    world.write("papers/plan.md", "Revenue was $12 million in 2025.\n");
    let private = [
        "consult",
        "--verdict",
        "off",
        "--name",
        "Acme Pumps",
        "--source",
        "files",
        "papers",
        "--model",
        "demo",
    ];
    let small = ["--rounds", "1", "--moves", "1", "--yes", "--json"];
    let ran = world.run(&[&private[..], &small[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    let private = ran.json()["run_id"].as_str().unwrap().to_owned();
    let listed = consulted(&world, "2026-08-13", "1");
    assert_snapshot!(world.run(&["diff", &listed, &private]));
    let forced = world.run(&["diff", &listed, &private, "--force", "--json"]);
    assert_eq!(forced.json()["same"], false, "{forced}");
}

#[test]
fn only_consultations_can_be_compared() {
    let world = World::new();
    let run = Scene::new(&world).run(0, "print the first 3 primes", second_try());
    assert_snapshot!(world.run(&["diff", run.as_str(), run.as_str()]));
    assert_snapshot!(world.run(&["diff", "deadbeef", run.as_str()]));
    assert_snapshot!(world.run(&["diff", "--help"]));
}
