//! `moothall calls`: the call log of consultations, programs and edits, and single calls.

use moothall_testkit::{ProviderBehaviour, ProviderCall};
use serde_json::{Value, json};

use crate::consult::careless;
use crate::fake::Fake;
use crate::scene::{Scene, second_try};
use crate::serve::{Server, runtime};
use crate::world::World;

const FAKE: [&str; 4] = ["--config", "fake.toml", "--model", "openai/gpt-4.1-mini"];

/// Looks like a credential in a documented vendor format.
const TOKEN: &str = concat!("ghp_", "a8K2mQ5xR7tW3yZ9bN4cV6dF1gH0jL2pS8uE");

/// Like [`careless`], but the critic's first answer is invalid and its second one has a credential.
fn sloppy(call: &ProviderCall) -> ProviderBehaviour {
    let body = call.body();
    let fields = &body["response_format"]["json_schema"]["schema"]["properties"];
    if fields.get("objections").is_none() {
        return careless(call);
    }
    let messages = body["messages"].as_array().map_or(0, Vec::len);
    let is_first = messages <= 2;
    ProviderBehaviour::text(match is_first {
        true => "I object.".to_owned(),
        false => json!({ "message": format!("Why? {TOKEN}"), "objections": [], "withdrawn": [] })
            .to_string(),
    })
}

fn consulted() -> (World, String) {
    let fake = Fake::start();
    fake.respond_with(sloppy);
    let world = World::new();
    fake.configure(&world, "");
    let small = ["consult", "HLXI", "--verdict", "off", "--moves", "1", "--rounds", "2", "--yes"];
    let ran = world.run(&[&small[..], &FAKE].concat());
    assert_eq!(ran.code, Some(3), "{ran}");
    let runs = world.run(&["runs", "--json"]).json();
    (world, runs["runs"][0]["run_id"].as_str().unwrap().to_owned())
}

fn micros(amount: &Value) -> u64 {
    let (whole, part) = amount.as_str().unwrap().split_once('.').unwrap();
    format!("{whole}{part:0<6}").parse().unwrap()
}

fn sum(parts: &Value) -> u64 {
    parts.as_array().unwrap().iter().map(|one| one["cost_micro_usd"].as_u64().unwrap()).sum()
}

#[test]
fn sums_of_calls_by_role_move_and_model_equal_the_bill() {
    let (world, run) = consulted();
    let shown = world.run(&["show", &run, "--json"]).json();
    let bill = micros(&shown["cost_usd"]);
    assert!(bill > 0);
    let log = world.run(&["calls", &run, "--json"]).json();
    for division in ["roles", "moves", "models", "stages", "results"] {
        assert_eq!(sum(&log["all"][division]), bill, "{division}");
    }
    assert_eq!(sum(&log["calls"]), bill);
    for (division, name) in [("roles", "name"), ("stages", "name"), ("models", "name")] {
        let costs = |parts: &Value| -> Vec<(String, u64)> {
            let part = |one: &Value| {
                (one[name].as_str().unwrap().to_owned(), one["cost_micro_usd"].as_u64().unwrap())
            };
            parts.as_array().unwrap().iter().map(part).collect()
        };
        assert_eq!(costs(&log["all"][division]), costs(&shown["costs"][division]));
    }
    let calls = log["calls"].as_array().unwrap();
    assert_eq!(log["all"]["total"]["calls"], calls.len());
    for call in calls {
        assert!(call["attempts"].as_u64() == Some(1), "{call}");
        assert!(call["started_at_ms"].as_u64().unwrap() > 1_600_000_000_000, "{call}");
        assert!(call["prompt_tokens"].as_u64().unwrap() > 0, "{call}");
    }
    let lines = world.run(&["calls", &run, "--jsonl"]).stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, *calls);
}

#[test]
fn calls_are_filtered_sorted_and_limited() {
    let (world, run) = consulted();
    let names = |flags: &[&str]| -> Vec<String> {
        let log = world.run(&[&["calls", &run, "--json"], flags].concat()).json();
        let name = |call: &Value| call["call"].as_str().unwrap().to_owned();
        log["calls"].as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(
        names(&["--role", "critic", "--round", "1"]),
        ["m1/round-1/critic", "m1/round-1/critic/ask-2"]
    );
    assert_eq!(names(&["--result", "rejected", "--role", "critic"]), ["m1/round-1/critic"]);
    assert_eq!(names(&["--retries", "--stage", "debate"]), ["m1/round-1/critic/ask-2"]);
    assert_eq!(names(&["--text", "i OBJECT"]), ["m1/round-1/critic"]);
    assert_eq!(names(&["--role", "D2", "--stage", "score"]), ["m1/score/D2"]);
    assert_eq!(names(&["--model", "openai/other"]), Vec::<String>::new());
    assert_eq!(names(&["--sort", "cost", "--limit", "2"]).len(), 2);
    let costs = world.run(&["calls", &run, "--json", "--sort", "cost"]).json();
    let costs: Vec<u64> = costs["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["cost_micro_usd"].as_u64().unwrap())
        .collect();
    assert!(costs.is_sorted_by(|one, next| one >= next), "{costs:?}");
    let none = world.run(&["calls", &run, "--move", "m99"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "no calls\n"), "{none}");
    assert!(none.stderr.contains("all of them: moothall calls"), "{none}");
    let table = world.run(&["calls", &run, "--role", "critic"]).stdout;
    assert!(table.contains("m1/round-1/critic/ask-2"), "{table}");
    assert!(table.contains("rejected: "), "{table}");
    assert!(table.contains("by role   critic $"), "{table}");
}

#[test]
fn a_call_is_shown_with_its_prompt_and_answer_and_without_credentials() {
    let (world, run) = consulted();
    let detail = world.run(&["calls", &run, "m1/round-1/critic/ask-2", "--json"]).json();
    assert_eq!(detail["call"]["retry"], true, "{detail:#}");
    assert_eq!(detail["prompt_problem"], Value::Null);
    let messages = detail["prompt"]["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "system");
    // The retry shows the model its first answer and what is wrong with it.
    assert!(messages.iter().any(|one| one["role"] == "assistant" && one["text"] == "I object."));
    let answer = detail["answer"].as_str().unwrap();
    assert!(answer.contains("[hidden: ") && !answer.contains(TOKEN), "{answer}");
    assert_eq!(detail["hidden_secrets"], 1, "{detail:#}");
    // The answer is in the prompt of the next round.
    let next = world.run(&["calls", &run, "m1/round-2/critic/D1", "--json"]);
    assert!(next.stdout.contains("[hidden: ") && !next.stdout.contains(TOKEN), "{next}");
    let text = world.run(&["calls", &run, "m1/round-1/critic/ask-2"]);
    for part in ["call      m1/round-1/critic/ask-2\n", "--- system ---", "--- answer ---"] {
        assert!(text.stdout.contains(part), "{text}");
    }
    assert!(!text.stdout.contains(TOKEN), "{text}");
    for unknown in ["m1/round-9/critic", "no such call", "../x"] {
        let refused = world.run(&["calls", &run, unknown]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("hint: list the calls with `moothall calls"), "{refused}");
    }
}

#[test]
fn an_estimate_says_how_long_it_takes_at_the_speed_of_an_earlier_run() {
    let (world, run) = consulted();
    let estimate = |flags: &[&str]| {
        world.run(&[&["consult", "HLXI", "--moves", "1", "--estimate"], flags, &FAKE].concat())
    };
    let text = estimate(&[]);
    let line = text.stdout.lines().find(|line| line.starts_with("about ")).unwrap();
    assert!(line.contains(&format!(" min at the speed of run {} (", &run[..13])), "{text}");
    let value = estimate(&["--json"]).json();
    let minutes = |name: &str| value[name].as_u64().unwrap();
    assert!(minutes("low_minutes") >= 1 && minutes("high_minutes") >= minutes("low_minutes"));
    // A model without a finished run has no speed.
    let other = World::new();
    Fake::start().configure(&other, "");
    let fresh = other.run(&[&["consult", "HLXI", "--estimate"], &FAKE[..]].concat());
    assert!(!fresh.stdout.contains("at the speed of"), "{fresh}");
    let unknown = "\ntime unknown until a run with openai/gpt-4.1-mini has finished\n";
    assert!(fresh.stdout.contains(unknown) && !text.stdout.contains("unknown until"), "{fresh}");
}

#[test]
fn every_prompt_of_a_consultation_can_be_rebuilt() {
    let (world, run) = consulted();
    let log = world.run(&["calls", &run, "--json"]).json();
    let calls = log["calls"].as_array().unwrap();
    assert!(calls.len() > 15, "{}", calls.len());
    for call in calls {
        let name = call["call"].as_str().unwrap();
        let detail = world.run(&["calls", &run, name, "--json"]).json();
        assert_eq!(detail["prompt_problem"], Value::Null, "{name}");
        assert!(!detail["prompt"]["messages"].as_array().unwrap().is_empty(), "{name}");
        assert!(detail["answer"].is_string(), "{name}");
        assert_eq!(detail["call"], *call);
    }
}

#[test]
fn calls_of_a_program_run_have_attempts_instead_of_rounds() {
    let world = World::new();
    Scene::new(&world).run(0, "print the first 3 primes", second_try());
    let log = world.run(&["calls", "019a85c0", "--json"]).json();
    let row = |call: &Value| format!("{} {} {}", call["call"], call["role"], call["length_ms"]);
    let rows: Vec<String> = log["calls"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(
        rows,
        [
            r#""attempt-1/generate" "programmer" 1200"#,
            r#""attempt-1/critique" "critic" 1200"#,
            r#""attempt-2/generate" "programmer" 1200"#,
        ]
    );
    assert_eq!(log["all"]["total"]["cost_micro_usd"], 3 * 1250);
    let table = world.run(&["calls", "019a85c0"]).stdout;
    assert!(table.contains("attempt-2/generate") && !table.contains("by move"), "{table}");
    let second = world.run(&["calls", "019a85c0", "--round", "2", "--json"]).json();
    assert_eq!(second["calls"][0]["call"], "attempt-2/generate", "{second:#}");
    assert_eq!(second["matching"]["total"]["calls"], 1);
    let detail = world.run(&["calls", "019a85c0", "attempt-2/generate", "--json"]).json();
    let prompt = detail["prompt"]["messages"].to_string();
    assert!(prompt.contains("first 3 primes") && prompt.contains("ZeroDivisionError"), "{prompt}");
}

#[test]
fn calls_of_an_edit_are_listed_with_their_prompts() {
    let world = World::new().with("USER", "ada");
    fs_err::create_dir_all(world.path("ws/src")).unwrap();
    let script = "import sys\n\n\ndef main():\n    print(sys.argv)\n\n\nmain()\n";
    world.write("ws/src/watchdog.py", script);
    let task = "Add --version flag to watchdog.py";
    let ran = world.run(&["edit", task, "--path", "ws", "--model", "demo"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let runs = world.run(&["runs", "--json"]).json();
    let run = runs["runs"][0]["run_id"].as_str().unwrap();
    let log = world.run(&["calls", run, "--json"]).json();
    let calls = log["calls"].as_array().unwrap();
    assert!(!calls.is_empty());
    assert_eq!(log["all"]["roles"][0]["name"], "editor", "{log:#}");
    for call in calls {
        let detail = world.run(&["calls", run, call["call"].as_str().unwrap(), "--json"]).json();
        assert_eq!(detail["prompt_problem"], Value::Null, "{detail:#}");
        assert!(detail["prompt"]["messages"].to_string().contains("--version"), "{detail:#}");
    }
}

#[test]
fn the_server_pages_and_filters_the_same_calls_as_the_command_line() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let run = server.consult(json!({})).await;
        let view = server.over(&run).await;
        let by_cli = world.run(&["calls", &run, "--json"]).json();
        let whole = server.json(&format!("/api/runs/{run}/calls")).await;
        assert_eq!(whole["calls"], by_cli["calls"]);
        assert_eq!(whole["all"], by_cli["all"]);
        assert_eq!(whole["next"], Value::Null);
        assert_eq!(whole["as_of_seq"], view["as_of_seq"]);
        let usage = &view["usage"];
        let all = usage["calls"].as_u64().unwrap() + usage["extra_calls"].as_u64().unwrap();
        assert_eq!(whole["all"]["total"]["calls"], all);
        assert_eq!(whole["all"]["total"]["prompt_tokens"], usage["prompt_tokens"]);

        let (mut after, mut paged) = (0, Vec::new());
        loop {
            let path = format!("/api/runs/{run}/calls?role=critic&limit=3&after={after}");
            let page = server.json(&path).await;
            paged.extend(page["calls"].as_array().unwrap().clone());
            let Some(next) = page["next"].as_u64() else { break };
            after = next;
        }
        let critic = world.run(&["calls", &run, "--json", "--role", "critic"]).json();
        assert_eq!(Value::Array(paged), critic["calls"]);
        let found = server.json(&format!("/api/runs/{run}/calls?text=round-2%2Fcritic")).await;
        assert_eq!(found["calls"].as_array().unwrap().len(), 6, "{found:#}");

        let detail = server.json(&format!("/api/runs/{run}/calls/m1%2Fround-1%2Fcritic")).await;
        let same = world.run(&["calls", &run, "m1/round-1/critic", "--json"]).json();
        assert_eq!(detail, same);
        let text = detail["prompt"].to_string() + detail["answer"].as_str().unwrap();
        assert!(!text.contains("[hidden: "), "nothing of the demo looks like a credential");
        for (path, status) in [
            ("calls/m9%2Fround-1", 404),
            ("calls/no%20call", 404),
            ("calls?rol=critic", 400),
            ("calls?result=good", 400),
            ("calls?round=two", 400),
        ] {
            let answer = server.get(&format!("/api/runs/{run}/{path}")).await;
            assert_eq!(answer.status().as_u16(), status, "{path}");
        }
    });
}
