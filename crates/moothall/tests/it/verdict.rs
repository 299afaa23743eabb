//! Consultations with a blind panel, end to end, without an API key, a network or an image.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use serde_json::Value;

use crate::serve::{Server, runtime};
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
    let run = world.newest_run();
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
const OUTCOMES: [(&str, &[&str]); 6] = [
    ("one_move_leads", &["--committee", "sure.toml", "--judges", "judges.toml"]),
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
    // As if the model judged without any error of its own.
    let measured = "[[measurement]]\nmodels = [\"demo\"]\nshared_error = 0\nsingle_model = 0\n\
                    single_debate = 0\nset = \"s\"\nset_sha256 = \"\"\ncompanies = 1\n";
    world.write("judges.toml", measured);
    for (name, more) in OUTCOMES {
        let ran = consult(&world, &[more, &["--verdict", "panel"]].concat());
        let wanted = if name == "failed_controls" { 3 } else { 0 };
        assert_eq!(ran.code, Some(wanted), "{name}: {ran}");
        let run = world.newest_run();
        for columns in ["80", "120"] {
            world.set("COLUMNS", columns);
            let shown = world.run(&["show", &run]).stdout;
            let table = verdict_part(&shown);
            let most: usize = columns.parse().unwrap();
            for line in table.lines() {
                assert!(line.chars().count() <= most, "{name}: {line}");
            }
            assert!(!table.contains('\u{1b}'), "{name}");
            let is_one = table.starts_with("Verdict   1 move leads\n");
            assert_eq!(is_one, name == "one_move_leads", "{name}: {table}");
            assert_snapshot!(format!("{name}_{columns}"), table);
        }
        // From the headline to the moves.
        let memo = world.run(&["show", &run, "--memo"]).stdout;
        let (_, behind) = memo.split_once("## Recommendation\n").unwrap();
        let opening: Vec<&str> = behind.split("\n\n").take(4).collect();
        let is_one = behind.trim_start().starts_with("One move leads: ");
        assert_eq!(is_one, name == "one_move_leads", "{name}: {behind}");
        assert_snapshot!(format!("{name}_memo"), opening.join("\n\n"));
        world.set("COLUMNS", "40");
        let shown = world.run(&["show", &run]).stdout;
        // Tier, id, title and score.
        let lead = shown.lines().find(|line| line.starts_with("LEAD ")).map(str::to_owned);
        let lead = lead.unwrap_or_else(|| panic!("{name}: {shown}"));
        assert_eq!(lead.chars().count(), 40, "{name}: {lead}");
    }
}

/// The user's move has neither evidence nor kill criteria that its copy could lose.
#[test]
fn a_missed_control_is_named_in_the_terminal_and_in_the_memo() {
    let mut world = World::new();
    let mine = "[[moves]]\ntitle = \"Close the smallest office\"\n\
                thesis = \"Its work can be done from elsewhere.\"\n";
    world.write("mine.toml", mine);
    let more = ["--verdict", "panel", "--moves", "2", "--add-moves", "mine.toml"];
    let ran = consult(&world, &more);
    assert_eq!(ran.code, Some(0), "{ran}");
    let run = world.newest_run();
    let sign = "! The panel missed 1 of 5 planted controls (weakened copy of m3). Treat the tiers \
                with care.";
    for columns in ["80", "120"] {
        world.set("COLUMNS", columns);
        let table = verdict_part(&world.run(&["show", &run]).stdout);
        let words: Vec<&str> = table.split_whitespace().collect();
        assert!(words.join(" ").contains(sign), "{table}");
        assert_snapshot!(format!("missed_control_{columns}"), table);
    }
    let memo = world.run(&["show", &run, "--memo"]).stdout;
    assert!(memo.contains(&format!("> {sign}\n")), "{memo}");
}

/// From the headline to the first blank line.
fn verdict_part(shown: &str) -> String {
    let (_, behind) = shown.split_once("Verdict   ").unwrap_or_else(|| panic!("{shown}"));
    let (table, _) = behind.split_once("\n\n").unwrap();
    format!("Verdict   {table}\n")
}

/// Parts of the headlines in the terminal, and of the first paragraphs of their memos.
const HEADLINES: [(&str, &str); 5] = [
    ("1 move leads", "One move leads: "),
    (
        " moves lead; the panel cannot tell them apart",
        " moves lead, and their scores are too close",
    ),
    ("doing nothing cannot be told apart from the best moves", "doing nothing"),
    ("no verdict: the panel failed its controls", "There is no verdict: "),
    ("no tiers: fewer than 6 moves were scored", "too few for a reliable order"),
];

/// The view of a run that the web UI shows.
fn web_view(world: &World, run: &str) -> Value {
    let server = Server::start(world, &[]);
    runtime().block_on(server.json(&format!("/api/runs/{run}")))
}

#[test]
fn terminal_memo_and_web_view_have_the_same_headline() {
    let world = World::new();
    let mut headlines = std::collections::BTreeSet::new();
    for more in [
        &["--moves", "2"][..],
        &["--moves", "6"],
        &["--moves", "6", "--panel", "demo/cautious"],
        &["--moves", "6", "--panel", "demo/contrary"],
    ] {
        consult(&world, &[more, &["--rounds", "1", "--verdict", "panel"]].concat());
        let run = world.newest_run();
        let shown = verdict_part(&world.run(&["show", &run]).stdout);
        let headline = shown.lines().next().unwrap().trim_start_matches("Verdict").trim();
        let report = world.run(&["show", &run, "--json"]).json();
        assert_eq!(report["panel_verdict"]["headline"], headline);
        assert_eq!(web_view(&world, &run)["consult"]["verdict"]["headline"], headline);
        let memo = world.run(&["show", &run, "--memo"]).stdout;
        let (_, behind) = memo.split_once("## Recommendation\n\n").unwrap();
        let opening = behind.lines().next().unwrap();
        for (terminal, words) in HEADLINES {
            let is_shown = headline.contains(terminal);
            assert_eq!(opening.contains(words), is_shown, "{headline}: {opening}");
        }
        if let Some((moves, _)) = headline.split_once(" moves lead;") {
            assert!(opening.starts_with(&format!("{moves} moves lead,")), "{headline}: {opening}");
        }
        headlines.insert(headline.to_owned());
    }
    assert!(headlines.len() > 2, "{headlines:?}");
}

#[test]
fn terminal_memo_and_web_view_name_the_same_moves_as_too_close_to_call() {
    let world = World::new();
    consult(&world, &["--verdict", "off", "--moves", "5"]);
    let run = world.newest_run();
    let shown = world.run(&["show", &run]).stdout;
    let pairs: Vec<&str> = shown
        .lines()
        .filter(|line| line.ends_with(": too close to call"))
        .map(|line| line.split_once(" are ").unwrap().0)
        .collect();
    assert!(!pairs.is_empty(), "{shown}");
    let memo = world.run(&["show", &run, "--memo"]).stdout;
    let sentence = format!("\nToo close to call: {}. ", pairs.join("; "));
    assert!(memo.contains(&sentence), "{sentence} is not in {memo}");
    let view = web_view(&world, &run);
    let calls = view["consult"]["close_calls"].as_array().unwrap();
    let name = |call: &Value, which: &str| call[which].as_str().unwrap().to_owned();
    let in_view: Vec<String> = calls
        .iter()
        .map(|call| format!("{} and {}", name(call, "upper"), name(call, "lower")))
        .collect();
    assert_eq!(in_view, pairs);
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
    let warning = report["panel_verdict"]["warning"].as_str().unwrap();
    assert!(warning.contains("missed"), "{warning}");
    assert_eq!(report["panel_verdict"]["stages"], 1, "more debates repair nothing");
    let run = world.newest_run();
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
    check_budget_stops(World::new, |_| true);
}

/// Stops runs by their budget after every wanted number of finished stages. Resumed, they make no
/// call again and end like an undisturbed run in SQLite.
pub(crate) fn check_budget_stops(world: impl Fn() -> World, is_wanted: impl Fn(u64) -> bool) {
    let more = ["--verdict", "full", "--moves", "6", "--rounds", "1", "--again", "3,2", "--json"];
    let ran = consult(&World::new(), &more);
    assert_eq!(ran.code, Some(0), "{ran}");
    let expected = ran.json();
    let parts = ["input", "cache_read", "cache_write_5m", "cache_write_1h", "output"];
    let all: u64 = parts.iter().filter_map(|part| expected["usage"][part].as_u64()).sum();
    let last = expected["panel_verdict"]["stages"].as_u64().unwrap();
    assert!(last > 1, "moves were debated again");
    // Behind the last stage are the forecasts.
    let wanted: Vec<u64> = (0..=last).filter(|stage| is_wanted(*stage)).collect();
    let stopped = stopped_runs(&wanted, all, &more, world);
    for stage in wanted {
        let (world, shown) = &stopped[&stage];
        let run = shown["run_id"].as_str().unwrap();
        if stage > 0 {
            assert_eq!(shown["panel_verdict"]["final"], false);
            let text = world.run(&["show", run]).stdout;
            assert!(text.contains(&format!("stopped after stage {stage}")), "{text}");
        }
        let resumed = world.run(&["resume", run, "--budget-tokens", "900000000", "--json"]);
        assert_eq!(resumed.code, Some(0), "after stage {stage}: {resumed}");
        let report = world.run(&["show", run, "--json"]).json();
        assert_eq!(report["calls"], expected["calls"], "no call is repeated");
        assert_eq!(report["panel_verdict"], expected["panel_verdict"], "after stage {stage}");
    }
}

/// Runs that were stopped by their budget, with what `show` prints about them, by the number of
/// finished stages. A whole run uses `all` tokens; the budgets are found by bisection.
fn stopped_runs(
    wanted: &[u64],
    all: u64,
    more: &[&str],
    new_world: impl Fn() -> World,
) -> BTreeMap<u64, (World, Value)> {
    let mut stopped = BTreeMap::new();
    // Budgets, and how many stages runs with them finished.
    let mut tried: Vec<(u64, u64)> = Vec::new();
    for stage in wanted {
        while !stopped.contains_key(stage) {
            assert!(tried.len() < 30, "no budget stops a run after stage {stage}: {tried:?}");
            let too_small = tried.iter().filter(|(_, finished)| finished < stage);
            let too_large = tried.iter().filter(|(_, finished)| finished > stage);
            let low = too_small.map(|(budget, _)| *budget).max().unwrap_or(0);
            let high = too_large.map(|(budget, _)| *budget).min().unwrap_or(all * 2);
            let budget = u64::midpoint(low, high);
            let world = new_world();
            let cap = budget.to_string();
            let ran = consult(&world, &[more, &["--budget-tokens", &cap]].concat());
            if ran.code == Some(0) {
                tried.push((budget, u64::MAX));
                continue;
            }
            assert_eq!(ran.code, Some(5), "{budget} tokens: {ran}");
            let report = ran.json();
            let shown = world.run(&["show", report["run_id"].as_str().unwrap(), "--json"]).json();
            let finished = shown["panel_verdict"]["stages"].as_u64().unwrap_or_default();
            tried.push((budget, finished));
            stopped.entry(finished).or_insert((world, shown));
        }
    }
    stopped
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
    let report = world.run(&["show", &world.newest_run(), "--json"]).json();
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
    let shown = world.run(&["show", &world.newest_run()]).stdout;
    assert!(shown.contains("no tiers: fewer than 6 moves were scored"), "{shown}");
    assert!(!shown.contains("LEAD") && !shown.contains("rank 1"), "{shown}");
    let report = verdict(&["--moves", "2", "--verdict", "off"]);
    assert_eq!(report["panel_verdict"], Value::Null);
}
