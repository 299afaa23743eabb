//! Consultations with a blind panel, end to end, without an API key, a network or an image.

use insta::assert_snapshot;
use serde_json::Value;

use crate::world::{Ran, World};

/// Fifteen moves in short debates.
const CONSULT: [&str; 7] = ["consult", "HLXI", "--model", "demo", "--yes", "--isolation", "none"];

fn consult(world: &World, more: &[&str]) -> Ran {
    let rounds: &[&str] = if more.contains(&"--rounds") { &[] } else { &["--rounds", "2"] };
    world.run(&[&CONSULT, rounds, more].concat())
}

fn estimated(world: &World, more: &[&str]) -> u64 {
    let estimate = consult(world, &[more, &["--estimate", "--json"]].concat()).json();
    estimate["all_calls"].as_u64().unwrap()
}

fn calls(report: &Value) -> u64 {
    report["calls"].as_u64().unwrap() - report["extra_calls"].as_u64().unwrap()
}

fn only_run(world: &World) -> String {
    let runs = world.run(&["runs", "--json"]).json();
    runs["runs"][0]["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_panel_judges_every_move_and_makes_the_estimated_calls() {
    let world = World::new();
    let ran = consult(&world, &["--verdict", "panel", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(calls(&report), estimated(&world, &["--verdict", "panel"]));
    let verdict = &report["panel_verdict"];
    assert_eq!(verdict["check"], "passed", "{verdict:#}");
    assert_eq!(verdict["panel"]["label"], "single-model");
    assert_eq!(verdict["estimates"].as_array().unwrap().len(), 16);
    assert_eq!(verdict["controls"].as_array().unwrap().len(), 5);
    let lead = verdict["tiers"][0]["moves"].as_array().unwrap();
    for one in report["recommended_moves"].as_array().unwrap() {
        assert!(lead.contains(&one["move_id"]), "{one:#}");
    }
    assert_eq!(report["policy_scores"].as_array().unwrap().len(), 15);
}

#[test]
fn the_best_moves_are_debated_again_and_every_output_shows_the_tiers() {
    let world = World::new();
    let ran = consult(
        &world,
        &[
            "--verdict",
            "full",
            "--memo",
            "memo.md",
            "--receipt",
            "receipt.json",
            "--artifacts",
            "out",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_snapshot!(ran.stdout);
    let run = only_run(&world);
    let report = world.run(&["show", &run, "--json"]).json();
    assert!(calls(&report) <= estimated(&world, &["--verdict", "full"]));
    assert!(report["panel_verdict"]["stages"].as_u64().unwrap() >= 2);
    let memo = world.read("memo.md");
    assert!(memo.contains("What this verdict rests on"), "{memo}");
    let checked = world.run(&["verify", "receipt.json"]);
    assert_eq!(checked.code, Some(0), "{checked}");
    let shown = world.run(&["show", &run]);
    assert!(shown.stdout.contains("Verdict"), "{shown}");
    let refused = world.run(&["approve", &run, "--verdict", "--by", "ada"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("did not fail its controls"), "{refused}");
}

#[test]
fn contradicting_requests_are_refused_with_a_hint() {
    let world = World::new();
    for more in [["--verdict", "off", "--again", "8"], ["--verdict", "panel", "--again", "8"]] {
        let ran = consult(&world, &more);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains("hint: use `--verdict full`"), "{ran}");
    }
}

#[test]
fn a_committee_file_can_have_a_panel() {
    let world = World::new();
    let built_in = board_without_panel(&world);
    let panel = ["P1", "P2", "P3"]
        .map(|id| format!("\n[[panel]]\nid = \"{id}\"\nname = \"{id}\"\nlens = \"Judge.\"\nmodel = \"demo/{id}\"\n"))
        .join("");
    let verdict = "\n[verdict]\nagain = []\nrounds_again = 1\nlead = 0.8\n";
    world.write("mine.toml", &format!("{built_in}{panel}{verdict}"));
    let checked = world.run(&["committee", "check", "mine.toml"]);
    assert_eq!(checked.code, Some(0), "{checked}");
    assert!(checked.stdout.contains("blind panel: 3 panel members"), "{checked}");
    assert!(!checked.stderr.contains("warning"), "{checked}");
    let ran = consult(&world, &["--committee", "mine.toml", "--moves", "6", "--json"]);
    let verdict = &ran.json()["panel_verdict"];
    assert_eq!(verdict["panel"]["label"], "independent", "{ran}");
    assert_eq!(verdict["stages"], 1);
    let shown = world.run(&["committee", "show", "mine.toml"]).stdout;
    assert!(shown.contains("lead = 0.8\n") && shown.contains("[[panel]]"), "{shown}");
    let wrong = format!("{built_in}{panel}\n[verdict]\nleed = 0.8\n");
    world.write("wrong.toml", &wrong);
    let checked = world.run(&["committee", "check", "wrong.toml"]);
    assert!(checked.stderr.contains("did you mean `lead`?"), "{checked}");
}

/// The built-in committee as a file without its panel and plan.
fn board_without_panel(world: &World) -> String {
    let built_in = world.run(&["committee", "show"]).stdout;
    let (head, rest) = built_in.split_once("\n\n# The blind panel").unwrap();
    let (_, metrics) = rest.split_once("\n\n# Metrics").unwrap();
    format!("{head}\n\n# Metrics{metrics}")
}

/// A run with another outcome for each headline and sign.
const OUTCOMES: [(&str, &[&str]); 5] = [
    ("two_moves_lead", &["--committee", "sure.toml"]),
    ("several_moves_lead", &[]),
    ("doing_nothing_leads", &["--panel", "demo/cautious"]),
    ("few_controls", &["--committee", "few.toml"]),
    ("failed_controls", &["--panel", "demo/contrary"]),
];

#[test]
fn every_headline_and_sign_fits_into_80_and_120_columns() {
    let mut world = World::new();
    let built_in = board_without_panel(&world);
    world.write("sure.toml", &format!("{built_in}\n[verdict]\nagain = []\nlead = 0.5\n"));
    let few = "\n[verdict]\nagain = []\ncontrols = { known_bad = 1, weakened = 1 }\n";
    world.write("few.toml", &format!("{built_in}{few}"));
    for (name, more) in OUTCOMES {
        let ran = consult(&world, &[more, &["--verdict", "panel"]].concat());
        let wanted = if name == "failed_controls" { 3 } else { 0 };
        assert_eq!(ran.code, Some(wanted), "{name}: {ran}");
        let run = only_run(&world);
        for columns in ["80", "120"] {
            world.set("COLUMNS", columns);
            let shown = world.run(&["show", &run]).stdout;
            let table = verdict_part(&shown);
            let most: usize = columns.parse().unwrap();
            for line in table.lines() {
                assert!(line.chars().count() <= most, "{name}: {line}");
            }
            assert!(!table.contains('\u{1b}'), "{name}");
            assert_snapshot!(format!("{name}_{columns}"), table);
        }
    }
}

/// From the headline to the first blank line.
fn verdict_part(shown: &str) -> String {
    let (_, behind) = shown.split_once("Verdict   ").unwrap_or_else(|| panic!("{shown}"));
    let (table, _) = behind.split_once("\n\n").unwrap();
    format!("Verdict   {table}\n")
}

#[test]
fn a_failed_panel_recommends_nothing_until_a_person_approves_it_and_keeps_its_sign() {
    let world = World::new();
    let more = ["--verdict", "full", "--panel", "demo/contrary", "--memo", "memo.md", "--json"];
    let ran = consult(&world, &more);
    assert_eq!(ran.code, Some(3), "{ran}");
    let report = ran.json();
    assert_eq!(report["recommended_moves"], serde_json::json!([]));
    assert_eq!(report["panel_verdict"]["check"], "failed");
    assert_eq!(report["panel_verdict"]["stages"], 1, "more debates repair nothing");
    let run = only_run(&world);
    let sign = "✗ The panel missed";
    assert!(world.read("memo.md").contains(sign), "{}", world.read("memo.md"));
    assert!(world.run(&["show", &run]).stdout.contains(sign));
    for format in ["html", "md"] {
        let told = world.run(&["report", &run, "--format", format]);
        assert!(told.stdout.contains(sign), "{told}");
    }
    let told = world.run(&["report", &run, "--format", "pdf", "--output", "memo.pdf"]);
    assert_eq!(told.code, Some(0), "{told}");
    assert!(fs_err::read(world.path("memo.pdf")).unwrap().starts_with(b"%PDF"));
    let approved = world.run(&["approve", &run, "--verdict", "--by", "ada", "--note", "we agree"]);
    assert_eq!(approved.code, Some(0), "{approved}");
    let shown = world.run(&["show", &run]).stdout;
    assert!(shown.contains(sign) && shown.contains("Approved by ada: we agree"), "{shown}");
    let report = world.run(&["show", &run, "--json"]).json();
    assert!(!report["recommended_moves"].as_array().unwrap().is_empty());
    assert_eq!(report["panel_verdict"]["approved"], true);
    let again = world.run(&["approve", &run, "--verdict", "--by", "bob"]);
    assert_eq!(again.code, Some(2), "{again}");
    assert!(again.stderr.contains("already approved by ada"), "{again}");
    let shown = world.run(&["show", &run, "--receipt", "receipt"]);
    assert_eq!(shown.code, Some(0), "{shown}");
    assert_eq!(world.run(&["verify", "receipt"]).code, Some(0));
    assert_eq!(world.run(&["replay", &run]).code, Some(0));
}

#[test]
fn a_budget_stop_in_every_stage_resumes_without_repeated_calls_and_with_the_same_tiers() {
    let more = ["--verdict", "full", "--moves", "6", "--rounds", "1", "--again", "3,2"];
    let whole = World::new();
    let ran = consult(&whole, &[&more[..], &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    let expected = ran.json();
    let parts = ["input", "cache_read", "cache_write_5m", "cache_write_1h", "output"];
    let all: u64 = parts.iter().filter_map(|part| expected["usage"][part].as_u64()).sum();
    let mut stages = std::collections::BTreeSet::new();
    for percent in [45, 65, 80, 90, 96] {
        let world = World::new();
        let budget = (all * percent / 100).to_string();
        let paused = consult(&world, &[&more[..], &["--budget-tokens", &budget]].concat());
        assert_eq!(paused.code, Some(5), "{percent} %: {paused}");
        let run = only_run(&world);
        let shown = world.run(&["show", &run, "--json"]).json();
        let stage = shown["panel_verdict"]["stages"].as_u64().unwrap_or_default();
        stages.insert(stage);
        if stage > 0 {
            assert_eq!(shown["panel_verdict"]["final"], false);
            let text = world.run(&["show", &run]).stdout;
            assert!(text.contains(&format!("stopped after stage {stage}")), "{text}");
        }
        let resumed = world.run(&["resume", &run, "--budget-tokens", "900000000", "--json"]);
        assert_eq!(resumed.code, Some(0), "{percent} %: {resumed}");
        let report = world.run(&["show", &run, "--json"]).json();
        assert_eq!(report["calls"], expected["calls"], "no call is repeated");
        assert_eq!(report["panel_verdict"], expected["panel_verdict"], "{percent} %");
    }
    assert!(stages.len() >= 3, "stops before and after stages: {stages:?}");
}

#[test]
fn two_runs_of_the_same_moves_are_compared_by_their_verdicts() {
    let world = World::new();
    for _ in 0..2 {
        consult(&world, &["--verdict", "panel", "--moves", "6"]);
    }
    let listed = world.run(&["runs", "--json"]).json();
    let id = |at: usize| listed["runs"][at]["run_id"].as_str().unwrap().to_owned();
    let compared = world.run(&["diff", &id(1), &id(0)]);
    let told = "Stability  repeatable in 2 verdicts of the same moves";
    assert!(compared.stdout.contains(told), "{compared}");
    let stability = &world.run(&["diff", &id(1), &id(0), "--json"]).json()["diff"]["stability"];
    assert_eq!((&stability["top3_overlap"], &stability["tau"]), (&1000.into(), &1000.into()));
    assert_eq!(stability["contradictions"], 0);
    consult(&world, &["--verdict", "panel", "--moves", "7"]);
    let listed = world.run(&["runs", "--json"]).json();
    let other = listed["runs"][0]["run_id"].as_str().unwrap();
    let compared = world.run(&["diff", &id(0), other]);
    assert!(!compared.stdout.contains("Stability"), "other moves: {compared}");
}

#[test]
fn a_repeated_verdict_reports_its_stability_and_makes_at_most_the_estimated_calls() {
    let world = World::new();
    let more = ["--verdict", "panel", "--moves", "6", "--repeat", "2"];
    let ran = consult(&world, &[&more[..], &["--receipt", "receipt.jsonl"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stdout.contains("Stability  repeatable in 2 verdicts of the same moves"), "{ran}");
    let report = world.run(&["show", &only_run(&world), "--json"]).json();
    assert_eq!(calls(&report), estimated(&world, &more));
    assert_eq!(report["panel_verdict"]["stability"]["tau"], 1000);
    assert_eq!(world.run(&["verify", "receipt.jsonl"]).code, Some(0));
    let off = consult(&world, &["--verdict", "off", "--repeat", "2"]);
    assert_eq!(off.code, Some(2), "{off}");
}

#[test]
fn the_record_of_each_model_counts_the_controls_of_all_stored_runs() {
    let world = World::new();
    let none = world.run(&["panel"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "no run with a panel\n"), "{none}");
    assert!(none.stderr.contains("moothall consult HLXI --model demo"), "{none}");
    assert_eq!(world.run(&["panel", "--json"]).json(), serde_json::json!({ "models": [] }));
    let small = ["--verdict", "panel", "--moves", "6", "--rounds", "1"];
    consult(&world, &small);
    consult(&world, &[&small[..], &["--panel", "demo", "--panel", "demo/contrary"]].concat());
    consult(&world, &["--verdict", "off", "--moves", "1", "--rounds", "1"]);
    let records = world.run(&["panel", "--json"]).json()["models"].clone();
    let counted = |at: usize, what: &str| records[at][what].as_u64().unwrap();
    assert_eq!(
        (&records[0]["model"], &records[1]["model"]),
        (&"demo".into(), &"demo/contrary".into())
    );
    // Five members, then three of them; five controls each.
    assert_eq!((counted(0, "runs"), counted(0, "planted")), (2, 5 * 5 + 3 * 5), "{records:#}");
    assert_eq!((counted(1, "runs"), counted(1, "planted")), (1, 2 * 5), "{records:#}");
    assert!(counted(0, "share") > 800 && counted(1, "share") < 500, "{records:#}");
    assert!(counted(1, "low") <= counted(1, "share") && counted(1, "share") < counted(1, "high"));
    let table = world.run(&["panel"]).stdout;
    assert!(table.contains("demo/contrary") && table.contains("not a reliable judge"), "{table}");
    // A committee that names the weak model for its panel.
    assert_eq!(world.run(&["committee", "new", "mine.toml"]).code, Some(0));
    let file = world.read("mine.toml").replacen(
        "id = \"P2\"",
        "model = \"demo/contrary\"\nid = \"P2\"",
        1,
    );
    world.write("mine.toml", &file);
    let checked = world.run(&["committee", "check", "mine.toml"]);
    assert_eq!(checked.code, Some(0), "{checked}");
    assert!(checked.stderr.contains("`demo/contrary` is a weak judge: "), "{checked}");
    assert!(!checked.stderr.contains("`demo` is a weak judge"), "{checked}");
    let report = world.run(&["committee", "check", "mine.toml", "--json"]).json();
    assert!(report["warnings"].to_string().contains("weak judge"), "{report:#}");
}

#[test]
fn a_new_run_has_a_panel_unless_it_is_turned_off_and_a_few_moves_are_debated_once() {
    let world = World::new();
    let verdict = |more: &[&str]| {
        let ran = consult(&world, &[more, &["--rounds", "1", "--json"]].concat());
        assert_eq!(ran.code, Some(0), "{ran}");
        ran.json()
    };
    let report = verdict(&["--moves", "6"]);
    assert_eq!(report["panel_verdict"]["check"], "passed", "{report:#}");
    assert!(report["panel_verdict"]["stages"].as_u64().unwrap() > 1, "{report:#}");
    let plan = &report["input"]["consult"]["committee"]["verdict"];
    assert_eq!((&plan["forecasts"], &plan["rounds_again"]), (&true.into(), &1.into()), "{plan:#}");
    let report = verdict(&["--moves", "2"]);
    assert_eq!(report["panel_verdict"]["stages"], 1, "{report:#}");
    assert_eq!(report["recommended_moves"].as_array().unwrap().len(), 2);
    assert_eq!(calls(&report), estimated(&world, &["--moves", "2", "--rounds", "1"]));
    let shown = world.run(&["show", &only_run(&world)]).stdout;
    assert!(shown.contains("no tiers: fewer than 6 moves were scored"), "{shown}");
    assert!(!shown.contains("LEAD") && !shown.contains("rank 1"), "{shown}");
    let report = verdict(&["--moves", "2", "--verdict", "off"]);
    assert_eq!(report["panel_verdict"], Value::Null);
}
