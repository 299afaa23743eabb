//! `moothall runs rm` and `prune`; active runs are never deleted.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use moothall_core::RunId;
use moothall_store::{RunFilter, TeamFilter};

use crate::scene::{Scene, no_answer, over_budget, second_try};
use crate::world::{Ran, World};

/// A world with a run that passed, one that was paused and one whose process was killed.
fn world() -> (World, Scene, [RunId; 3]) {
    let world = World::new();
    let scene = Scene::new(&world);
    let passed = scene.run(0, "print the first 3 primes", second_try());
    let paused =
        scene.run(1, "plot the sales", BTreeMap::from([("attempt-1/generate", over_budget())]));
    let killed = scene.run(2, "sort the names", no_answer());
    (world, scene, [passed, paused, killed])
}

fn left(scene: &Scene) -> Vec<RunId> {
    let rows = scene
        .block_on(scene.store.runs(RunFilter { teams: TeamFilter::All, state: None, limit: 10 }))
        .unwrap();
    rows.into_iter().map(|row| row.run_id).collect()
}

/// The number of runs in a report, and whether they were deleted.
fn told(ran: &Ran) -> (usize, bool) {
    let report = ran.json();
    let runs = report["runs"].as_array().unwrap();
    let bytes: u64 = runs.iter().map(|run| run["bytes"].as_u64().unwrap()).sum();
    assert_eq!(report["bytes"], bytes, "{ran}");
    (runs.len(), report["deleted"].as_bool().unwrap())
}

#[test]
fn deleting_a_finished_run_keeps_the_others() {
    let (world, scene, [passed, paused, killed]) = world();
    let ran = world.run(&["runs", "rm", passed.as_str(), "019a85c0", "--yes", "--json"]);
    assert_eq!((ran.code, told(&ran)), (Some(0), (1, true)), "{ran}");
    assert_eq!(left(&scene), [killed, paused]);
    let lock = format!("home/.local/state/moothall/locks/{passed}.lock");
    assert!(!world.root().join(lock).exists());
    assert_snapshot!(world.run(&["show", passed.as_str()]));
}

#[test]
fn no_run_is_deleted_if_one_of_them_may_not_be_or_without_confirmation() {
    let (world, scene, all) = world();
    let [passed, paused, killed] = all.each_ref().map(RunId::as_str);
    assert_snapshot!(world.run(&["runs", "rm", passed, paused, "--yes"]));
    assert_snapshot!(world.run(&["runs", "rm", passed, killed, "--yes"]));
    assert_snapshot!(world.run(&["runs", "rm", passed, "deadbeef", "--yes"]));
    let asked = world.run(&["runs", "rm", passed]);
    assert_eq!(asked.code, Some(2), "{asked}");
    assert!(asked.stderr.ends_with("hint: pass `--yes` to confirm\n"), "{asked}");
    assert_snapshot!(world.run(&["runs", "rm"]));
    assert_eq!(left(&scene).len(), 3);
}

#[test]
fn a_run_executed_by_a_process_is_never_deleted() {
    let (world, scene, [passed, paused, killed]) = world();
    let locks = [scene.lock(&killed), scene.lock(&passed)];
    for run in [&killed, &passed] {
        let ran = world.run(&["runs", "rm", run.as_str(), "--yes", "--force"]);
        assert_eq!(ran.code, Some(4), "{ran}");
        assert!(ran.stderr.contains("another process is executing run"), "{ran}");
    }
    let prune = ["runs", "prune", "--older-than", "0s", "--yes", "--force", "--json"];
    let ran = world.run(&prune);
    assert_eq!((ran.code, told(&ran)), (Some(0), (1, true)), "{ran}");
    assert_eq!(left(&scene), [killed, passed]);
    drop(locks);
    assert!(!left(&scene).contains(&paused));
    assert_eq!(told(&world.run(&prune)), (2, true));
    assert_eq!(left(&scene), []);
}

#[test]
fn pruning_lists_old_runs_before_deleting_them() {
    let (world, scene, [passed, paused, killed]) = world();
    // Only one is old: ids are from 2025, but later changes of the other runs have the current
    // time.
    let dry = ["runs", "prune", "--older-than", "0s", "--dry-run", "--json"];
    assert_eq!(told(&world.run(&dry)), (1, false));
    assert_eq!(told(&world.run(&[&dry[..], &["--force"]].concat())), (3, false));
    assert_eq!(told(&world.run(&[&dry[..], &["--force", "--keep", "2"]].concat())), (1, false));
    let in_words = world.run(&["runs", "prune", "--older-than", "0s", "--dry-run"]);
    assert!(in_words.stdout.starts_with("1 run with "), "{in_words}");
    assert_snapshot!(world.run(&["runs", "prune", "--older-than", "30d", "--yes"]));
    assert_eq!(left(&scene).len(), 3);
    let ran = world.run(&["runs", "prune", "--older-than", "0s", "--yes"]);
    assert!(ran.stdout.starts_with("deleted 1 run with "), "{ran}");
    assert_eq!(left(&scene), [killed, paused]);
    assert!(ran.stderr.contains("019a85c0-2f6e"), "{ran} {passed}");
    assert_snapshot!(world.run(&["runs", "prune", "--older-than", "soon"]));
    assert_snapshot!(World::new().run(&["runs", "prune", "--older-than", "1d", "--yes"]));
}

#[test]
fn help_of_deleting_shows_every_flag() {
    let world = World::new();
    let pages = [&["runs", "rm", "--help"][..], &["runs", "prune", "--help"]]
        .map(|command| world.run(command).to_string());
    assert_snapshot!(pages.join("\n\n"));
}
