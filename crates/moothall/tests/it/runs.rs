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
fn listing_runs_without_any_run_creates_nothing() {
    let world = World::new();
    assert_snapshot!(world.run(&["runs"]));
    assert_snapshot!(world.run(&["runs", "--json"]));
    assert!(!world.root().join("home/.local").exists());
}

/// Regression: every error was taken for a missing store, so runs seemed to be gone.
#[test]
fn a_data_directory_that_cannot_be_read_is_an_error_and_not_an_empty_list() {
    let world = World::new();
    let data = world.root().join("home/.local/share");
    fs_err::create_dir_all(&data).unwrap();
    fs_err::write(data.join("moothall"), "not a directory").unwrap();
    for command in [&["runs"][..], &["show", "0123"]] {
        let ran = world.run(command);
        assert_eq!(ran.code, Some(4), "{ran}");
        assert!(ran.stderr.contains("hint: check that you may write to the data"), "{ran}");
    }
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
fn a_run_is_shown_as_running_only_while_a_process_executes_it() {
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
fn the_last_program_of_a_run_can_be_printed() {
    let (world, ..) = world();
    let ran = world.run(&["show", "019a85c0", "--code"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "print('2 3 5')\n"), "{ran}");
    assert_snapshot!(world.run(&["show", "019a85c2", "--code"]));
}

#[test]
fn files_and_receipt_of_a_run_can_be_exported_at_any_time() {
    let (world, ..) = world();
    let ran = world.run(&["show", "019a85c0", "--output", "out", "--receipt", "receipt"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(fs_err::read(world.path("out/plots/chart.png")).unwrap(), CHART);
    assert_snapshot!(world.run(&["verify", "receipt"]));
    assert_snapshot!(world.run(&["show", "019a85c1", "--receipt", "none"]));
}

#[test]
fn an_unknown_or_ambiguous_run_id_is_a_usage_error() {
    let (world, ..) = world();
    assert_snapshot!(world.run(&["show", "deadbeef"]));
    assert_snapshot!(world.run(&["events", "019a85c"]));
    assert_snapshot!(World::new().run(&["cancel", "019a"]));
}

#[test]
fn events_are_printed_as_text_and_as_json() {
    let (world, ..) = world();
    assert_snapshot!(world.run(&["events", "019a85c0"]));
    assert_snapshot!(world.run(&["events", "019a85c0", "--json", "--from", "11"]));
    let followed = world.run(&["events", "019a85c0", "--follow"]);
    assert_eq!(followed.stdout, world.run(&["events", "019a85c0"]).stdout);
}

#[test]
fn following_a_run_shows_events_of_another_process_until_its_end() {
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
fn ctrl_c_ends_following_but_not_the_run() {
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
fn an_interrupted_run_is_cancelled_immediately() {
    let (world, _scene, [passed, _, killed]) = world();
    assert_snapshot!(world.run(&["cancel", killed.as_str()]));
    assert_snapshot!(world.run(&["cancel", killed.as_str(), "--json"]));
    assert_snapshot!(world.run(&["cancel", passed.as_str()]));
    let last = world.run(&["events", killed.as_str()]).stdout;
    assert!(last.trim_end().ends_with("cancelled"), "{last}");
}

#[test]
fn cancelling_a_run_of_another_process_requests_its_stop() {
    let (world, scene, [_, _, killed]) = world();
    let _lock = scene.lock(&killed);
    let child = world.command(&["cancel", killed.as_str()]).spawn().unwrap();
    scene.block_on(async {
        while !scene
            .store
            .control_requests(&killed)
            .await
            .unwrap()
            .contains(&ControlRequest::Cancel)
        {
            tokio::task::yield_now().await;
        }
        cancel(&*scene.store, &killed, None).await.unwrap();
    });
    let ran = world.ran(&["cancel"], child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
}

#[test]
fn a_finished_or_running_run_cannot_be_resumed() {
    let (world, scene, [passed, _, killed]) = world();
    assert_snapshot!(world.run(&["resume", passed.as_str()]));
    let _lock = scene.lock(&killed);
    assert_snapshot!(world.with("OPENAI_API_KEY", "a-key").run(&["resume", killed.as_str()]));
}

#[test]
fn program_and_model_text_is_sanitized_for_the_terminal() {
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
