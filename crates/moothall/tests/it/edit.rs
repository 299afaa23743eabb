//! `moothall edit` end to end: with the demo model, with a fake provider, with the gate and a
//! reviewer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use moothall_testkit::{ProviderBehaviour, ProviderFault};
use serde_json::json;

use crate::fake::Fake;
use crate::init::Person;
use crate::world::{Ran, World, check_paused, filtered, signal, signal_until_exit};

const WATCHDOG: &str = "import sys\n\n\ndef main():\n    print(sys.argv)\n\n\nmain()\n";
const FAKE: [&str; 4] = ["--config", "fake.toml", "--model", "openai/gpt-4.1-mini"];

fn world() -> World {
    let world = World::new().with("USER", "ada").with("OPENAI_API_KEY", "k");
    fs_err::create_dir_all(world.path("ws/src")).unwrap();
    world.write("ws/src/watchdog.py", WATCHDOG);
    world.write("ws/Makefile", "all:\n");
    world
}

#[test]
fn help_of_edit_shows_every_flag_and_examples() {
    assert_snapshot!(World::new().run(&["edit", "--help"]).stdout);
}

#[test]
fn the_demo_edit_is_rejected_once_and_then_applied() {
    let world = world();
    let task = "Add --version flag to watchdog.py";
    let ran = world.run(&["edit", task, "--path", "ws", "--model", "demo", "--receipt", "r"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "src/watchdog.py\n"), "{ran}");
    assert_snapshot!(filtered(&ran.stderr));
    let new = "def main():\n    if \"--version\" in sys.argv[1:]:\n        print(\"1.0\")\n        return\n";
    assert_eq!(world.read("ws/src/watchdog.py"), WATCHDOG.replace("def main():\n", new));
    assert_eq!(world.run(&["verify", "r"]).code, Some(0));
    let runs = world.run(&["runs", "--json"]).json();
    let id = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let replayed = world.run(&["replay", &id]);
    assert_eq!(replayed.code, Some(0), "{replayed}");
    assert_eq!(world.run(&["audit", "verify", "--workspace", "ws"]).code, Some(0));
}

#[test]
fn an_edit_task_unknown_to_the_demo_changes_nothing() {
    let world = world();
    let ran = world.run(&["edit", "make it faster", "--path", "ws", "--model", "demo"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran}");
    // Said before anything is tried.
    assert!(ran.stderr.starts_with("the demo model knows only one task: "), "{ran}");
    assert_eq!(world.read("ws/src/watchdog.py"), WATCHDOG);
}

#[test]
fn an_edit_uses_review_comments_and_applies_an_approved_change() {
    let world = world();
    let fake = Fake::start();
    fake.respond_with(|call| match call.body().to_string().contains("say what it builds") {
        true => ProviderBehaviour::text(
            "Builds.\n\n```make Makefile\nall: build\n# builds everything\n```\n",
        ),
        false => ProviderBehaviour::text("Builds.\n\n```make Makefile\nall: build\n```\n"),
    });
    fake.configure(&world, "");
    let edit =
        ["edit", "let it build", "--path", "ws", "--file", "Makefile", "--wait", "600", "--json"];
    let child = world.command(&[&edit[..], &FAKE[..]].concat()).spawn().unwrap();
    let review =
        |words: &[&str]| world.run(&[&["review", "--workspace", "ws"][..], words].concat());
    let waiting = || {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let listed = review(&["list", "--json"]).json();
            if let Some(id) = listed["waiting"][0]["draft_id"].as_str() {
                return id.to_owned();
            }
            assert!(Instant::now() < until, "no drafts need review: {listed}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let decide = |what: &str, reason: &str| {
        let id = waiting();
        let shown = review(&["show", &id, "--json"]).json();
        let seal = shown["seal"].as_str().unwrap();
        let ran = review(&[what, &id, "--if-match", seal, "--reason", reason]);
        assert_eq!(ran.code, Some(0), "{ran}");
    };
    decide("send-back", "say what it builds");
    decide("approve", "");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(world.read("ws/Makefile"), "all: build\n# builds everything\n");
}

#[test]
fn an_edit_of_a_protected_file_needs_review() {
    let world = world();
    let fake = Fake::start();
    fake.respond_with(|_| {
        ProviderBehaviour::text("Builds.\n\n```make Makefile\nall: build\n```\n")
    });
    fake.configure(&world, "");
    let edit = ["edit", "let it build", "--path", "ws", "--file", "Makefile", "--json"];
    let ran = world.run(&[&edit[..], &FAKE[..]].concat());
    assert_eq!(ran.code, Some(3), "{ran}");
    let report = ran.json();
    assert_eq!(report["edited"]["state"], "escalated");
    assert_eq!(report["findings"][0]["rule"], json!("path.protected"));
    assert_eq!(world.read("ws/Makefile"), "all:\n");
}

/// A provider that proposes a change, and does not answer review calls until it is released.
fn reviewing(world: &World) -> (Fake, Arc<AtomicBool>, mpsc::Receiver<()>) {
    let model = FAKE[3];
    world.write_config("policy.toml", &format!("version = 1\n[review]\nmodel = \"{model}\"\n"));
    let fake = Fake::start();
    let (arrived, arrivals) = mpsc::channel();
    let answers = Arc::new(AtomicBool::new(false));
    let may = Arc::clone(&answers);
    fake.respond_with(move |call| {
        let is_review = call.body().to_string().contains("You review a change");
        match (is_review, may.load(Ordering::SeqCst)) {
            (true, false) => {
                arrived.send(()).unwrap();
                ProviderFault::Hang.into()
            }
            (true, true) => ProviderBehaviour::text("{\"doubts\": []}"),
            (false, _) => {
                ProviderBehaviour::text("Prints.\n\n```python src/watchdog.py\nprint(1)\n```\n")
            }
        }
    });
    fake.configure(world, "");
    (fake, answers, arrivals)
}

const SHORT: [&str; 6] = ["edit", "print one", "--path", "ws", "--file", "src/watchdog.py"];

/// Starts an edit, and sends a signal while its change is being reviewed.
fn signalled(world: &World, signal: &str, arrivals: &mpsc::Receiver<()>) -> Ran {
    let arguments = [&SHORT[..], &FAKE[..]].concat();
    let child = world.command(&arguments).spawn().unwrap();
    arrivals.recv_timeout(Duration::from_secs(120)).unwrap();
    world.ran(&arguments, signal_until_exit(child, signal))
}

fn drafts(world: &World) -> serde_json::Value {
    let listed = ["draft", "--workspace", "ws", "--json", "list", "--all", "--worker", "edit"];
    let drafts = world.run(&listed).json()["drafts"].clone();
    drafts.as_array().unwrap().iter().map(|one| one["state"].clone()).collect()
}

/// The reviewer model never answers, so the process ends only if it stops waiting.
#[test]
fn ctrl_c_twice_stops_a_submission_under_review_and_a_new_run_succeeds() {
    let world = world();
    world.write("ws/src/watchdog.py", "print(0)\n");
    let (_fake, answers, arrivals) = reviewing(&world);
    let ran = signalled(&world, "INT", &arrivals);
    assert_eq!(ran.code, Some(130), "{ran}");
    assert!(ran.stderr.contains("hint: continue it with `moothall resume "), "{ran}");
    assert_eq!(drafts(&world), json!(["editing"]));
    assert_eq!(world.read("ws/src/watchdog.py"), "print(0)\n");
    answers.store(true, Ordering::SeqCst);
    let ran = world.run(&[&SHORT[..], &FAKE[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(world.read("ws/src/watchdog.py"), "print(1)\n");
}

#[test]
fn one_ctrl_c_pauses_an_edit_which_resumes_without_repeating_its_call() {
    let world = world();
    world.write("ws/src/watchdog.py", "print(0)\n");
    let (arrived, arrivals) = mpsc::channel();
    let fake = Fake::start();
    fake.respond_with(move |_| {
        arrived.send(()).unwrap();
        ProviderBehaviour::text("Prints.\n\n```python src/watchdog.py\nprint(1)\n```\n")
            .with_latency(Duration::from_millis(700))
    });
    fake.configure(&world, "");
    let arguments = [&SHORT[..], &FAKE[..]].concat();
    let child = world.command(&arguments).spawn().unwrap();
    arrivals.recv_timeout(Duration::from_secs(60)).unwrap();
    signal(&child, "INT");
    let ran = world.ran(&arguments, child.wait_with_output().unwrap());
    check_paused(&world, &ran);
    assert_eq!(world.read("ws/src/watchdog.py"), "print(0)\n");
    let resumed = world.run(&["resume", &world.only_run(), "--config", "fake.toml"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert_eq!(world.read("ws/src/watchdog.py"), "print(1)\n");
    assert_eq!(fake.stats().received, 1);
}

#[test]
fn an_edit_on_a_terminal_says_how_much_of_the_answer_has_arrived() {
    let world = world();
    world.write("ws/src/watchdog.py", "print(0)\n");
    let fake = Fake::start();
    let answer = "Prints.\n\n```python src/watchdog.py\nprint(1)\n```\n";
    let slow = ProviderFault::SlowDrip { chunk: 20, every: Duration::from_millis(50) };
    fake.always(ProviderBehaviour::text(answer).with_fault(slow));
    fake.configure(&world, "");
    let arguments = [&SHORT[..], &FAKE[..], &["--color", "never"]].concat();
    let mut person = Person::start(world.command(&arguments));
    person.answer("… waiting for openai/gpt-4.1-mini, tokens received: about ", "");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(world.read("ws/src/watchdog.py"), "print(1)\n");
}

#[test]
fn an_edit_on_a_terminal_says_how_large_the_prompt_is_until_the_answer_begins() {
    let world = world();
    world.write("ws/src/watchdog.py", "print(0)\n");
    let fake = Fake::start();
    let (answer, asked) = mpsc::channel::<()>();
    let asked = Mutex::new(asked);
    fake.respond_with(move |_| {
        let _ = asked.lock().unwrap().recv();
        ProviderBehaviour::text("Prints.\n\n```python src/watchdog.py\nprint(1)\n```\n")
    });
    fake.configure(&world, "");
    let task = "Print one instead of zero, as the specification says. ".repeat(250);
    let edit =
        ["edit", task.as_str(), "--path", "ws", "--file", "src/watchdog.py", "--color", "never"];
    let mut person = Person::start(world.command(&[&edit[..], &FAKE[..]].concat()));
    person.answer("… waiting for openai/gpt-4.1-mini, prompt tokens: about ", "");
    answer.send(()).unwrap();
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(world.read("ws/src/watchdog.py"), "print(1)\n");
}

#[test]
fn an_edit_says_why_an_answer_is_rejected_and_that_it_asks_again() {
    let world = world();
    world.write("ws/src/watchdog.py", "print(0)\n");
    let fake = Fake::scripted(
        ["No.", "Prints.\n\n```python src/watchdog.py\nprint(1)\n```\n"]
            .map(ProviderBehaviour::text),
    );
    fake.configure(&world, "");
    let ran = world.run(&[&SHORT[..], &FAKE[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    let rejected: Vec<&str> =
        ran.stderr.lines().filter(|line| line.contains("answer rejected: ")).collect();
    let [line] = rejected[..] else { panic!("{ran}") };
    assert!(line.starts_with("  answer rejected: ") && line.ends_with("; asking again"), "{line}");
}

#[test]
fn a_killed_edit_resumes_without_repeating_calls() {
    let world = world();
    world.write("ws/src/watchdog.py", "print(0)\n");
    let loosening = "version = 1\n[review]\nauthor_may_approve = true\n";
    fs_err::create_dir_all(world.path("ws/.moothall")).unwrap();
    world.write("ws/.moothall/policy.toml", loosening);
    let (fake, answers, arrivals) = reviewing(&world);
    let ran = signalled(&world, "KILL", &arrivals);
    assert_eq!(ran.code, None, "{ran}");
    let warns =
        |ran: &Ran| ran.stderr.contains("policy: the workspace asks for approval of drafts by");
    assert!(warns(&ran), "{ran}");
    answers.store(true, Ordering::SeqCst);
    let runs = world.run(&["runs", "--json"]).json();
    let id = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let ran = world.run(&["resume", &id, "--config", "fake.toml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "src/watchdog.py\n"), "{ran}");
    assert!(warns(&ran), "{ran}");
    assert_eq!(world.read("ws/src/watchdog.py"), "print(1)\n");
    assert_eq!(drafts(&world), json!(["applied"]));
    let calls = fake.calls();
    let proposals = calls.iter().filter(|call| !call.body().to_string().contains("You review"));
    assert_eq!(proposals.count(), 1);
    assert_eq!(world.run(&["audit", "verify", "--workspace", "ws"]).code, Some(0));
}

#[test]
fn an_invalid_edit_is_refused_before_a_run_is_created() {
    let world = world();
    for (arguments, words) in [
        (&["edit", "x", "--path", "nowhere", "--model", "demo"][..], "is not a directory"),
        (&["edit", "x", "--path", "ws", "--file", "../x", "--model", "demo"], "`..`"),
        (&["edit", " ", "--path", "ws", "--model", "demo"], "task"),
        (&["edit", "x", "--path", "ws", "--worker", "a b", "--model", "demo"], "worker"),
    ] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(words), "{ran}");
    }
    assert_eq!(world.run(&["runs", "--json"]).json()["runs"], json!([]));
}
