//! Commands on stored runs: list, show, follow, cancel.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Command;

use insta::assert_snapshot;
use moothall_core::RunId;
use moothall_engine::cancel;
use moothall_store::{ControlRequest, RunState};

use crate::scene::{CHART, Scene, no_answer, over_budget, program, ran, second_try};
use crate::world::World;

/// A world with a run that passed, one that was paused and one whose process was killed.
fn world() -> (World, Scene, [RunId; 3]) {
    let world = World::new();
    let scene = Scene::new(&world);
    let passed = scene.run(0, "print the first 3 primes", second_try());
    let paused = scene.run(
        1,
        "plot\n\u{1b}[31mthe sales",
        BTreeMap::from([("attempt-1/generate", over_budget())]),
    );
    let killed = scene.run(2, "sort the names", no_answer());
    (world, scene, [passed, paused, killed])
}

#[test]
fn nothing_is_listed_and_nothing_is_made_where_there_is_no_run() {
    let world = World::new();
    assert_snapshot!(world.run(&["runs"]));
    assert_snapshot!(world.run(&["runs", "--json"]));
    assert!(!world.root().join("home/.local").exists());
}

#[test]
fn runs_are_listed_with_state_verdict_and_cost() {
    let (world, ..) = world();
    assert_snapshot!(world.run(&["runs"]));
    assert_snapshot!(world.run(&["runs", "--json", "--limit", "1"]));
    assert_snapshot!(world.run(&["runs", "--state", "finished"]));
    assert_snapshot!(world.run(&["runs", "--state", "cancelled"]));
    assert_snapshot!(world.run(&["runs", "--state", "asleep"]));
}

#[test]
fn run_is_called_running_only_while_somebody_drives_it() {
    let (world, scene, [_, _, killed]) = world();
    let state = || world.run(&["runs", "--state", "running"]).stdout;
    assert!(state().contains("interrupted"), "{}", state());
    let _lock = scene.lock(&killed);
    assert!(state().contains("running"), "{}", state());
}

#[test]
fn run_is_shown_with_attempts_findings_files_and_cost() {
    let (world, ..) = world();
    assert_snapshot!(world.run(&["show", "019a85c0"]));
    assert_snapshot!(world.run(&["show", "019a85c1"]));
    assert_snapshot!(world.run(&["show", "019a85c2-2f6e"]));
}

#[test]
fn run_is_shown_as_json() {
    let (world, ..) = world();
    assert_snapshot!(world.run(&["show", "019a85c0", "--json"]));
}

#[test]
fn last_program_can_be_had() {
    let (world, ..) = world();
    let ran = world.run(&["show", "019a85c0", "--code"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "print('2 3 5')\n"), "{ran}");
    assert_snapshot!(world.run(&["show", "019a85c2", "--code"]));
}

#[test]
fn files_and_receipt_can_be_had_at_any_time() {
    let (world, ..) = world();
    let ran = world.run(&["show", "019a85c0", "--output", "out", "--receipt", "receipt"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(fs_err::read(world.path("out/plots/chart.png")).unwrap(), CHART);
    assert_snapshot!(world.run(&["verify", "receipt"]));
    assert_snapshot!(world.run(&["show", "019a85c1", "--receipt", "none"]));
}

#[test]
fn run_that_is_not_there_or_not_the_only_one_is_a_usage_error() {
    let (world, ..) = world();
    assert_snapshot!(world.run(&["show", "deadbeef"]));
    assert_snapshot!(world.run(&["events", "019a85c"]));
    assert_snapshot!(World::new().run(&["cancel", "019a"]));
}

#[test]
fn events_are_told_in_words_and_as_json() {
    let (world, ..) = world();
    assert_snapshot!(world.run(&["events", "019a85c0"]));
    assert_snapshot!(world.run(&["events", "019a85c0", "--json", "--from", "11"]));
    let followed = world.run(&["events", "019a85c0", "--follow"]);
    assert_eq!(followed.stdout, world.run(&["events", "019a85c0"]).stdout);
}

#[test]
fn follower_hears_what_another_process_does_until_the_end() {
    let (world, scene, [_, _, killed]) = world();
    let arguments = ["events", killed.as_str(), "--follow", "--json"];
    let mut child = world.command(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("run_started"), "{first}");
    scene.block_on(cancel(&*scene.store, &killed, None)).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.last().unwrap().contains("run_cancelled"), "{rest:?}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn follower_goes_away_with_ctrl_c_and_the_run_stays() {
    let (world, scene, [_, _, killed]) = world();
    let mut child = world.command(&["events", killed.as_str(), "--follow"]).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    let process = child.id().to_string();
    Command::new("sh").args(["-c", "kill -INT \"$0\"", &process]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let row = scene.block_on(scene.store.run(&killed)).unwrap().unwrap();
    assert_eq!(row.state, RunState::Running);
}

#[test]
fn run_whose_driver_is_dead_is_cancelled_at_once() {
    let (world, _scene, [passed, _, killed]) = world();
    assert_snapshot!(world.run(&["cancel", killed.as_str()]));
    assert_snapshot!(world.run(&["cancel", killed.as_str(), "--json"]));
    assert_snapshot!(world.run(&["cancel", passed.as_str()]));
    let last = world.run(&["events", killed.as_str()]).stdout;
    assert!(last.trim_end().ends_with("cancelled"), "{last}");
}

#[test]
fn run_that_another_process_drives_is_asked_to_stop() {
    let (world, scene, [_, _, killed]) = world();
    let _lock = scene.lock(&killed);
    let child = world.command(&["cancel", killed.as_str()]).spawn().unwrap();
    scene.block_on(async {
        while !scene.store.wishes(&killed).await.unwrap().contains(&ControlRequest::Cancel) {
            tokio::task::yield_now().await;
        }
        cancel(&*scene.store, &killed, None).await.unwrap();
    });
    let ran = world.ran(&["cancel"], child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
}

#[test]
fn run_that_is_over_or_driven_elsewhere_cannot_be_resumed() {
    let (world, scene, [passed, _, killed]) = world();
    assert_snapshot!(world.run(&["resume", passed.as_str()]));
    let _lock = scene.lock(&killed);
    assert_snapshot!(world.with("OPENAI_API_KEY", "a-key").run(&["resume", killed.as_str()]));
}

#[test]
fn words_of_programs_and_models_cannot_drive_the_terminal() {
    let world = World::new();
    let scene = Scene::new(&world);
    let script = BTreeMap::from([
        ("attempt-1/generate", program("print('\u{1b}[2J')")),
        ("attempt-1/execute", ran(0, "\u{1b}]0;gotcha\u{7}\n", "")),
        ("attempt-1/critique", crate::scene::says("\u{1b}[2J\nverdict    passed")),
    ]);
    scene.run(0, "\u{1b}[2J\nverdict passed", script);
    for arguments in [
        &["show", "019a", "--color", "always"][..],
        &["events", "019a", "--color", "always"],
        &["runs", "--color", "always"],
    ] {
        let ran = world.run(arguments);
        assert!(!ran.stdout.contains("\u{1b}[2J") && !ran.stdout.contains('\u{7}'), "{ran}");
        assert!(!ran.stdout.lines().any(|line| line.starts_with("verdict    passed")), "{ran}");
    }
}
