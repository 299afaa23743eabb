//! `moothall committee`.

use insta::assert_snapshot;

use crate::world::World;

#[test]
fn help_of_committee_shows_its_commands() {
    let world = World::new();
    let pages = [
        &["committee", "--help"][..],
        &["committee", "show", "--help"],
        &["committee", "check", "--help"],
        &["committee", "new", "--help"],
    ]
    .map(|arguments| world.run(arguments).to_string());
    assert_snapshot!(pages.join("\n\n"));
}

#[test]
fn the_built_in_committee_is_shown_as_an_editable_file() {
    let world = World::new();
    let shown = world.run(&["committee", "show"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{shown}");
    let made = world.run(&["committee", "new", "mine.toml"]);
    assert_eq!(made.code, Some(0), "{made}");
    assert_eq!(world.read("mine.toml"), shown.stdout);
    assert_snapshot!(world.run(&["committee", "check", "mine.toml"]));
    let as_json = world.run(&["committee", "show", "mine.toml", "--json"]).json();
    assert_eq!(as_json["metrics"][2]["id"], "risk_adjusted_return");
    assert_eq!(as_json, world.run(&["committee", "show", "board", "--json"]).json());
}

#[test]
fn creating_a_committee_never_replaces_a_file() {
    let world = World::new();
    world.write("mine.toml", "mine");
    assert_snapshot!(world.run(&["committee", "new", "mine.toml"]));
    assert_eq!(world.read("mine.toml"), "mine");
}

#[test]
fn every_mistake_in_a_committee_file_is_reported_with_line_and_hint() {
    let world = World::new();
    world.run(&["committee", "new", "mine.toml"]);
    let wrong = world
        .read("mine.toml")
        .replacen("rounds = 10", "round = 10", 1)
        .replacen("lens = ", "lense = ", 2);
    world.write("mine.toml", &wrong);
    assert_snapshot!(world.run(&["committee", "check", "mine.toml"]));
    assert_snapshot!(world.run(&["committee", "check", "mine.toml", "--json"]));
    assert_snapshot!(world.run(&[
        "consult",
        "HLXI",
        "--model",
        "demo",
        "--committee",
        "mine.toml"
    ]));
    assert!(!world.root().join("home/.local").exists());
}

#[test]
fn committee_that_is_not_there_is_a_usage_error() {
    let world = World::new();
    assert_snapshot!(world.run(&["committee", "show", "bord"]));
    assert_snapshot!(world.run(&["committee", "check", "none.toml"]));
}
