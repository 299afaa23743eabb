//! The cost of a run by role, stage and model.

use serde_json::Value;

use crate::consult::careless;
use crate::fake::Fake;
use crate::world::World;

/// Millionths of a dollar in an amount such as `0.0125`.
fn micros(amount: &Value) -> u64 {
    let (whole, part) = amount.as_str().unwrap().split_once('.').unwrap();
    format!("{whole}{part:0<6}").parse().unwrap()
}

#[test]
fn costs_by_role_stage_and_model_add_up_to_the_bill() {
    let fake = Fake::start();
    fake.respond_with(careless);
    let world = World::new();
    fake.configure(&world, "");
    let model = ["--config", "fake.toml", "--model", "openai/gpt-4.1-mini", "--yes"];
    let small = ["consult", "HLXI", "--verdict", "off", "--moves", "1", "--rounds", "2"];
    let ran = world.run(&[&small[..], &model].concat());
    assert_eq!(ran.code, Some(3), "{ran}");
    let runs = world.run(&["runs", "--json"]).json();
    let run = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();

    let shown = world.run(&["show", &run, "--json"]).json();
    let bill = micros(&shown["cost_usd"]);
    assert!(bill > 0);
    assert_eq!(micros(&shown["spent"]["usd"]), bill, "no attempt failed");
    for (division, expected) in [
        ("roles", vec!["inference", "analysts", "critic", "decision makers"]),
        ("stages", vec!["infer", "analyze", "debate", "score", "score without debate"]),
        ("models", vec!["openai/gpt-4.1-mini"]),
    ] {
        let parts = shown["costs"][division].as_array().unwrap();
        let sum: u64 = parts.iter().map(|part| part["cost_micro_usd"].as_u64().unwrap()).sum();
        assert_eq!(sum, bill, "{division}: {parts:?}");
        let mut names: Vec<&str> = parts.iter().map(|it| it["name"].as_str().unwrap()).collect();
        let mut expected = expected;
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected);
    }
    let text = world.run(&["show", &run]).stdout;
    for title in ["by role    ", "by stage   ", "by model   openai/gpt-4.1-mini $"] {
        assert!(text.lines().any(|line| line.starts_with(title)), "{text}");
    }
    let memo = world.run(&["show", &run, "--memo"]).stdout;
    assert!(memo.contains("Cost by role"), "{memo}");
}
