//! `moothall fork` end to end: what is reused, what is refused, and what the receipt proves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use insta::assert_snapshot;
use moothall_testkit::ProviderBehaviour;
use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};

use crate::consult::careless;
use crate::fake::Fake;
use crate::scene::{Scene, second_try};
use crate::serve::{Server, body, runtime};
use crate::world::{Ran, World};

/// Runs a small consultation and returns its id.
fn parent(world: &World, more: &[&str]) -> String {
    let small = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "demo",
        "--moves",
        "2",
        "--rounds",
        "2",
        "--json",
    ];
    let ran = world.run(&[&small, more].concat());
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    ran.json()["run_id"].as_str().unwrap().to_owned()
}

fn fork(world: &World, run: &str, more: &[&str]) -> Ran {
    world.run(&[&["fork", run, "--json", "--yes"], more].concat())
}

/// The effects of a run for which a model replied.
fn replied(world: &World, run: &str) -> Vec<String> {
    let printed = world.run(&["events", run, "--json"]);
    let events = printed.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let replied = events.filter(|event| event["event"] == "model_replied");
    replied.map(|event| event["effect_id"].as_str().unwrap().to_owned()).collect()
}

fn is_of_debate(id: &str) -> bool {
    id.starts_with("m1/") || id.starts_with("m2/") || id.starts_with("m0/")
}

/// Only calls of debates were answered.
#[track_caller]
fn check_only_debates(replied: &[String]) {
    assert!(!replied.is_empty() && replied.iter().all(|id| is_of_debate(id)), "{replied:?}");
}

#[test]
fn help_of_fork_shows_every_flag_and_an_example() {
    assert_snapshot!(World::new().run(&["fork", "--help"]));
}

#[test]
fn a_fork_with_another_critic_repeats_no_call_before_the_debates() {
    let fake = Fake::start();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    fake.respond_with(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        ProviderBehaviour::text("Nothing speaks against it.")
    });
    let world = World::new().with("OPENAI_API_KEY", "key");
    fake.configure(&world, "");
    let run = parent(&world, &["--receipt", "parent.jsonl"]);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let critic = ["--from", "debates", "--set", "critic=openai/m", "--config", "fake.toml"];
    let ran = fork(&world, &run, &[&critic[..], &["--receipt", "fork.jsonl"]].concat());
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    let report = ran.json();
    let forked = report["run_id"].as_str().unwrap();
    assert_eq!(report["parent"], json!({"run_id": run, "from": "debates"}));
    assert!(asked.load(Ordering::SeqCst) > 0);
    let replied = replied(&world, forked);
    check_only_debates(&replied);
    assert_eq!(report["calls"], replied.len());
    // The text of the moves is the same.
    let shown = |run: &str| world.run(&["show", run, "--move", "m1", "--json"]).json();
    assert_eq!(shown(&run)["proposal"], shown(forked)["proposal"]);
    for receipt in ["parent.jsonl", "fork.jsonl"] {
        let verified = world.run(&["verify", receipt]);
        assert!(matches!(verified.code, Some(0 | 3)), "{verified}");
    }
    let verified = world.run(&["verify", "fork.jsonl", "--json"]).json();
    assert_eq!(
        (&verified["parent"]["run_id"], &verified["parent"]["compared"]),
        (&json!(run), &json!(true))
    );
    let replayed = world.run(&["replay", forked]);
    assert_eq!(replayed.code, Some(0), "{replayed}");
    let text = world.run(&["show", forked]).stdout;
    assert!(text.contains(&format!("fork of    {run} from the debates")), "{text}");
    assert!(text.contains("critic: demo → openai/m"), "{text}");
    assert!(world.run(&["runs"]).stdout.contains("(fork of "));
}

/// Regression: the key of the new provider was sent to the parent's server.
#[test]
fn a_base_url_is_inherited_only_by_models_of_its_provider() {
    let fake = Fake::start();
    fake.respond_with(careless);
    let world = World::new().with("OPENAI_API_KEY", "key");
    let url = fake.url();
    let model = ["--model", "openai/m", "--base-url", &url, "--moves", "1", "--rounds", "1"];
    let ran = world
        .run(&[&["consult", "HLXI", "--verdict", "off", "--json", "--yes"], &model[..]].concat());
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    let asked = fake.stats().answered;
    let ran = fork(&world, &run, &["--from", "debates", "--model", "demo"]);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    assert_eq!(fake.stats().answered, asked);
    let ran = fork(&world, &run, &["--from", "debates", "--model", "openai/n"]);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    assert!(fake.stats().answered > asked);
}

#[test]
fn a_fork_from_the_moves_proposes_and_debates_again() {
    let world = World::new();
    let run = parent(&world, &[]);
    let ran = fork(&world, &run, &["--from", "moves", "--brief", "Only moves without new debt."]);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    let report = ran.json();
    assert_eq!(report["brief"], "Only moves without new debt.");
    let replied = replied(&world, report["run_id"].as_str().unwrap());
    assert!(replied.iter().any(|id| id == "analyst_1"), "{replied:?}");
    assert!(!replied.iter().any(|id| id.starts_with('F')), "{replied:?}");
}

/// Runs a consultation of one move and one round with a panel.
fn judged(world: &World, more: &[&str]) -> String {
    let small = ["consult", "HLXI", "--model", "demo", "--moves", "1", "--rounds", "1", "--json"];
    let ran = world.run(&[&small[..], &["--verdict", "panel"], more].concat());
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    ran.json()["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_fork_gives_a_run_without_a_panel_a_verdict_of_one() {
    let world = World::new();
    let run = parent(&world, &[]);
    // Analysts write moves for a panel within limits, so they must write them again.
    let refused = fork(&world, &run, &["--from", "debates", "--verdict", "panel"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("hint: use `--from moves`"), "{refused}");
    let panel = ["--from", "moves", "--verdict", "panel", "--receipt", "fork.jsonl"];
    let ran = fork(&world, &run, &panel);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    let report = ran.json();
    assert!(report["panel_verdict"].is_object(), "{report}");
    let shown = world.run(&["show", report["run_id"].as_str().unwrap()]).stdout;
    assert!(shown.contains("verdict: off → panel"), "{shown}");
    let verified = world.run(&["verify", "fork.jsonl"]);
    assert!(matches!(verified.code, Some(0 | 3)), "{verified}");
}

/// Regression: the fork had no panel, without saying so.
#[test]
fn a_fork_with_another_committee_is_judged_like_its_parent() {
    let world = World::new();
    let verdict = |run: &str| {
        let board = ["--from", "debates", "--committee", "board", "--set", "rounds=1"];
        let ran = fork(&world, run, &board);
        assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
        ran.json()["panel_verdict"].clone()
    };
    assert!(verdict(&judged(&world, &[])).is_object());
    assert!(verdict(&parent(&world, &[])).is_null());
}

#[test]
fn the_model_of_a_fork_replaces_the_models_of_the_panel_unless_it_names_others() {
    let world = World::new();
    let run = judged(&world, &["--panel", "demo/a"]);
    let judges = |more: &[&str]| {
        let ran = fork(&world, &run, &[&["--from", "debates"], more].concat());
        assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
        ran.json()["panel_verdict"]["panel"]["members"][0]["model"].clone()
    };
    assert_eq!(judges(&[]), "demo/a");
    assert_eq!(judges(&["--model", "demo/b"]), "demo/b");
    assert_eq!(judges(&["--model", "demo/b", "--panel", "demo/c"]), "demo/c");
}

#[test]
fn an_edited_move_is_debated_and_recorded_in_the_receipt() {
    let world = World::new();
    let run = parent(&world, &[]);
    world.write("m2.toml", "title = \"Sell the idle plant\"\nthesis = \"It costs too much.\"\n");
    let edit = ["--from", "debates", "--edit-move", "m2=m2.toml", "--by", "Ada"];
    let ran = fork(&world, &run, &[&edit[..], &["--receipt", "fork.jsonl"]].concat());
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    let forked = ran.json()["run_id"].as_str().unwrap().to_owned();
    let shown = world.run(&["show", &forked, "--move", "m2", "--json"]).json();
    assert_eq!(shown["proposal"]["title"], "Sell the idle plant");
    check_only_debates(&replied(&world, &forked));
    let verified = world.run(&["verify", "fork.jsonl"]);
    assert!(verified.stdout.contains("changed   m2 edited by Ada"), "{verified}");
}

#[test]
fn a_fork_that_cannot_reuse_its_parent_is_refused_with_a_hint() {
    let world = World::new();
    let run = parent(&world, &[]);
    world.write("move.toml", "title = \"Sell it\"\nthesis = \"It costs too much.\"\n");
    let program = Scene::new(&world).run(1, "print the first 20 primes", second_try());
    let refused = |run: &str, more: &[&str], message: &str, hint: &str| {
        let ran = fork(&world, run, more);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(message) && ran.stderr.contains(hint), "{ran}");
    };
    let brief = ["--from", "debates", "--brief", "Grow."];
    refused(&run, &brief, "the changes affect `analyst_1`", "hint: use `--from moves`");
    let inference = ["--from", "moves", "--set", "inference=demo/other"];
    refused(&run, &inference, "the changes affect `F1`", "hint: change only later stages");
    let unknown = ["--from", "debates", "--edit-move", "m9=move.toml", "--by", "Ada"];
    refused(&run, &unknown, "no move `m9`", "hint: available moves: m1, m2");
    let early = ["--from", "moves", "--edit-move", "m1=move.toml", "--by", "Ada"];
    refused(&run, &early, "proposes all moves again", "hint: use `--from debates`");
    let unheard = ["--from", "debates", "--verdict", "off", "--panel", "demo/a"];
    refused(&run, &unheard, "a run without a panel", "hint: use `--verdict full`");
    let unmeasured = ["--from", "debates", "--judges", "judges.toml"];
    refused(&run, &unmeasured, "a run without a panel has no judges", "hint: use `--verdict full`");
    let program = program.as_str();
    refused(program, &["--from", "moves"], "it is not a consultation", "hint: start a new run");
    let stopped = world.run(&[
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "demo",
        "--moves",
        "2",
        "--budget-tokens",
        "9000",
        "--json",
    ]);
    assert_eq!(stopped.code, Some(5), "{stopped}");
    let stopped = stopped.json()["run_id"].as_str().unwrap().to_owned();
    let from = ["--from", "debates"];
    refused(&stopped, &from, "the run stopped before its debates", "hint: continue it first");
}

#[test]
fn an_interrupted_fork_resumes_without_repeating_inherited_calls() {
    let world = World::new();
    let run = parent(&world, &[]);
    let stopped = fork(&world, &run, &["--from", "debates", "--budget-tokens", "60000"]);
    assert_eq!(stopped.code, Some(5), "{stopped}");
    let forked = stopped.json()["run_id"].as_str().unwrap().to_owned();
    let more = ["--budget-tokens", "90000000", "--receipt", "fork.jsonl"];
    let resumed = world.run(&[&["resume", &forked], &more[..]].concat());
    assert!(matches!(resumed.code, Some(0 | 3)), "{resumed}");
    check_only_debates(&replied(&world, &forked));
    let verified = world.run(&["verify", "fork.jsonl"]);
    assert!(verified.stdout.contains("its results are those of the parent"), "{verified}");
}

#[test]
fn a_fork_is_verified_without_its_parent_and_against_the_parents_receipt() {
    let world = World::new();
    let run = parent(&world, &["--receipt", "parent.jsonl"]);
    let ran = fork(&world, &run, &["--from", "debates", "--receipt", "fork.jsonl"]);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    let elsewhere = World::new();
    for name in ["parent.jsonl", "fork.jsonl"] {
        elsewhere.write(name, &world.read(name));
    }
    let alone = elsewhere.run(&["verify", "fork.jsonl"]);
    assert!(alone.stdout.contains("parent not found"), "{alone}");
    let both = elsewhere.run(&["verify", "fork.jsonl", "--parent", "parent.jsonl"]);
    assert!(both.stdout.contains("its results are those of the parent"), "{both}");
    let wrong = elsewhere.run(&["verify", "fork.jsonl", "--parent", "fork.jsonl"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
}

#[test]
fn a_fork_starts_over_http_and_names_its_parent() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let run = server.consult(json!({})).await;
        server.over(&run).await;
        let path = format!("/api/runs/{run}/fork");
        let wanted = json!({"from": "debates", "set": {"rounds": "1"}});
        let answer = server.post(&path, &wanted).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
        let started = body(answer).await;
        let forked = started["run_id"].as_str().unwrap();
        let view = server.over(forked).await;
        let changes = json!([{"setting": "rounds", "before": "2", "after": "1"}]);
        let expected = json!({"run_id": run, "from": "debates", "changes": changes});
        assert_eq!(view["about"]["parent"], expected);
        let listed = server.json("/api/runs").await;
        assert_eq!(listed["runs"][0]["parent"], run.as_str());
        for (wanted, hint) in [
            (json!({"from": "debates", "brief": "Grow."}), "use `--from moves`"),
            (json!({"from": "debates", "set": {"colour": "blue"}}), "expected KEY=VALUE"),
            (json!({"from": "debates", "verdict": "off", "repeat": 2}), "set `verdict` to `full`"),
        ] {
            let refused = server.post(&path, &wanted).await;
            assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
            let problem = body(refused).await;
            assert!(problem["hint"].as_str().unwrap().contains(hint), "{problem}");
        }
    });
}

/// Regression: a run that needs the version that made it was shown as unfinished, without its moves.
#[test]
fn a_finished_run_whose_journal_leads_to_no_outcome_is_not_called_unfinished() {
    let world = World::new();
    let run = parent(&world, &[]);
    let address =
        format!("sqlite://{}/home/.local/share/moothall/moothall.db", world.root().display());
    runtime().block_on(async {
        let mut file = SqliteConnection::connect(&address).await.unwrap();
        let removed = sqlx::query("DELETE FROM journal WHERE effect_id = 'F1'");
        assert_eq!(removed.execute(&mut file).await.unwrap().rows_affected(), 1);
        file.close().await.unwrap();
    });
    for command in
        [&["show", &run][..], &["report", &run], &["fork", &run, "--from", "debates", "--yes"]]
    {
        let ran = world.run(command);
        assert_eq!(ran.code, Some(4), "{ran}");
        assert!(ran.stderr.contains("cannot reconstruct the consultation"), "{ran}");
        assert!(ran.stderr.contains("hint: if another version of moothall executed it"), "{ran}");
    }
}
