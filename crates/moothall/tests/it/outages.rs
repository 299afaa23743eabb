//! Providers that stop answering in the middle of a run. The run pauses with the reason, judges
//! nothing, and ends after `moothall resume` as it would have without the outage.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_testkit::{ProviderBehaviour, ProviderCall, ProviderFault, RetryAfter};
use serde_json::Value;

use crate::consult::careless;
use crate::fake::Fake;
use crate::world::{Ran, World};

/// How a provider fails, and after how many answered calls.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    fault: ProviderFault,
    after: usize,
}

impl Outage {
    /// The outage of this seed in a run with `calls` calls. Every fault occurs, at moments that
    /// cover the whole run. `pause` is what the provider asks for in seconds: processes that live on
    /// remember it.
    pub(crate) fn seeded(seed: usize, seeds: usize, calls: usize, pause: u64) -> Self {
        let faults = [
            ProviderFault::ConnectionReset,
            ProviderFault::Unauthorized,
            ProviderFault::RateLimited { retry_after: None },
            ProviderFault::RateLimited { retry_after: Some(RetryAfter::Seconds(pause)) },
            ProviderFault::Overloaded,
            ProviderFault::Hang,
            ProviderFault::ServerError,
        ];
        Self { fault: faults[seed % faults.len()].clone(), after: seed * calls / seeds }
    }
}

/// A provider that fails as planned until it is repaired.
pub(crate) struct Unreliable {
    fake: Fake,
    state: Arc<Mutex<UnreliableState>>,
}

#[derive(Debug, Default)]
struct UnreliableState {
    outage: Option<Outage>,
    answered: usize,
}

impl Unreliable {
    pub(crate) fn start(
        answer: impl Fn(&ProviderCall) -> ProviderBehaviour + Send + Sync + 'static,
    ) -> Self {
        let (fake, state) = (Fake::start(), Arc::new(Mutex::new(UnreliableState::default())));
        let shared = Arc::clone(&state);
        fake.respond_with(move |call| {
            let mut state = shared.lock().unwrap();
            match &state.outage {
                Some(outage) if state.answered >= outage.after => outage.fault.clone().into(),
                _ => {
                    state.answered += 1;
                    answer(call)
                }
            }
        });
        Self { fake, state }
    }

    /// Plans the next outage and counts answered calls from zero.
    pub(crate) fn plan(&self, outage: Outage) {
        *self.state.lock().unwrap() = UnreliableState { outage: Some(outage), answered: 0 };
    }

    pub(crate) fn repair(&self) {
        self.state.lock().unwrap().outage = None;
    }

    pub(crate) fn answered(&self) -> usize {
        self.state.lock().unwrap().answered
    }

    /// Points the program at this provider. A call is tried twice, then the run pauses.
    pub(crate) fn configure(&self, world: &World) {
        self.fake.configure(world, "");
        let file = world.read("fake.toml");
        let file = file.replace("[retry]\n", "[retry]\nretries = 1\noutage_wait = \"20ms\"\n");
        let file = file.replace("[provider.openai]\n", "[provider.openai]\ntimeout = \"400ms\"\n");
        world.write("fake.toml", &file);
    }
}

/// The only run of a world.
fn run_id(world: &World) -> String {
    let runs = world.run(&["runs", "--json"]).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
    runs["runs"][0]["run_id"].as_str().unwrap().to_owned()
}

/// Runs a command through every seeded outage and compares each end with an undisturbed run.
pub(crate) fn check_outages(
    seeds: usize,
    world: impl Fn() -> World,
    answer: impl Fn(&ProviderCall) -> ProviderBehaviour + Send + Sync + 'static,
    command: &[&str],
    result: impl Fn(&World, &Ran) -> Value,
) {
    let provider = Unreliable::start(answer);
    let run = || {
        let world = world();
        provider.configure(&world);
        let ran = world.run(command);
        (world, ran)
    };
    let (whole, ran) = run();
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    let (calls, expected) = (provider.answered(), result(&whole, &ran));
    for seed in 0..seeds {
        let outage = Outage::seeded(seed, seeds, calls, 600);
        provider.plan(outage.clone());
        let (world, paused) = run();
        check_paused(&world, &paused, &run_id(&world), &outage);
        provider.repair();
        let resume = ["resume", &run_id(&world), "--config", "fake.toml", "--json"];
        let resumed = world.run(&resume);
        assert_eq!(resumed.code, ran.code, "{outage:?}: {resumed}");
        assert_eq!(result(&world, &resumed), expected, "{outage:?}");
        assert_eq!(provider.answered(), calls, "{outage:?}: answered calls were repeated");
    }
}

/// The run is paused, with the reason and the command that resumes it, and has no verdict.
pub(crate) fn check_paused(world: &World, paused: &Ran, id: &str, outage: &Outage) {
    assert_eq!(paused.code, Some(4), "{outage:?}: {paused}");
    assert!(paused.stderr.contains("is paused: openai/"), "{outage:?}: {paused}");
    assert!(paused.stderr.contains("moothall resume "), "{outage:?}: {paused}");
    let shown = world.run(&["show", id, "--json"]).json();
    assert_eq!((&shown["state"], &shown["verdict"]), (&"paused".into(), &Value::Null), "{shown}");
}

/// What must be the same with and without an outage.
pub(crate) fn consult_result(ran: &Ran) -> Value {
    let report = ran.json();
    let fields = ["policy_scores", "recommended_moves", "other_moves", "do_nothing", "missing"];
    fields.map(|field| report[field].clone()).into_iter().collect()
}

const CONSULT: [&str; 14] = [
    "consult",
    "HLXI",
    "--verdict",
    "off",
    "--config",
    "fake.toml",
    "--model",
    "openai/m",
    "--yes",
    "--moves",
    "2",
    "--rounds",
    "2",
    "--json",
];

/// Requests a pause while calls wait for the end of an outage of an hour.
fn check_pause_request(fault: ProviderFault) {
    let (provider, world) = (Unreliable::start(careless), World::new());
    provider.configure(&world);
    world.write("fake.toml", &world.read("fake.toml").replace("\"20ms\"", "\"1h\""));
    provider.plan(Outage { fault, after: 3 });
    let child = world.command(&CONSULT).spawn().unwrap();
    while provider.fake.stats().received < 4 {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Let the calls fail and wait.
    std::thread::sleep(Duration::from_millis(500));
    let asked = world.run(&["pause", &run_id(&world)]);
    assert_eq!(asked.code, Some(0), "{asked}");
    let ran = world.ran(&CONSULT, child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran}");
    let shown = world.run(&["show", &run_id(&world), "--json"]).json();
    assert_eq!(shown["state"], "paused", "{shown}");
}

#[test]
fn a_pause_request_does_not_wait_for_the_end_of_an_outage() {
    check_pause_request(ProviderFault::Overloaded);
}

#[test]
fn a_pause_request_does_not_wait_as_long_as_the_provider_asks() {
    let retry_after = Some(RetryAfter::Seconds(200));
    check_pause_request(ProviderFault::RateLimited { retry_after });
}

#[test]
fn consultations_pause_in_an_outage_and_end_as_without_it() {
    check_outages(20, World::new, careless, &CONSULT, |_, ran| consult_result(ran));
}

#[test]
fn edits_pause_in_an_outage_and_end_as_without_it() {
    let world = || {
        let world = World::new();
        fs_err::create_dir_all(world.path("ws")).unwrap();
        world.write("ws/a.py", "print(1)\n");
        world.write("ws/b.py", "print(2)\n");
        world
    };
    let command = [
        "edit",
        "print more",
        "--path",
        "ws",
        "--config",
        "fake.toml",
        "--model",
        "openai/m",
        "--json",
    ];
    fn answer(call: &ProviderCall) -> ProviderBehaviour {
        let body = call.body();
        let chooses = body["response_format"]["json_schema"]["name"] == "files";
        ProviderBehaviour::text(match chooses {
            true => "{\"files\": [\"a.py\"]}",
            false => "Prints more.\n\n```python a.py\nprint(1)\nprint(2)\n```\n",
        })
    }
    check_outages(20, world, answer, &command, |world, ran| {
        let report = ran.json();
        [report["verdict"].clone(), report["edited"]["state"].clone(), world.read("ws/a.py").into()]
            .into_iter()
            .collect()
    });
}
