//! `ask --schema`: valid JSON on standard output, or a nonzero exit code.

use insta::assert_snapshot;
use moothall_testkit::{ProviderBehaviour, ReplyStop};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::world::{Ran, World};

const MOONS: &str = r#"{
  "type": "object",
  "properties": { "moons": { "type": "integer", "minimum": 0 } },
  "required": ["moons"],
  "additionalProperties": false
}"#;

/// Asks with the schema above; the provider returns these answers, one per call.
fn ask(answers: &[ProviderBehaviour], more: &[&str]) -> (World, Fake, Ran) {
    let fake = Fake::scripted(answers.iter().cloned());
    let world = World::new();
    world.write("moons.schema.json", MOONS);
    fake.configure(&world, "");
    let asked = [
        "ask",
        "--config",
        "fake.toml",
        "--model",
        "openai/gpt-4.1-mini",
        "--schema",
        "moons.schema.json",
        "--events",
        "events.ndjson",
    ];
    let ran = world.run(&[&asked[..], more, &["How many moons has Mars?"]].concat());
    assert_eq!(fake.script_left(), 0, "{ran}");
    (world, fake, ran)
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

#[test]
fn an_answer_that_matches_the_schema_is_printed_unchanged() {
    let (_, fake, ran) = ask(&[ProviderBehaviour::text("{\"moons\": 2}")], &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"moons\": 2}\n"), "{ran}");
    let format = &fake.calls()[0].body()["response_format"];
    assert_eq!(format["json_schema"]["schema"], serde_json::from_str::<Value>(MOONS).unwrap());
}

#[test]
fn answer_in_a_fence_is_printed_as_json() {
    // Regression: the code fence was printed, so that `| jq` failed on an accepted answer.
    let (_, _, ran) =
        ask(&[ProviderBehaviour::text("Here you are:\n```json\n{\"moons\": 2}\n```\n")], &[]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(ran.json(), json!({"moons": 2}));
}

#[test]
fn json_output_contains_the_value_and_the_text() {
    let (_, _, ran) = ask(&[ProviderBehaviour::text("```\n{\"moons\": 2}\n```")], &["--json"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let report = ran.json();
    assert_eq!(report["value"], json!({"moons": 2}));
    assert_eq!(report["text"], "```\n{\"moons\": 2}\n```");
}

#[test]
fn the_demo_model_follows_the_schema() {
    let world = World::new();
    world.write("moons.schema.json", MOONS);
    let ran = world.run(&["ask", "--model", "demo", "--schema", "moons.schema.json", "hello"]);
    assert_eq!((ran.code, ran.json()), (Some(0), json!({"moons": 0})), "{ran}");
}

#[test]
fn an_invalid_answer_is_requested_once_more_with_its_problem() {
    let wrong = "{\"moons\": -1}";
    let (world, fake, ran) =
        ask(&[ProviderBehaviour::text(wrong), ProviderBehaviour::text("{\"moons\": 2}")], &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"moons\": 2}\n"), "{ran}");

    let events = world.events("events.ndjson");
    assert_eq!(
        names(&events),
        ["run_started", "model_replied", "output_rejected", "model_replied", "run_finished"]
    );
    assert_eq!(events[2]["effect_id"], "answer");
    assert_eq!(events[2]["problems"], json!(["/moons: -1 is less than the minimum of 0"]));
    assert_eq!(events[3]["effect_id"], "answer/ask-2");

    let messages = &fake.calls()[1].body()["messages"];
    assert_eq!(messages[0], fake.calls()[0].body()["messages"][0]);
    assert_eq!(messages[1], json!({"role": "assistant", "content": wrong}));
    assert_snapshot!(messages[2]["content"].as_str().unwrap());
}

#[test]
fn an_answer_that_is_invalid_twice_fails_with_its_problems() {
    let prose = ProviderBehaviour::text("Mars has two moons, Phobos and Deimos.");
    let (world, fake, ran) = ask(&[prose, ProviderBehaviour::wrong_schema()], &[]);
    assert_eq!(fake.stats().received, 2);
    let events = world.events("events.ndjson");
    assert_eq!(
        names(&events),
        [
            "run_started",
            "model_replied",
            "output_rejected",
            "model_replied",
            "output_rejected",
            "run_finished",
        ]
    );
    assert_eq!(events[4]["effect_id"], "answer/ask-2");
    assert_eq!(events[5]["verdict"], "fail");
    assert_snapshot!(ran);
}

#[test]
fn json_output_contains_an_unusable_answer_with_its_findings() {
    let wrong = || ProviderBehaviour::wrong_schema();
    assert_snapshot!(ask(&[wrong(), wrong()], &["--json"]).2);
}

#[test]
fn a_truncated_answer_is_never_accepted_as_complete() {
    let cut = || ProviderBehaviour::text("{\"moons\": 2}").with_stop(ReplyStop::MaxTokens);
    assert_snapshot!(ask(&[cut(), cut()], &[]).2);
}

#[test]
fn an_invalid_schema_file_is_a_usage_error_that_names_it() {
    let world = World::new();
    world.write("broken.json", "{\"type\": ");
    world.write("list.json", "[]");
    world.write("wrong.json", "{\"type\": \"moon\"}");
    world.write("remote.json", "{\"$ref\": \"https://example.com/schema.json\"}");
    let files = ["missing.json", "broken.json", "list.json", "wrong.json", "remote.json"];
    let runs = files
        .map(|file| world.run(&["ask", "--model", "demo", "--schema", file, "hello"]).to_string());
    assert_snapshot!(runs.join("\n\n"));
}
