//! `moothall run` end to end: programs run in real sandboxes. CI builds the images and sets their
//! directory in `MOOTHALL_TEST_IMAGES`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use moothall_testkit::{ProviderBehaviour, ProviderFault};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::init::Person;
use crate::real_restate::cluster::{Cluster, SMALL};
use crate::serve::{Server, runtime};
use crate::world::{Ran, World, check_paused, filtered, set_mode, signal, signal_until_exit};

/// A world with images in its data directory.
pub(crate) fn world() -> World {
    let world = World::new();
    let named = std::env::var_os("MOOTHALL_TEST_IMAGES").map(PathBuf::from);
    let images = named.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").unwrap();
        Path::new(&home).join(".cache/moothall/images-data/images")
    });
    assert!(
        images.is_dir(),
        "no images in {}; create them with `moothall image build`",
        images.display()
    );
    let home = world.root().join("home");
    let (data, cache) = (home.join(".local/share/moothall"), home.join(".cache/moothall"));
    for folder in [&data, &cache] {
        fs_err::create_dir_all(folder).unwrap();
    }
    fs_err::os::unix::fs::symlink(images, data.join("images")).unwrap();
    // Tests of the other crates use the same templates: booting a machine for one takes longer than
    // most tests. Probes are not shared, because some tests replace the runtime.
    let templates = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sandboxes/templates");
    fs_err::create_dir_all(&templates).unwrap();
    set_mode(&templates, 0o700);
    fs_err::os::unix::fs::symlink(templates, cache.join("templates")).unwrap();
    world
}

/// The fastest engine. The others have their own tests.
const RUN: [&str; 3] = ["run", "--isolation", "runc"];

fn run(world: &World, more: &[&str]) -> Ran {
    world.run(&[&RUN[..], more].concat())
}

const FAKE: [&str; 4] = ["--config", "fake.toml", "--model", "openai/gpt-4.1-mini"];

/// A program as the fake provider returns it.
fn program(code: &str) -> String {
    json!({"reasoning": "So.", "code": code, "dependencies": [], "confidence": 0.9}).to_string()
}

/// A provider that answers calls from this list, hangs on `None`, and reports when it does.
fn provider(world: &World, answers: Vec<Option<String>>) -> (Fake, mpsc::Receiver<()>) {
    let fake = Fake::start();
    let next = Arc::new(AtomicUsize::new(0));
    let (hangs, hanging) = mpsc::channel();
    fake.respond_with(move |_| match answers.get(next.fetch_add(1, Ordering::SeqCst)) {
        Some(Some(text)) => ProviderBehaviour::text(text),
        Some(None) => {
            let _ = hangs.send(());
            ProviderFault::Hang.into()
        }
        None => ProviderFault::Unauthorized.into(),
    });
    fake.configure(world, "");
    (fake, hanging)
}

fn runs(world: &World) -> Value {
    world.run(&["runs", "--json"]).json()["runs"].clone()
}

#[test]
fn the_demo_primes_program_passes_and_its_output_is_printed() {
    let world = world();
    let asked = ["--model", "demo", "print the first 20 primes", "--expect", r"regex:^2\s+3\s+5"];
    assert_snapshot!(run(&world, &asked));
}

#[test]
fn without_a_contract_a_program_ran_and_did_not_pass() {
    let world = world();
    assert_snapshot!(run(&world, &["--model", "demo", "print the first 3 primes"]));
}

#[test]
fn second_attempt_learns_from_the_critique_and_passes() {
    let world = world();
    world.write("sales.csv", "month,amount\njan,10\nfeb,20\n");
    let asked = [
        "--model",
        "demo",
        "add up the amounts in sales.csv",
        "--input",
        "sales.csv",
        "--expect",
        "regex:30",
        "--receipt",
        "receipt",
    ];
    assert_snapshot!(run(&world, &asked));
    assert_snapshot!(world.run(&["verify", "receipt"]));
}

#[test]
fn a_program_with_fabricated_data_does_not_pass() {
    let world = world();
    let asked =
        ["--model", "demo", "read users.json and print the usernames", "--expect", "regex:."];
    let ran = run(&world, &asked);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert_snapshot!(ran);
}

/// Regression: it only said that the output does not have the expected form.
#[test]
fn an_unexpected_output_is_shown_with_what_was_expected() {
    let world = world();
    for (expected, shown) in [
        ("42", &["contract.pattern: ", "    expected: 42", "    got:      41"][..]),
        ("text:42", &["contract.text: ", "    expected line 1: 42"][..]),
    ] {
        let (_fake, _) = provider(&world, vec![Some(program("print(41)"))]);
        let task = ["print 41", "--expect", expected, "--attempts", "1"];
        let ran = run(&world, &[&FAKE[..], &task].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "41\n"), "{ran}");
        let after = ran.stderr.lines().skip_while(|line| !line.starts_with("not passed"));
        let after: Vec<&str> = after.collect();
        for part in shown {
            assert!(after.iter().any(|line| line.starts_with(part)), "{part} in {ran}");
        }
    }
}

#[test]
fn a_program_run_prints_one_json_object_on_request() {
    let world = world();
    let ran = run(&world, &["--model", "demo", "--json", "print the first 3 primes"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
    let mut report = ran.json();
    // The demo's text and the sandbox's numbers have their own tests.
    for field in ["code", "input", "attempts", "stdout", "latency_ms"] {
        assert!(report.as_object_mut().unwrap().shift_remove(field).is_some(), "{field} in {ran}");
    }
    assert_snapshot!(filtered(&format!("{report:#}")));
}

#[test]
fn program_runs_can_be_requested_as_json_over_stdio() {
    let world = world();
    let (_fake, _) = provider(&world, vec![Some(program("print(open('/inputs/a.txt').read())"))]);
    let request = json!({
        "task": "print a.txt",
        "inputs": {"a.txt": "hello"},
        "expect": {"text": "hello"},
        "attempts": 1,
    });
    let arguments = [&RUN[..], &FAKE, &["--stdio"]].concat();
    let ran = world.run_with_input(&arguments, request.to_string().as_bytes());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (result, events) = lines.split_last().unwrap();
    assert_eq!(result["result"]["result"], "passed", "{ran}");
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let expected = [
        "run_started",
        "attempt_started",
        "model_replied",
        "code_generated",
        "executed",
        "judged",
        "run_finished",
    ];
    assert_eq!(names, expected);

    let ran = world.run_with_input(&arguments, b"{\"task\": 3}");
    assert_eq!(ran.code, Some(2), "{ran}");
    let told = ran.json();
    assert_eq!(told["error"]["exit_code"], 2, "{ran}");
}

#[test]
fn a_check_runs_in_its_own_sandbox_and_output_files_are_kept() {
    let world = world();
    let code =
        "import os\nos.makedirs('out', exist_ok=True)\nopen('out/sum.txt', 'w').write('3')\n";
    let (_fake, _) = provider(&world, vec![Some(program(code))]);
    world.write("check.py", "assert open('/inputs/out/sum.txt').read() == '3'\n");
    let more = [
        "write 1 + 2 into sum.txt",
        "--check",
        "check.py",
        "--expect-file",
        "sum.txt",
        "--output",
        "kept",
    ];
    let ran = run(&world, &[&FAKE[..], &more].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(world.read("kept/sum.txt"), "3");
    assert_snapshot!(ran);
}

#[test]
fn ctrl_c_twice_stops_the_run_which_can_be_resumed_and_leaves_no_sandbox() {
    let world = world();
    let (_fake, hanging) = provider(&world, vec![None]);
    let arguments = [&RUN[..], &FAKE, &["print 3"]].concat();
    let child = world.command(&arguments).spawn().unwrap();
    hanging.recv_timeout(Duration::from_secs(60)).unwrap();
    let ran = world.ran(&arguments, signal_until_exit(child, "INT"));
    assert_eq!(ran.code, Some(130), "{ran}");
    assert!(ran.stderr.contains("hint: continue it with `moothall resume "), "{ran}");
    assert!(!ran.stderr.contains(" WARN "), "{ran}");
    assert_ne!(runs(&world)[0]["state"], "cancelled");
    let left = world.run(&["sandbox", "list", "--json"]);
    assert!(!left.stdout.contains("moothall-"), "{left}");
}

#[test]
fn one_ctrl_c_pauses_a_program_run_which_resumes_without_repeating_its_call() {
    let world = world();
    let (arrived, arrivals) = mpsc::channel();
    let fake = Fake::start();
    fake.respond_with(move |_| {
        arrived.send(()).unwrap();
        ProviderBehaviour::text(program("print(3)")).with_latency(Duration::from_millis(700))
    });
    fake.configure(&world, "");
    let arguments = [&RUN[..], &FAKE, &["print 3"]].concat();
    let child = world.command(&arguments).spawn().unwrap();
    arrivals.recv_timeout(Duration::from_secs(60)).unwrap();
    signal(&child, "INT");
    let ran = world.ran(&arguments, child.wait_with_output().unwrap());
    check_paused(&world, &ran);
    let resumed = world.run(&["resume", &world.only_run(), "--config", "fake.toml"]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "3\n"), "{resumed}");
    assert_eq!(fake.stats().received, 1);
}

#[test]
fn a_program_run_on_a_terminal_says_how_much_of_the_answer_has_arrived() {
    let world = world();
    let fake = Fake::start();
    let slow = ProviderFault::SlowDrip { chunk: 20, every: Duration::from_millis(50) };
    fake.always(ProviderBehaviour::text(program("print(3)")).with_fault(slow));
    fake.configure(&world, "");
    let arguments = [&RUN[..], &FAKE, &["print 3", "--color", "never"]].concat();
    let mut person = Person::start(world.command(&arguments));
    person.answer("… waiting for openai/gpt-4.1-mini, tokens received: about ", "");
    person.answer("… running the program, ", "");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("3\r\n"), "{shown}");
}

#[test]
fn a_server_keeps_a_sandbox_ready_between_runs_and_ends_it_when_it_stops() {
    let world = world();
    world.write("vm.toml", "[isolation]\nengine = \"microvm\"\n");
    let server = Server::start(&world, &["--config", "vm.toml"]);
    let wanted = json!({"workflow": "reflexion", "task": "print the first 5 primes"});
    until_idle_sandbox_is_used(&world, "microvm", || {
        runtime().block_on(async {
            let ended = server.over(&server.begin(&wanted).await).await;
            assert_eq!(ended["status"]["verdict"], "pass", "{ended:#}");
        });
    });
    server.stop();
    assert_eq!(sandboxes(&world, "microvm"), Vec::<Value>::new());
}

#[test]
fn a_worker_keeps_a_sandbox_ready_between_runs_and_ends_it_when_it_stops() {
    let world = world().with("MOOTHALL_ISOLATION__ENGINE", "runsc");
    let mut cluster = Cluster::in_world(SMALL, world);
    let engine = cluster.engine();
    until_idle_sandbox_is_used(&cluster.world, "runsc", || {
        let command = ["run", "--model", "demo", "print the first 5 primes", "--runner", &engine];
        let ran = cluster.world.run(&command);
        assert_eq!(ran.code, Some(0), "{ran}");
    });
    let worker = cluster.workers.remove(0);
    worker.signal("-TERM");
    worker.wait();
    assert_eq!(sandboxes(&cluster.world, "runsc"), Vec::<Value>::new());
}

/// Runs programs until one of them used the sandbox that was idle before, and another one took its
/// place. The pool may still be starting that sandbox when the next program arrives, which then
/// gets a new one, so this can take more than two programs.
pub(crate) fn until_idle_sandbox_is_used(world: &World, engine: &str, mut run: impl FnMut()) {
    let mut idle: Option<String> = None;
    for _ in 0..10 {
        run();
        // A sandbox that belongs to no run has no labels.
        let found = until_sandboxes(
            world,
            engine,
            |found| matches!(found, [one] if one["labels"] == json!({})),
        );
        let now = found[0]["name"].to_string();
        if idle.replace(now.clone()).is_some_and(|before| before != now) {
            return;
        }
    }
    panic!("ten programs did not use the idle sandbox {idle:?}");
}

/// Waits until no sandbox is left.
pub(crate) fn until_no_sandbox(world: &World, engine: &str) {
    until_sandboxes(world, engine, <[Value]>::is_empty);
}

fn until_sandboxes(world: &World, engine: &str, reached: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let found = sandboxes(world, engine);
        if reached(&found) {
            return found;
        }
        assert!(Instant::now() < until, "{found:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The sandboxes that exist, all of this engine.
fn sandboxes(world: &World, engine: &str) -> Vec<Value> {
    let listed = world.run(&["sandbox", "list", "--json"]).json();
    let sandboxes = listed.as_array().unwrap().clone();
    assert!(sandboxes.iter().all(|one| one["engine"] == engine), "{sandboxes:#?}");
    sandboxes
}

#[test]
fn a_killed_program_run_resumes_without_repeating_calls() {
    let world = world();
    let answers = vec![
        Some(program("raise SystemExit(3)")),
        None,
        Some("It ends with 3. Print 3 instead.".to_owned()),
        Some(program("print(3)")),
    ];
    let (fake, hanging) = provider(&world, answers);
    let task = ["print 3", "--expect", "text:3"];
    let arguments = [&RUN[..], &FAKE, &task].concat();
    let mut child = world.command(&arguments).spawn().unwrap();
    // The first program was generated and run; its critique never arrives.
    hanging.recv_timeout(Duration::from_secs(60)).unwrap();
    signal(&child, "KILL");
    child.wait().unwrap();
    let before = runs(&world);
    assert_eq!((&before[0]["state"], &before[0]["is_driven"]), (&json!("running"), &json!(false)));
    let id = before[0]["run_id"].as_str().unwrap();

    let ran = world.run(&["resume", "--config", "fake.toml", id, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let after = ran.json();
    assert_eq!((&after["result"], &after["attempts"][1]["attempt"]), (&json!("passed"), &json!(2)));
    // One program, a critique requested twice because the first call was interrupted, one program.
    assert_eq!(fake.stats().received, 4);
}

#[test]
fn a_used_up_budget_pauses_a_program_run_and_more_resumes_it() {
    let world = world();
    let (fake, _) = provider(&world, vec![Some(program("print(3)"))]);
    let task = ["print 3", "--expect", "text:3", "--budget", "0.0001"];
    let ran = run(&world, &[&FAKE[..], &task].concat());
    assert_eq!(ran.code, Some(5), "{ran}");
    assert_eq!(fake.stats().received, 0);
    let runs = runs(&world);
    let id = runs[0]["run_id"].as_str().unwrap();
    let ran = world.run(&["resume", "--config", "fake.toml", id, "--budget", "1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "3\n"), "{ran}");
}

#[test]
fn a_recorded_program_run_is_replayed_without_any_call() {
    let world = world();
    let (fake, _) = provider(&world, vec![Some(program("print(3)"))]);
    let task = ["print 3", "--expect", "text:3"];
    let recorded = run(&world, &[&FAKE[..], &task, &["--record", "kept"]].concat());
    assert_eq!(recorded.code, Some(0), "{recorded}");
    drop(fake);
    let repeated = run(&world, &[&FAKE[..], &task, &["--replay", "kept"]].concat());
    assert_eq!((repeated.code, repeated.stdout.as_str()), (Some(0), "3\n"), "{repeated}");
}

#[test]
fn the_log_of_a_program_run_has_five_lines_and_no_task_text() {
    let world = world().with("MOOTHALL_LOG__FORMAT", "json");
    let (_fake, _) = provider(&world, vec![Some(program("print(3)"))]);
    let task = ["-v", "print the secret number", "--expect", "text:3"];
    let ran = run(&world, &[&FAKE[..], &task].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(!ran.stderr.contains("secret"), "{ran}");
    let lines = ran.stderr.lines().filter(|line| line.contains("\"target\":\"moothall::run\""));
    let lines: Vec<String> = lines
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let sandbox = line.get("sandbox").and_then(Value::as_str).map(str::len);
            if sandbox.is_some_and(|length| length > 0) {
                line["sandbox"] = "[SANDBOX]".into();
            }
            filtered(&line.to_string())
        })
        .collect();
    assert_snapshot!(lines.join("\n"));
}
