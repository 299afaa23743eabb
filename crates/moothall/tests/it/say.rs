//! User input to a consultation: a brief, added moves, a review before the debates; and the
//! baselines of the debates.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use insta::assert_snapshot;
use nix::unistd::{Uid, User};
use serde_json::{Value, json};

use crate::world::{Ran, World, filtered};

/// A small consultation: three moves, two rounds.
const SMALL: [&str; 10] =
    ["consult", "HLXI", "--verdict", "off", "--model", "demo", "--moves", "3", "--rounds", "2"];

const MINE: &str = "title = \"Sell the idle plant\"\nthesis = \"It costs more than it earns.\"\n";

const WRONG: &str = r#"[{
    "title": "Rent out the laboratory at night",
    "thesis": "Revenue was $9,999 million in FY2025 [F0:Revenue:FY2025].",
    "evidence": ["F0:Revenue:FY2025"]
}]"#;

fn small(world: &World, more: &[&str]) -> Ran {
    world.run(&[&SMALL, more].concat())
}

fn waiting(world: &World, more: &[&str]) -> String {
    let ran = small(world, &[&["--pause-after", "moves"], more].concat());
    assert_eq!(ran.code, Some(3), "{ran}");
    world.only_run()
}

/// Waits for a line on standard error, then sends SIGKILL.
fn kill_at(mut child: Child, words: &str) {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.contains(words)), "nothing says {words}");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn said(moves: &Value) -> Vec<(String, Value)> {
    let moves = moves.as_array().unwrap().iter();
    moves
        .filter(|one| !one["said"].is_null())
        .map(|one| (one["move_id"].as_str().unwrap().to_owned(), one["said"].clone()))
        .collect()
}

#[test]
fn help_of_moves_shows_every_flag() {
    assert_snapshot!(World::new().run(&["moves", "--help"]));
}

#[test]
fn move_reviews_are_applied_and_recorded_in_the_receipt() {
    let world = World::new();
    let ran = small(&world, &["--pause-after", "moves"]);
    assert_eq!(ran.code, Some(3), "{ran}");
    let end: Vec<&str> = ran.stderr.lines().rev().take(2).collect();
    assert_snapshot!("paused", filtered(&end.join("\n")));
    let run = world.only_run();
    let shown = world.run(&["show", &run]);
    let waits = "paused: 3 moves need review before the debates";
    assert!(shown.stdout.contains(waits), "{shown}");
    assert!(shown.stdout.contains("review the moves: moothall moves"), "{shown}");
    assert_eq!(world.run(&["show", &run, "--json"]).json()["waits_for_person"], true);

    assert_eq!(world.run(&["moves", &run, "--write", "drafts"]).code, Some(0));
    let draft = world.read("drafts/m2.toml");
    assert!(draft.starts_with("# m2 by analyst_2\nseal = \""), "{draft}");
    assert!(draft.contains("\ntitle = \"Hold overhead flat"), "{draft}");
    let edited = draft.replace("Hold overhead flat", "Hold overhead level");
    world.write("drafts/m2.toml", &edited);
    world.write("mine.toml", MINE);
    let veto =
        ["moves", &run, "--veto", "m3", "--reason", "We tried it in 2024.", "--by", "Ada Lovelace"];
    assert_eq!(world.run(&veto).code, Some(0));
    let change =
        ["moves", &run, "--edit", "m2=drafts/m2.toml", "--add", "mine.toml", "--by", "Bob"];
    assert_snapshot!("changed", world.run(&change));

    let resumed = world.run(&["resume", &run, "--receipt", "receipt", "--json"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let report = resumed.json();
    let others = said(&report["other_moves"]);
    let all = [said(&report["recommended_moves"]), others].concat();
    let mut all: Vec<(&str, &Value)> = all.iter().map(|(id, said)| (id.as_str(), said)).collect();
    all.sort_by_key(|(id, _)| *id);
    assert_eq!(
        all,
        [
            ("m2", &json!({"said": "edited", "by": "Bob"})),
            ("m3", &json!({"said": "vetoed", "by": "Ada Lovelace", "why": "We tried it in 2024."})),
            ("m4", &json!({"said": "added", "by": "Bob"})),
        ]
    );
    let debated: Vec<&str> = report["policy_scores"]
        .as_array()
        .unwrap()
        .iter()
        .map(|score| score["move_id"].as_str().unwrap())
        .collect();
    assert_eq!(debated, ["m1", "m2", "m4"]);
    let suggested = report["move_suggestions"].as_array().unwrap();
    assert!(suggested[1]["title"].as_str().unwrap().starts_with("Hold overhead level"));
    assert_eq!((&suggested[3]["analyst"], &suggested[3]["move_id"]), (&json!("you"), &json!("m4")));

    let verified = world.run(&["verify", "receipt"]);
    assert_eq!(verified.code, Some(0), "{verified}");
    for words in [
        "changed   m3 vetoed by Ada Lovelace: We tried it in 2024.",
        "changed   m2 edited by Bob",
        "changed   \"Sell the idle plant\" added by Bob",
    ] {
        assert!(verified.stdout.contains(words), "{verified}");
    }
    let changes = world.run(&["verify", "receipt", "--json"]).json();
    assert_eq!(changes["changes"].as_array().unwrap().len(), 3, "{changes}");
    let receipt = world.read("receipt");
    for (before, after) in
        [("Ada Lovelace", "Eve Lovelace"), ("in 2024.", "in 2025."), ("level", "levee")]
    {
        world.write("forged", &receipt.replacen(before, after, 1));
        let forged = world.run(&["verify", "forged"]);
        assert_eq!(forged.code, Some(4), "{before}: {forged}");
    }
    assert_eq!(world.run(&["replay", &run]).code, Some(0));
    let memo = world.run(&["show", &run, "--memo"]).stdout;
    assert!(memo.contains("vetoed by Ada Lovelace: We tried it in 2024."), "{memo}");
}

#[test]
fn a_run_killed_during_or_after_its_review_can_be_resumed() {
    let world = World::new();
    // Many rounds, so the last debate runs long enough to be killed.
    let long = ["--rounds", "20", "--pause-after", "moves", "--parallel-moves", "1"];
    let arguments = [&SMALL[..8], &long].concat();
    kill_at(world.command(&arguments).spawn().unwrap(), "paused: 3 moves need review");
    let run = world.only_run();
    let veto = ["moves", run.as_str(), "--veto", "m1", "--by", "Ada"];
    assert_eq!(world.run(&veto).code, Some(0));
    kill_at(world.command(&["resume", &run]).spawn().unwrap(), "m2: 20 rounds debated");
    // After the review is delivered, moves can no longer be changed.
    let late = world.run(&["moves", &run, "--veto", "m2", "--by", "Ada"]);
    let reviewed = "its moves were already reviewed";
    assert!(late.code == Some(2) && late.stderr.contains(reviewed), "{late}");
    let resumed = world.run(&["resume", &run, "--json", "--receipt", "receipt"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let report = resumed.json();
    assert_eq!(report["policy_scores"].as_array().unwrap().len(), 2);
    assert_eq!(said(&report["other_moves"]).len(), 1);
    assert_eq!(world.run(&["verify", "receipt"]).code, Some(0));
    assert_eq!(world.run(&["replay", &run]).code, Some(0));
}

#[test]
fn resuming_without_a_review_keeps_the_moves() {
    let world = World::new();
    let run = waiting(&world, &[]);
    assert_eq!(world.run(&["moves", &run, "--veto", "m1", "--by", "Ada"]).code, Some(0));
    let undone = world.run(&["moves", &run, "--undo"]);
    assert!(undone.stdout.contains("no changes"), "{undone}");
    let resumed = world.run(&["resume", &run]);
    assert!(resumed.stderr.contains("moves accepted without changes"), "{resumed}");
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let other = World::new();
    let plain = small(&other, &[]);
    assert_eq!(resumed.stdout, plain.stdout);
}

#[test]
fn a_change_without_a_name_is_made_by_the_account() {
    let world = World::new();
    let run = waiting(&world, &[]);
    let vetoed = world.run(&["moves", &run, "--veto", "m1"]);
    assert_eq!(vetoed.code, Some(0), "{vetoed}");
    let account = User::from_uid(Uid::current()).unwrap().unwrap().name;
    assert!(vetoed.stdout.contains(&format!("vetoed by {account}")), "{vetoed}");
}

#[test]
fn an_invalid_move_review_is_refused_with_a_hint() {
    let world = World::new();
    let run = waiting(&world, &[]);
    world.write("empty.toml", "title = \"\"\nthesis = \"It pays.\"\n");
    world.write(
        "two.json",
        "[{\"title\": \"a\", \"thesis\": \"b\"}, {\"title\": \"c\", \"thesis\": \"d\"}]",
    );
    let refused = [
        &["moves", run.as_str(), "--veto", "m9", "--by", "Ada"][..],
        &["moves", &run, "--veto", "m1", "--by", "A\u{1b}da"],
        &["moves", &run, "--edit", "m1", "--by", "Ada"],
        &["moves", &run, "--edit", "m1=missing.toml", "--by", "Ada"],
        &["moves", &run, "--edit", "m1=two.json", "--by", "Ada"],
        &["moves", &run, "--add", "empty.toml", "--by", "Ada"],
        &["moves", &run, "--reason", "because", "--by", "Ada"],
    ]
    .map(|arguments| {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        ran.to_string()
    });
    assert_snapshot!(refused.join("\n\n"));
    let listed = world.run(&["moves", &run, "--json"]).json();
    assert_eq!(listed["changes"], json!([]));
    let other = World::new();
    small(&other, &[]);
    let over = other.run(&["moves", &other.only_run(), "--veto", "m1", "--by", "Ada"]);
    assert!(over.code == Some(2) && over.stderr.contains("--pause-after moves"), "{over}");
}

#[test]
fn user_moves_are_checked_and_scored_like_the_others() {
    let world = World::new();
    world.write("mine.json", WRONG);
    let ran = small(&world, &["--add-moves", "mine.json", "--receipt", "receipt", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran}");
    let report = ran.json();
    let suggested = report["move_suggestions"].as_array().unwrap();
    assert_eq!(suggested.len(), 4);
    assert_eq!((&suggested[3]["move_id"], &suggested[3]["analyst"]), (&json!("m4"), &json!("you")));
    assert_eq!(report["policy_scores"].as_array().unwrap().len(), 4);
    let held = report["other_moves"].as_array().unwrap().last().unwrap();
    assert_eq!((&held["move_id"], &held["rank"]), (&json!("m4"), &Value::Null));
    // The receipt is valid; its verdict is that a person must decide.
    let verified = world.run(&["verify", "receipt"]);
    assert!(verified.code == Some(3) && verified.stdout.contains("receipt is valid"), "{verified}");
    // Without `--move`, all moves that need approval are approved.
    let run = world.only_run();
    let approved = world.run(&["approve", &run, "--by", "Ada"]);
    assert!(approved.code == Some(0) && approved.stdout.contains("approved m4"), "{approved}");
    let again = world.run(&["approve", &run, "--by", "Ada"]);
    let none = "has no moves that need approval";
    assert!(again.code == Some(2) && again.stderr.contains(none), "{again}");
}

#[test]
fn the_brief_is_shown_as_user_text() {
    let world = World::new();
    world.write("brief.md", "Shall we grow abroad?\n\n- No new debt, <b>30%</b> margin.\n");
    let ran = small(&world, &["--brief", "brief.md", "--memo", "memo.md", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let brief = "Shall we grow abroad?\n\n- No new debt, <b>30%</b> margin.";
    assert_eq!(ran.json()["brief"], brief);
    let memo = world.read("memo.md");
    assert!(memo.contains("Shall we grow abroad?"), "{memo}");
    assert!(memo.contains("it is not evidence"), "{memo}");
    assert!(!memo.contains("<b>"), "{memo}");
}

#[test]
fn invalid_review_options_are_refused_before_a_run_is_created() {
    let world = World::new();
    world.write("long.md", &"a word ".repeat(2_000));
    world.write(
        "many.json",
        &format!("[{}]", vec!["{\"title\": \"a\", \"thesis\": \"b\"}"; 16].join(",")),
    );
    let refused = [
        &["--brief", "missing.md"][..],
        &["--brief", "long.md"],
        &["--brief", "a\u{1b}[2Jb"],
        &["--add-moves", "missing.toml"],
        &["--add-moves", "many.json"],
        &["--pause-after", "debate"],
    ]
    .map(|more| {
        let ran = small(&world, more);
        assert_eq!(ran.code, Some(2), "{ran}");
        ran.to_string()
    });
    assert_snapshot!(refused.join("\n\n"));
    assert!(!world.root().join("home/.local").exists());
}

#[test]
fn baseline_scores_take_as_many_calls_as_estimated() {
    let world = World::new();
    world.write("mine.toml", MINE);
    let more = ["--baseline", "--add-moves", "mine.toml", "--brief", "Shall we grow?"];
    let estimated = small(&world, &[&more[..], &["--estimate", "--json"]].concat()).json();
    assert_eq!(
        (&estimated["calls"], &estimated["beside_calls"], &estimated["all_calls"]),
        (&json!(2 + 3 + 4 * 13), &json!(3 + 4 * 3), &json!(2 + 3 + 4 * 13 + 3 + 4 * 3))
    );
    let ran = small(&world, &[&more[..], &["--json", "--memo", "memo.md"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    let report = ran.json();
    let calls = report["calls"].as_u64().unwrap() - report["extra_calls"].as_u64().unwrap();
    assert_eq!(json!(calls), estimated["all_calls"]);
    assert_eq!(report["beside_calls"], estimated["beside_calls"]);
    let nothing = &report["do_nothing"];
    assert_eq!((&nothing["move_id"], &nothing["top_score"]), (&json!("m0"), &json!(120)));
    assert_eq!(nothing["scores_by_agent"].as_object().unwrap().len(), 3);
    assert!(nothing["content"].as_str().unwrap().starts_with("# m0: Do nothing"), "{nothing}");
    assert_eq!(report["policy_scores"].as_array().unwrap().len(), 4);
    let baseline = &report["baseline"];
    assert_eq!(baseline["scores"].as_array().unwrap().len(), 4);
    assert_snapshot!(
        "baseline",
        format!(
            "{:#}",
            json!({
                "top_without_debate": baseline["top_without_debate"],
                "top_after_debate": baseline["top_after_debate"],
                "top_changed": baseline["top_changed"],
                "average_change": baseline["average_change"],
                "moves": baseline["moves"],
            })
        )
    );
    let memo = world.read("memo.md");
    let scores = format!("Doing nothing (m0): score {}/120", nothing["total_score"]);
    assert!(memo.contains(&scores), "{memo}");
    assert!(
        memo.contains("## Was the debate worth it?") && memo.contains("without a debate"),
        "{memo}"
    );
    let run = world.only_run();
    let shown = world.run(&["show", &run, "--move", "m0"]);
    assert!(shown.stdout.contains("score range"), "{shown}");
    assert!(shown.stdout.contains("not debated"), "{shown}");
    assert_eq!(world.run(&["replay", &run]).code, Some(0));
}
