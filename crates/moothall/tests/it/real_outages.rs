//! Outages during programs in real sandboxes, and during programs and consultations on a real
//! cluster. Edits have no cluster runner: they change files of the machine they run on.

use moothall_testkit::{ProviderBehaviour, ProviderCall, ProviderFault};
use serde_json::{Value, json};

use crate::consult::careless;
use crate::fallback::DyingProvider;
use crate::outages::{Outage, Unreliable, check_outages, check_paused, consult_result};
use crate::real_restate::cluster::{Cluster, Plan, SMALL};
use crate::real_sandbox;
use crate::world::{Ran, World};

const PROGRAM: [&str; 10] = [
    "run",
    "--isolation",
    "runc",
    "--model",
    "openai/m",
    "--json",
    "--expect",
    "55",
    "--config",
    "fake.toml",
];

const TASK: &str = "print the sum of 1 to 10";

/// The first program fails, is critiqued, and the second one passes.
fn two_programs(call: &ProviderCall) -> ProviderBehaviour {
    let body = call.body().to_string();
    let program = |code: &str| json!({"reasoning": "So.", "code": code, "dependencies": [], "confidence": 0.9});
    ProviderBehaviour::text(match body.contains("\"response_format\"") {
        false => "Print 55 instead.".to_owned(),
        true if body.contains("Print 55 instead.") => program("print(50 + 5)").to_string(),
        true => program("print(54)").to_string(),
    })
}

fn program_result(ran: &Ran) -> Value {
    let report = ran.json();
    ["verdict", "attempts", "stdout"].map(|field| report[field].clone()).into_iter().collect()
}

#[test]
fn programs_pause_in_an_outage_and_end_as_without_it() {
    let command = [&PROGRAM[..], &[TASK]].concat();
    // The engine is probed once, not in every world.
    let cache = tempfile::tempdir().unwrap();
    let world = || real_sandbox::world().with("XDG_CACHE_HOME", cache.path().to_str().unwrap());
    check_outages(20, world, two_programs, &command, |_, ran| program_result(ran));
}

#[test]
fn programs_on_a_cluster_pause_in_an_outage_and_end_as_without_it() {
    let world = real_sandbox::world().with("MOOTHALL_ISOLATION__ENGINE", "runc");
    let command = [&PROGRAM[..], &[TASK]].concat();
    check_cluster_outages(4, world, two_programs, &command, program_result);
}

#[test]
fn consultations_on_a_cluster_pause_in_an_outage_and_end_as_without_it() {
    let command = [
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
    ];
    check_cluster_outages(Outage::FAULTS, World::new(), careless, &command, consult_result);
}

/// Like [`check_outages`], on a cluster with two workers. `.ci/long` tries more moments.
fn check_cluster_outages(
    seeds: usize,
    world: World,
    answer: impl Fn(&ProviderCall) -> ProviderBehaviour + Send + Sync + 'static,
    command: &[&str],
    result: impl Fn(&Ran) -> Value,
) {
    let seeds =
        std::env::var("MOOTHALL_TEST_OUTAGES").map_or(seeds, |seeds| seeds.parse().unwrap());
    let provider = Unreliable::start(answer);
    provider.configure(&world);
    world.write_config("moothall.toml", &world.read("fake.toml"));
    let cluster = Cluster::in_world(Plan { workers: 2, ..SMALL }, world);
    let engine = cluster.engine();
    let command = [command, &["--runner", &engine]].concat();
    let whole = cluster.world.run(&command);
    assert!(matches!(whole.code, Some(0 | 3)), "{whole}");
    let (calls, expected) = (provider.answered(), result(&whole));
    for seed in 0..seeds {
        let outage = Outage::seeded(seed, seeds, calls, 1);
        provider.plan_outage(&outage);
        let paused = cluster.world.run(&command);
        let id = cluster.world.newest_run();
        check_paused(&cluster.world, &paused, &id, &outage);
        provider.repair();
        let resumed = cluster.world.run(&["resume", &id, "--json"]);
        assert_eq!(resumed.code, whole.code, "{outage:?}: {resumed}");
        assert_eq!(result(&resumed), expected, "{outage:?}");
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
