//! `moothall prompts`, and committees with their own prompts, memo sections and models.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::serve::{Server, runtime};
use crate::world::World;

const SMALL: [&str; 10] =
    ["consult", "HLXI", "--verdict", "off", "--model", "demo", "--moves", "2", "--rounds", "2"];

const ANALYST: &str = "\
Board of {{company}}: you are {{name}}. {{lens}}
Answer in the required JSON form with exactly {{share}}; cite ids such as {{example}}.
";

const RECOMMENDATION: &str = "\
# What we would do at {{company}}

For the board meeting. Committee: {{committee}}, data as of {{day}}.

{{content}}

> Confidential
";

/// A committee directory with an own analyst prompt and memo section.
fn committee_folder(world: &World) {
    fs_err::create_dir_all(world.path("mine/prompts")).unwrap();
    fs_err::create_dir_all(world.path("mine/memo")).unwrap();
    assert_eq!(world.run(&["committee", "new", "mine/committee.toml"]).code, Some(0));
    world.write("mine/prompts/analyst.md", ANALYST);
    world.write("mine/memo/recommendation.md", RECOMMENDATION);
}

fn is_made(world: &World) -> bool {
    world.root().join("home/.local/share/moothall/moothall.db").exists()
}

/// The answering model of each effect in a receipt.
fn answered_by(receipt: &str, effect: &str) -> String {
    let lines = receipt.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = lines.map(|line| line["record"]["effect"].clone()).find(|one| one["id"] == effect);
    found.unwrap()["result"]["model"].as_str().unwrap().to_owned()
}

#[test]
fn help_of_prompts_shows_its_commands() {
    let world = World::new();
    let pages = [
        &["prompts", "--help"][..],
        &["prompts", "show", "--help"],
        &["prompts", "export", "--help"],
        &["prompts", "check", "--help"],
    ]
    .map(|arguments| world.run(arguments).to_string());
    assert_snapshot!(pages.join("\n\n"));
}

#[test]
fn prompts_are_listed_printed_exported_and_checked() {
    let world = World::new();
    assert_snapshot!("list", world.run(&["prompts", "list"]));
    assert_snapshot!("show", world.run(&["prompts", "show", "propose"]));
    assert_snapshot!("show_several", world.run(&["prompts", "show", "brief"]));
    assert_snapshot!("show_unknown", world.run(&["prompts", "show", "brif"]));
    let exported = world.run(&["prompts", "export", "mine"]);
    assert_eq!(exported.code, Some(0), "{exported}");
    let texts = world.run(&["prompts", "list", "--json"]).json();
    for text in texts["texts"].as_array().unwrap() {
        let file = text["file"].as_str().unwrap();
        assert_eq!(
            world.read(&format!("mine/{file}")),
            world.run(&["prompts", "show", file]).stdout
        );
    }
    // Exported texts are the built-in ones, so nothing is replaced.
    assert_snapshot!("check", world.run(&["prompts", "check", "mine"]));
    assert_ne!(world.run(&["prompts", "export", "mine"]).code, Some(0));
}

#[test]
fn a_committee_directory_runs_resumes_and_verifies_with_its_stored_texts() {
    let world = World::new();
    committee_folder(&world);
    assert_snapshot!("check_own", world.run(&["prompts", "check", "mine"]));
    let paused = ["--committee", "mine", "--pause-after", "moves"];
    let ran = world.run(&[&SMALL[..], &paused].concat());
    assert_eq!(ran.code, Some(3), "{ran}");
    // The stored texts are used, never the files again.
    fs_err::remove_dir_all(world.path("mine")).unwrap();
    let run = world.only_run();
    let resumed = world.run(&["resume", &run, "--receipt", "receipt.jsonl", "--json"]);
    assert!(matches!(resumed.code, Some(0 | 3)), "{resumed}");
    let report = resumed.json();
    assert_eq!(report["input"]["consult"]["committee"]["prompts"]["analyst"], ANALYST);
    assert_eq!(report["move_suggestions"].as_array().unwrap().len(), 2);
    let memo = world.run(&["show", &run, "--memo"]).stdout;
    assert!(memo.contains("## What we would do at Helix Instruments"), "{memo}");
    assert!(memo.contains("\n> Confidential\n"), "{memo}");
    assert!(!memo.contains("## Recommendation"), "{memo}");
    let sha256 = moothall_core::Sha256Hex::of(ANALYST.as_bytes());
    let line = format!("prompts/analyst.md sha256 {sha256}");
    let shown = world.run(&["show", &run]);
    assert!(shown.stdout.contains(&line), "{shown}");
    let verified = world.run(&["verify", "receipt.jsonl"]);
    assert!(matches!(verified.code, Some(0 | 3)), "{verified}");
    assert!(verified.stdout.contains(&line), "{verified}");
    assert_eq!(world.run(&["replay", &run]).code, Some(0));
    // A receipt with another text, or another hash of it, is not valid.
    let receipt = world.read("receipt.jsonl");
    for (from, to) in [("Board of", "Bored of"), (&*sha256.to_string(), &*"0".repeat(64))] {
        world.write("forged.jsonl", &receipt.replace(from, to));
        assert_eq!(world.run(&["verify", "forged.jsonl"]).code, Some(4));
    }
}

#[test]
fn a_broken_placeholder_is_refused_before_the_first_call() {
    let world = World::new();
    committee_folder(&world);
    world.write("mine/prompts/analyst.md", &ANALYST.replace("{{share}}", "{{shares}}"));
    world.write("mine/memo/recommendation.md", "# Ours\n{{content\n");
    assert_snapshot!(world.run(&[&SMALL[..], &["--committee", "mine"]].concat()));
    assert_snapshot!(world.run(&["prompts", "check", "mine"]));
    assert!(!is_made(&world));
}

#[test]
fn each_member_uses_its_own_model_and_every_report_names_it() {
    let world = World::new();
    let made = world.run(&["committee", "new", "mine.toml"]);
    assert_eq!(made.code, Some(0), "{made}");
    let file = world.read("mine.toml");
    let file = file.replacen("id = \"D2\"", "model = \"demo/file\"\nid = \"D2\"", 1);
    let file = file.replacen("id = \"D3\"", "model = \"demo/file\"\nid = \"D3\"", 1);
    world.write("mine.toml", &(file + "\n[inference.F2]\nmodel = \"demo/trend\"\n"));
    let models = ["--model-for", "D2=demo/flag", "--model-for", "critic=demo/critic"];
    let more = [&["--committee", "mine.toml", "--receipt", "receipt.jsonl"], &models[..]].concat();
    assert_snapshot!(
        "member_estimate",
        world.run(&[&SMALL[..], &more[..2], &models, &["--estimate"]].concat())
    );
    let ran = world.run(&[&SMALL[..], &more].concat());
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    let receipt = world.read("receipt.jsonl");
    let asked =
        ["F1", "F2", "analyst_1", "m1/critic/1", "m0/score/D1", "m0/score/D2", "m0/score/D3"];
    let answered = asked.iter().filter(|id| receipt.contains(&format!("\"id\":\"{id}\"")));
    let answered: Vec<String> =
        answered.map(|id| format!("{id} {}", answered_by(&receipt, id))).collect();
    let by = |id: &str, model: &str| format!("{id} {model} (a demonstration, not a model)");
    for one in [
        by("F1", "demo"),
        by("F2", "demo/trend"),
        by("m0/score/D1", "demo"),
        by("m0/score/D2", "demo/flag"),
        by("m0/score/D3", "demo/file"),
    ] {
        assert!(answered.contains(&one), "{one}: {answered:?}");
    }
    let groups = "demo (F1, analyst_1, analyst_2, D1), demo/trend (F2), demo/critic (critic), \
                  demo/flag (D2), demo/file (D3)";
    let run = world.only_run();
    let shown = world.run(&["show", &run]);
    assert!(shown.stdout.contains(groups), "{shown}");
    let memo = world.run(&["show", &run, "--memo"]).stdout;
    assert!(memo.contains(&groups.replace('_', "\\_")), "{memo}");
    let verified = world.run(&["verify", "receipt.jsonl", "--json"]).json();
    assert_eq!(verified["manifest"]["models"]["D2"], "demo/flag");
    assert_eq!(world.run(&["show", &run, "--json"]).json()["models"]["critic"], "demo/critic");
    world.write("forged.jsonl", &receipt.replacen("demo/flag", "demo/real", 1));
    assert_eq!(world.run(&["verify", "forged.jsonl"]).code, Some(4));
}

#[test]
fn an_unknown_member_or_model_is_refused_before_the_first_call() {
    let world = World::new().with("OPENAI_API_KEY", "a-key");
    let refused = ["D9=demo", "critic=openai/gpt-misspelled", "critic=nobody/model", "critic"]
        .map(|model| world.run(&[&SMALL[..], &["--model-for", model]].concat()).to_string());
    assert_snapshot!(refused.join("\n\n"));
    assert!(!is_made(&world));
}

#[test]
fn models_of_members_are_accepted_and_checked_over_http() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let run = runtime().block_on(async {
        let models = json!({
            "D2": "demo/second", "analyst": "demo/analysts", "critic": ["demo", "demo/fallback"],
        });
        let run = server.consult(json!({ "models": models })).await;
        for models in [
            json!({"D9": "demo"}),
            json!({"D2": "x"}),
            json!({"D2": "nobody/x"}),
            json!({"D2": ["demo", "demo"]}),
            json!({"D2": ["demo", 1]}),
            json!({"D2": ["demo", "openai/gpt-5-mini"]}),
        ] {
            let wanted = json!({"workflow": "consult", "ticker": "HLXI", "models": models});
            let refused = server.post("/api/runs", &wanted).await;
            assert!(refused.status().is_client_error(), "{}", refused.text().await.unwrap());
        }
        run
    });
    let report = world.run(&["show", &run, "--json"]).json();
    assert_eq!(report["models"]["D2"], "demo/second");
    assert_eq!(report["models"]["analyst_2"], "demo/analysts");
    assert_eq!(report["models"]["critic"], json!(["demo", "demo/fallback"]));
    assert_eq!(report["models"]["D1"], "demo");
}
