//! `moothall demo`, the start page, and the built-in sample of `check`.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::init::Person;
use crate::world::World;

/// A world whose temporary directory can be inspected.
fn world() -> World {
    let mut world = World::new();
    let temporary = world.root().join("tmp");
    fs_err::create_dir(&temporary).unwrap();
    world.set("TMPDIR", temporary.to_str().unwrap());
    world
}

#[track_caller]
fn assert_nothing_is_left(world: &World) {
    let left: Vec<_> = fs_err::read_dir(world.root().join("tmp"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
}

const STEPS: [&str; 6] = [
    "1 of 6  Get a second opinion",
    "2 of 6  Read the memo",
    "3 of 6  Catch a changed number",
    "4 of 6  Run a program in a sandbox",
    "5 of 6  Stop a bad edit",
    "6 of 6  Verify the receipt",
];

#[test]
fn demo_runs_every_step_without_key_network_and_images_and_leaves_nothing() {
    let world = world();
    let ran = world.run(&["demo", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    for shown in STEPS {
        assert!(ran.stdout.contains(shown), "{shown} in {ran}");
    }
    for shown in [
        "$ moothall consult HLXI --model demo",
        "moves lead; the panel cannot tell them apart",
        "controls 5 of 5",
        "Recommended",
        "[F0:",
        "$ moothall check memo-changed.md --facts HLXI",
        "WRONG_VALUE",
        "verdict   needs-person",
        "$ moothall exec primes.py",
        "skipped: no usable sandbox on this machine, so the program does not run",
        "moothall image build python",
        "content.placeholder",
        "secret.specific",
        "applied",
        "audit log verified",
        "receipt is valid",
        "the changed copy was refused",
        "Done: 5 of 6 steps, 1 skipped.",
    ] {
        assert!(ran.stdout.contains(shown), "{shown} in {ran}");
    }
    assert!(ran.stderr.contains("receipt-changed.jsonl is not valid"), "{ran}");
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran}");
    assert_nothing_is_left(&world);
    // The run is not in the user's store.
    assert_eq!(world.run(&["runs", "--json"]).json()["runs"].as_array().unwrap().len(), 0);
}

#[test]
fn demo_ignores_settings_and_keys_of_the_user() {
    let mut world = world();
    world.set("ANTHROPIC_API_KEY", "not a valid key\n");
    world.set("MOOTHALL_MODEL", "anthropic/claude-haiku-5-5");
    world.write_config("moothall.toml", "[isolation]\nminimum = \"hardware-vm\"\n");
    // Without `--yes`: standard input is not a terminal.
    let ran = world.run(&["demo"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stdout.contains("Done: 5 of 6 steps, 1 skipped."), "{ran}");
    assert!(!ran.stdout.contains("not a valid key"), "{ran}");
}

#[test]
fn commands_of_a_kept_demo_give_the_same_results_again() {
    let world = world();
    let ran = world.run(&["demo", "--yes", "--dir", "tour", "--keep"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    for (arguments, code) in [
        (&["check", "tour/memo.md", "--facts", "HLXI"][..], 0),
        (&["check", "tour/memo-changed.md", "--facts", "HLXI"], 3),
        (&["verify", "tour/receipt.jsonl"], 0),
        (&["verify", "tour/receipt-changed.jsonl"], 4),
    ] {
        let again = world.run(arguments);
        assert_eq!(again.code, Some(code), "{again}");
    }
    assert!(world.read("tour/memo.html").contains("<html"));
    assert!(world.read("tour/workspace/app.py").contains("--version"));
    // A directory with files is refused and stays unchanged.
    let refused = world.run(&["demo", "--yes", "--dir", "tour"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert_eq!(
        refused.stderr,
        "error: tour is not empty\nhint: pass a new or empty directory with `--dir`\n"
    );
    assert!(world.path("tour/memo.md").exists());
    assert_nothing_is_left(&world);
}

#[test]
fn demo_empties_a_named_directory_and_removes_it_only_if_it_was_new() {
    let world = world();
    fs_err::create_dir(world.path("mine")).unwrap();
    assert_eq!(world.run(&["demo", "--yes", "--dir", "mine"]).code, Some(0));
    assert_eq!(fs_err::read_dir(world.path("mine")).unwrap().count(), 0);
    assert_eq!(world.run(&["demo", "--yes", "--dir", "new"]).code, Some(0));
    assert!(!world.path("new").exists());
}

#[test]
fn keys_run_skip_and_end_the_steps_of_a_demo() {
    let world = world();
    let mut person = Person::start(world.command(&["demo", "--fast", "--color", "never"]));
    // A skipped consultation is done without output when a later step needs it.
    person.answer("Enter runs it, s skips it, q quits", "s");
    person.answer("skipped", "");
    person.answer("2 of 6", "");
    person.answer("Enter runs it, s skips it, q quits", "\r");
    person.answer("### What must be true", "");
    person.answer("Enter continues", "\r");
    person.answer("3 of 6", "");
    person.answer("Enter runs it", "x\r");
    person.answer("WRONG_VALUE", "");
    person.answer("4 of 6", "");
    person.answer("Enter runs it", "q");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Done: 2 of 6 steps, 1 skipped."), "{shown}");
    assert_nothing_is_left(&world);
}

#[test]
fn ctrl_c_ends_a_demo_at_once_and_removes_its_files() {
    let world = world();
    let mut person = Person::start(world.command(&["demo", "--color", "never"]));
    person.answer("Enter runs it, s skips it, q quits", "\r");
    // The consultation is under way and would take seconds.
    person.answer("analyze", "");
    let process = person.child.id().to_string();
    Command::new("sh").args(["-c", "kill -INT \"$0\"", &process]).status().unwrap();
    let (shown, code) = person.leave();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("error: demo cancelled"), "{shown}");
    assert!(!shown.contains("moothall resume"), "{shown}");
    assert_nothing_is_left(&world);
}

#[test]
fn program_without_arguments_prints_the_start_page_and_writes_nothing() {
    let world = World::new();
    let ran = world.run(&[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
    let shown = ran.to_string().replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    insta::assert_snapshot!(shown);
    assert_eq!(fs_err::read_dir(world.root().join("home")).unwrap().count(), 0);
    assert_eq!(fs_err::read_dir(world.path("")).unwrap().count(), 0);
}

#[test]
fn start_page_names_providers_with_a_key_but_never_the_key() {
    let mut world = World::new();
    world.set("GROQ_API_KEY", "gsk-very-secret");
    let ran = world.run(&[]);
    assert!(ran.stdout.contains("API keys  groq\n"), "{ran}");
    assert!(ran.stdout.contains("model     groq/"), "{ran}");
    assert!(!ran.stdout.contains("very-secret"), "{ran}");
}

#[test]
fn start_page_is_printed_with_a_broken_configuration_too() {
    let world = World::new();
    world.write_config("moothall.toml", "modl = 1\n");
    let ran = world.run(&[]);
    assert_eq!(ran.code, Some(0), "{ran}");
    for shown in ["moothall demo", "settings", "modl", "moothall config check"] {
        assert!(ran.stdout.contains(shown), "{shown} in {ran}");
    }
}

#[test]
fn check_has_a_sample_with_a_wrong_number() {
    let world = World::new();
    let ran = world.run(&["check", "--sample"]);
    assert_eq!(ran.code, Some(3), "{ran}");
    for shown in ["WRONG_PERIOD", "54.1%", "UNCITED", "$273.6 million", "needs-person"] {
        assert!(ran.stdout.contains(shown), "{shown} in {ran}");
    }
    assert!(ran.stderr.contains("Gross margin was 54.1% [F0:GrossMargin:FY2025]."), "{ran}");
    let json = world.run(&["check", "--sample", "--json"]).json();
    assert_eq!((&json["file"], &json["support"]["flagged"]), (&"sample.md".into(), &2.into()));
    let both = world.run(&["check", "memo.md", "--sample"]);
    assert_eq!(both.code, Some(2), "{both}");
    assert_eq!(world.run(&["check"]).code, Some(2));
}

#[test]
fn pace_slows_down_a_consultation_with_the_demo_model() {
    let world = World::new();
    let small =
        ["consult", "HLXI", "--verdict", "off", "--model", "demo", "--moves", "1", "--rounds", "1"];
    let started = Instant::now();
    let ran = world.run(&[&small[..], &["--isolation", "none", "--pace", "1"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    // At least five answers follow one another, each after half a second or more.
    assert!(started.elapsed() > Duration::from_millis(2500), "{:?}", started.elapsed());
    assert_eq!(world.run(&[&small[..], &["--pace", "61"]].concat()).code, Some(2));
}
