//! Outages during programs in real sandboxes and during consultations on a real cluster.

use moothall_testkit::{ProviderBehaviour, ProviderCall, ProviderFault};
use serde_json::json;

use crate::consult::careless;
use crate::fallback::DyingProvider;
use crate::outages::{Outage, Unreliable, check_outages, check_paused, consult_result};
use crate::real_restate::cluster::{Cluster, Plan, SMALL};
use crate::real_sandbox;
use crate::world::World;

#[test]
fn programs_pause_in_an_outage_and_end_as_without_it() {
    /// The first program fails, is critiqued, and the second one passes.
    fn answer(call: &ProviderCall) -> ProviderBehaviour {
        let body = call.body().to_string();
        let program = |code: &str| json!({"reasoning": "So.", "code": code, "dependencies": [], "confidence": 0.9});
        ProviderBehaviour::text(match body.contains("\"response_format\"") {
            false => "Print 55 instead.".to_owned(),
            true if body.contains("Print 55 instead.") => program("print(50 + 5)").to_string(),
            true => program("print(54)").to_string(),
        })
    }
    let command = [
        "run",
        "--isolation",
        "runc",
        "--config",
        "fake.toml",
        "--model",
        "openai/m",
        "--json",
        "--expect",
        "55",
        "print the sum of 1 to 10",
    ];
    check_outages(20, real_sandbox::world, answer, &command, |_, ran| {
        let report = ran.json();
        ["verdict", "attempts", "stdout"].map(|field| report[field].clone()).into_iter().collect()
    });
}

#[test]
fn consultations_on_a_cluster_pause_in_an_outage_and_end_as_without_it() {
    // One for each fault; `.ci/long` tries more moments.
    let seeds = std::env::var("MOOTHALL_TEST_OUTAGES").map_or(7, |seeds| seeds.parse().unwrap());
    let (world, provider) = (World::new(), Unreliable::start(careless));
    provider.configure(&world);
    world.write_config("moothall.toml", &world.read("fake.toml"));
    let cluster = Cluster::in_world(Plan { workers: 2, ..SMALL }, world);
    let engine = cluster.engine();
    let consult = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "openai/m",
        "--isolation",
        "none",
        "--yes",
        "--moves",
        "2",
        "--rounds",
        "2",
        "--json",
        "--runner",
        &engine,
    ];
    let newest = || {
        let runs = cluster.world.run(&["runs", "--json"]).json();
        runs["runs"][0]["run_id"].as_str().unwrap().to_owned()
    };
    let whole = cluster.world.run(&consult);
    assert_eq!(whole.code, Some(3), "{whole}");
    let (calls, expected) = (provider.answered(), consult_result(&whole));
    for seed in 0..seeds {
        let outage = Outage::seeded(seed, seeds, calls, 1);
        provider.plan(outage.clone());
        let paused = cluster.world.run(&consult);
        let id = newest();
        check_paused(&cluster.world, &paused, &id, &outage);
        provider.repair();
        let resumed = cluster.world.run(&["resume", &id, "--json"]);
        assert_eq!(resumed.code, whole.code, "{outage:?}: {resumed}");
        assert_eq!(consult_result(&resumed), expected, "{outage:?}");
        assert_eq!(provider.answered(), calls, "{outage:?}: answered calls were repeated");
    }
}

#[test]
fn consultations_on_a_cluster_end_with_the_second_model_when_the_first_dies() {
    let (world, provider) = (World::new(), DyingProvider::start(ProviderFault::ServerError));
    provider.configure(&world);
    world.write_config("moothall.toml", &world.read("fake.toml"));
    let cluster = Cluster::in_world(Plan { workers: 2, ..SMALL }, world);
    let engine = cluster.engine();
    let consult = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "openai/first,openai/second",
        "--isolation",
        "none",
        "--yes",
        "--moves",
        "2",
        "--rounds",
        "2",
        "--json",
        "--receipt",
    ];
    let run = |receipt: &str| {
        cluster.world.run(&[&consult[..], &[receipt, "--runner", &engine]].concat())
    };
    let whole = run("whole.jsonl");
    assert_eq!(whole.code, Some(3), "{whole}");
    let calls = provider.answered();
    provider.plan(calls / 2, usize::MAX);
    let ran = run("fallback.jsonl");
    assert_eq!(ran.code, whole.code, "{ran}");
    assert_eq!(consult_result(&ran), consult_result(&whole));
    assert_eq!(provider.answered(), calls, "answered calls were repeated");
    let by_second = cluster.world.read("fallback.jsonl").matches("\"fallback\":{\"model\"").count();
    assert_eq!(by_second, calls - calls / 2);
    assert_eq!(cluster.world.run(&["verify", "fallback.jsonl"]).code, Some(3));
}
