//! Providers that stop answering in the middle of a run. The run pauses with the reason, judges
//! nothing, and ends after `moothall resume` as it would have without the outage.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_core::model::FailureKind;
use moothall_testkit::{
    ProviderBehaviour, ProviderCall, ProviderFault, RetryAfter, VerbatimResponse,
};
use serde_json::{Value, json};

use crate::consult::careless;
use crate::fake::Fake;
use crate::init::Person;
use crate::world::{Ran, World, signal};

/// How a provider fails, after how many answered calls, and why the run says it is paused.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    fault: ProviderFault,
    reason: FailureKind,
    after: usize,
}

impl Outage {
    /// The number of different faults.
    pub(crate) const FAULTS: usize = 10;

    /// The outage of this seed in a run with `calls` calls. Every fault occurs if
    /// there are enough seeds, at moments that cover the whole run. `pause` is what the provider asks for in seconds: processes that live on
    /// remember it.
    pub(crate) fn seeded(seed: usize, seeds: usize, calls: usize, pause: u64) -> Self {
        let retry_after = Some(RetryAfter::Seconds(pause));
        let faults: [(ProviderFault, FailureKind); Self::FAULTS] = [
            (ProviderFault::ConnectionReset, FailureKind::Transport),
            (ProviderFault::Unauthorized, FailureKind::Auth),
            (ProviderFault::RateLimited { retry_after: None }, FailureKind::RateLimited),
            (ProviderFault::RateLimited { retry_after }, FailureKind::RateLimited),
            (ProviderFault::Overloaded, FailureKind::Overloaded),
            (error(529, "overloaded_error", "Overloaded"), FailureKind::Overloaded),
            (error(429, "insufficient_quota", "You exceeded your quota."), FailureKind::Auth),
            (ProviderFault::HalfBody, FailureKind::Truncated),
            (ProviderFault::Hang, FailureKind::TimedOut),
            (ProviderFault::ServerError, FailureKind::Server),
        ];
        // Fewer seeds than faults take some of each kind.
        let step = (faults.len() / seeds).max(1);
        let (fault, reason) = faults[seed * step % faults.len()].clone();
        Self { fault, reason, after: seed * calls / seeds }
    }
}

/// An error response that has no fault of its own.
fn error(status: u16, kind: &str, message: &str) -> ProviderFault {
    let body = json!({ "error": { "message": message, "type": kind, "code": kind } });
    ProviderFault::Verbatim(VerbatimResponse {
        status,
        content_type: "application/json",
        retry_after: None,
        body: body.to_string().into_bytes(),
    })
}

/// A provider that fails as planned until it is repaired.
pub(crate) struct Unreliable {
    fake: Fake,
    state: Arc<Mutex<UnreliableState>>,
}

#[derive(Debug, Default)]
struct UnreliableState {
    /// The fault, and after how many answers it starts.
    outage: Option<(ProviderFault, usize)>,
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
                Some((fault, after)) if state.answered >= *after => fault.clone().into(),
                _ => {
                    state.answered += 1;
                    answer(call)
                }
            }
        });
        Self { fake, state }
    }

    /// Plans the next outage and counts answered calls from zero.
    pub(crate) fn plan(&self, fault: ProviderFault, after: usize) {
        let outage = Some((fault, after));
        *self.state.lock().unwrap() = UnreliableState { outage, answered: 0 };
    }

    pub(crate) fn plan_outage(&self, outage: &Outage) {
        self.plan(outage.fault.clone(), outage.after);
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

#[test]
fn the_screen_of_a_consultation_names_a_provider_that_does_not_answer() {
    let provider = Unreliable::start(careless);
    provider.plan(ProviderFault::Overloaded, 4);
    let world = World::new();
    provider.configure(&world);
    let file = world.read("fake.toml").replace("\"20ms\"", "\"2min\"");
    world.write("fake.toml", &file);
    let consult = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--isolation",
        "none",
        "--moves",
        "2",
        "--rounds",
        "1",
        "--model",
        "openai/m",
        "--config",
        "fake.toml",
        "--yes",
        "--color",
        "never",
    ];
    let mut person = Person::start(world.on_terminal(100, 40, &consult));
    person.answer("openai/m has not answered for 1 s (overloaded); trying again", "");
    provider.repair();
    let (shown, code) = person.leave();
    assert!(matches!(code, Some(0 | 3)), "{shown}");
    let (_, last_frame) = shown.rsplit_once("▸").unwrap_or(("", &shown));
    assert!(!last_frame.contains("trying again"), "{shown}");
}

/// The screen mentions it only if no answer has come for ten seconds.
#[test]
fn the_screen_of_a_consultation_says_how_much_of_a_slow_answer_has_arrived() {
    let fake = Fake::start();
    let slow = ProviderFault::SlowDrip { chunk: 200, every: Duration::from_millis(200) };
    fake.always(ProviderBehaviour::text("Nothing is known. ".repeat(500)).with_fault(slow));
    let world = World::new();
    fake.configure(&world, "");
    let consult = ["consult", "HLXI", "--verdict", "off", "--isolation", "none", "--moves", "1"];
    let model = ["--rounds", "1", "--model", "openai/m", "--config", "fake.toml", "--yes"];
    let arguments = [&consult[..], &model, &["--color", "never"]].concat();
    let mut person = Person::start(world.on_terminal(100, 40, &arguments));
    person.answer(" s for an answer, tokens received: about ", "");
    signal(&person.child, "INT");
    person.answer("Ctrl-C", "");
    signal(&person.child, "INT");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(130), "{shown}");
}

#[test]
fn the_screen_of_an_edit_names_a_provider_that_does_not_answer() {
    let provider = Unreliable::start(edit_answer);
    provider.plan(ProviderFault::Overloaded, 1);
    let world = edit_world();
    provider.configure(&world);
    let file = world.read("fake.toml").replace("\"20ms\"", "\"2min\"");
    world.write("fake.toml", &file);
    let edit = [&EDIT[..], &["--color", "never"]].concat();
    let mut person = Person::start(world.on_terminal(120, 40, &edit));
    person.answer("openai/m has not answered for 1 s (overloaded); trying again", "");
    provider.repair();
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(world.read("ws/a.py"), "print(1)\nprint(2)\n");
}

const EDIT: [&str; 8] =
    ["edit", "print more", "--path", "ws", "--config", "fake.toml", "--model", "openai/m"];

fn edit_world() -> World {
    let world = World::new();
    fs_err::create_dir_all(world.path("ws")).unwrap();
    world.write("ws/a.py", "print(1)\n");
    world.write("ws/b.py", "print(2)\n");
    world
}

fn edit_answer(call: &ProviderCall) -> ProviderBehaviour {
    let body = call.body();
    let chooses = body["response_format"]["json_schema"]["name"] == "files";
    ProviderBehaviour::text(match chooses {
        true => "{\"files\": [\"a.py\"]}",
        false => "Prints more.\n\n```python a.py\nprint(1)\nprint(2)\n```\n",
    })
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
        provider.plan_outage(&outage);
        let (world, paused) = run();
        let id = world.only_run();
        check_paused(&world, &paused, &id, &outage);
        provider.repair();
        let resume = ["resume", &id, "--config", "fake.toml", "--json"];
        let resumed = world.run(&resume);
        assert_eq!(resumed.code, ran.code, "{outage:?}: {resumed}");
        assert_eq!(result(&world, &resumed), expected, "{outage:?}");
        assert_eq!(provider.answered(), calls, "{outage:?}: answered calls were repeated");
    }
}

/// The run is paused, with the reason of this outage and the command that resumes it, and has no
/// verdict.
pub(crate) fn check_paused(world: &World, paused: &Ran, id: &str, outage: &Outage) {
    assert_eq!(paused.code, Some(4), "{outage:?}: {paused}");
    let reason = format!("is paused: openai/m did not answer ({}", outage.reason);
    assert!(paused.stderr.contains(&reason), "{outage:?}: {paused}");
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

const CONSULT: [&str; 14] = consultation("off", "2", "2");

const fn consultation(
    verdict: &'static str,
    moves: &'static str,
    rounds: &'static str,
) -> [&'static str; 14] {
    [
        "consult",
        "HLXI",
        "--verdict",
        verdict,
        "--config",
        "fake.toml",
        "--model",
        "openai/m",
        "--yes",
        "--moves",
        moves,
        "--rounds",
        rounds,
        "--json",
    ]
}

/// Requests a pause while calls wait for the end of an outage of an hour.
fn check_pause_request(fault: ProviderFault) {
    let (provider, world) = (Unreliable::start(careless), World::new());
    provider.configure(&world);
    world.write("fake.toml", &world.read("fake.toml").replace("\"20ms\"", "\"1h\""));
    provider.plan(fault, 3);
    let child = world.command(&CONSULT).spawn().unwrap();
    while provider.fake.stats().received < 4 {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Let the calls fail and wait.
    std::thread::sleep(Duration::from_millis(500));
    let asked = world.run(&["pause", &world.only_run()]);
    assert_eq!(asked.code, Some(0), "{asked}");
    let ran = world.ran(&CONSULT, child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran}");
    let shown = world.run(&["show", &world.only_run(), "--json"]).json();
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
fn an_outage_is_reported_while_it_lasts_and_when_the_run_pauses() {
    let (provider, world) = (Unreliable::start(careless), World::new());
    provider.configure(&world);
    provider.plan(ProviderFault::Overloaded, 3);
    let (_json, as_text) = CONSULT.split_last().unwrap();
    let ran = world.run(as_text);
    assert_eq!(ran.code, Some(4), "{ran}");
    let retrying = "model call failed, retrying kind=\"overloaded\" delay_ms=";
    assert!(ran.stderr.contains(retrying), "{ran}");
    let id = world.only_run();
    let paused = format!("error: run {} is paused: openai/m did not answer (overloaded", &id[..13]);
    let hint = format!(
        "hint: wait a moment, or choose another model; then continue with `moothall resume {}`\n",
        &id[..13]
    );
    let end: Vec<&str> = ran.stderr.split_inclusive('\n').rev().take(2).collect();
    assert!(end[0] == hint && end[1].starts_with(&paused), "{ran}");
}

#[test]
fn consultations_pause_in_an_outage_and_end_as_without_it() {
    check_outages(20, World::new, careless, &CONSULT, |_, ran| consult_result(ran));
}

/// Like [`careless`], with two moves of each analyst, and a panel that catches every planted
/// control.
pub(crate) fn diligent(call: &ProviderCall) -> ProviderBehaviour {
    let plain = careless(call);
    let Ok(mut answer) = serde_json::from_str::<Value>(&plain.reply.text) else {
        return plain;
    };
    if let Some(moves) = answer.get_mut("moves").and_then(Value::as_array_mut) {
        let mut second = moves[0].clone();
        second["title"] = "Halve the costs".into();
        moves.push(second);
    }
    if answer.get("impact").is_some() {
        let body = call.body();
        let case = body["messages"].as_array().unwrap().last().unwrap().to_string();
        let is_planted = case.contains(": none given") || case.contains("no payback");
        let points = if is_planted { 2 } else { 7 };
        for metric in ["impact", "feasibility", "risk_adjusted_return", "strategic_alignment"] {
            answer[metric] = points.into();
        }
    }
    ProviderBehaviour::text(answer.to_string())
}

#[test]
fn consultations_with_a_panel_pause_in_an_outage_and_end_as_without_it() {
    // Fewer moves have no tiers.
    let command = consultation("panel", "6", "1");
    check_outages(5, World::new, diligent, &command, |_, ran| {
        let (report, result) = (ran.json(), consult_result(ran));
        let verdict = &report["panel_verdict"];
        assert_eq!(verdict["check"], "passed", "{verdict:#}");
        assert!(!verdict["tiers"].as_array().unwrap().is_empty(), "{verdict:#}");
        [result, verdict.clone()].into_iter().collect()
    });
}

#[test]
fn edits_pause_in_an_outage_and_end_as_without_it() {
    let command = [&EDIT[..], &["--json"]].concat();
    check_outages(20, edit_world, edit_answer, &command, |world, ran| {
        let report = ran.json();
        [report["verdict"].clone(), report["edited"]["state"].clone(), world.read("ws/a.py").into()]
            .into_iter()
            .collect()
    });
}
