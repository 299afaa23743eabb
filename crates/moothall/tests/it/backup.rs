//! Backups: made while runs go on, looked at before they count, and whole when they come back.

use std::path::Path;

use insta::assert_snapshot;

use crate::scene::{Scene, no_answer, second_try};
use crate::world::World;

/// A consultation that takes a second or two.
const SMALL: [&str; 9] =
    ["consult", "HLXI", "--model", "demo", "--moves", "5", "--rounds", "1", "--yes"];

/// A world with a run that passed and one whose process was killed. The scene is gone: its store
/// would be open otherwise.
fn world() -> World {
    let world = World::new();
    let scene = Scene::new(&world);
    scene.run(0, "print the first 3 primes", second_try());
    scene.run(1, "sort the names", no_answer());
    drop(scene);
    world
}

fn only_run(world: &World) -> String {
    let listed = world.run(&["runs", "--json"]).json();
    listed["runs"][0]["run_id"].as_str().unwrap().to_owned()
}

fn data(world: &World) -> std::path::PathBuf {
    world.root().join("home/.local/share/moothall")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn runs_come_back_as_they_were_and_what_is_there_is_moved_aside_or_stays() {
    let world = world();
    world.write_config("keys.toml", "openai = \"sk-very-secret-indeed\"\n");
    let before = world.run(&["runs", "--json"]).stdout;
    let shown = world.run(&["show", "019a85c0", "--json"]).stdout;
    let made = world.run(&["backup", "runs.tar"]);
    assert!(made.stdout.starts_with("2 runs in runs.tar, "), "{made}");
    assert_eq!(names(&world.path("")), ["runs.tar"]);
    let packed = fs_err::read(world.path("runs.tar")).unwrap();
    assert!(!packed.windows(14).any(|part| part == b"sk-very-secret"));
    assert_snapshot!(world.run(&["backup", "runs.tar"]));
    assert_snapshot!(world.run(&["restore", "runs.tar"]));

    let gone = world.run(&["runs", "rm", "019a85c0", "--yes", "--json"]);
    assert_eq!(gone.code, Some(0), "{gone}");
    let restored = world.run(&["restore", "runs.tar", "--force", "--json"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(restored.json()["runs"], 2);
    assert_eq!(world.run(&["runs", "--json"]).stdout, before);
    assert_eq!(world.run(&["show", "019a85c0", "--json"]).stdout, shown);
    // What was there is whole as well.
    let aside = restored.json()["moved_aside"].as_str().unwrap().to_owned();
    assert!(names(&data(&world)).iter().all(|name| !name.starts_with('.')));
    let other = World::new();
    fs_err::create_dir_all(data(&other)).unwrap();
    fs_err::copy(aside, data(&other).join("moothall.db")).unwrap();
    assert_eq!(other.run(&["runs", "--json"]).json()["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn run_goes_on_after_a_restore_into_another_folder() {
    let world = World::new();
    let paused = world.run(&[&SMALL[..], &["--budget-tokens", "60000"]].concat());
    assert_eq!(paused.code, Some(5), "{paused}");
    let run = only_run(&world);
    assert_eq!(world.run(&["backup", "runs.tar"]).code, Some(0));
    let restored = world.run(&["restore", "runs.tar", "--into", "elsewhere"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert!(restored.stderr.contains("MOOTHALL_DATA_DIR=elsewhere moothall runs"), "{restored}");
    // Here it is given up; there it goes on.
    assert_eq!(world.run(&["runs", "rm", &run, "--yes", "--force"]).code, Some(0));
    let elsewhere = world.path("elsewhere").to_str().unwrap().to_owned();
    let world = world.with("MOOTHALL_DATA_DIR", &elsewhere);
    let resumed =
        world.run(&["resume", &run, "--budget-tokens", "10000000", "--receipt", "receipt"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert_eq!(world.run(&["verify", "receipt"]).code, Some(0));
    assert_eq!(world.run(&["replay", &run]).code, Some(0));
}

#[test]
fn copy_of_a_run_that_goes_on_is_a_run_that_goes_on() {
    let world = World::new();
    let mut driver = world
        .command(&["consult", "HLXI", "--model", "demo", "--yes", "--moves", "5"])
        .spawn()
        .unwrap();
    while !data(&world).join("moothall.db").exists()
        || world.run(&["runs", "--json"]).json()["runs"][0]["events"].as_u64() < Some(30)
    {
        assert!(driver.try_wait().unwrap().is_none(), "it ended before it could be copied");
    }
    let made = world.run(&["backup", "runs.tar"]);
    assert_eq!(made.code, Some(0), "{made}");
    let run = only_run(&world);
    // What is under somebody's hands is not moved away.
    let refused = world.run(&["restore", "runs.tar", "--force"]);
    assert_eq!(refused.code, Some(4), "{refused}");
    assert!(refused.stderr.contains("a process drives run"), "{refused}");
    assert_eq!(world.run(&["restore", "runs.tar", "--into", "elsewhere"]).code, Some(0));
    assert!(driver.wait().unwrap().success());
    let told = |world: &World| {
        let memo = world.run(&["show", &run, "--memo"]);
        assert_eq!(memo.code, Some(0), "{memo}");
        memo.stdout
    };
    let here = told(&world);
    let elsewhere = world.path("elsewhere").to_str().unwrap().to_owned();
    let world = world.with("MOOTHALL_DATA_DIR", &elsewhere);
    let resumed = world.run(&["resume", &run]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert_eq!(told(&world), here);
}

#[test]
fn backup_that_was_changed_is_refused_and_nothing_is_left_of_it() {
    let world = world();
    assert_eq!(world.run(&["backup", "runs.tar"]).code, Some(0));
    let good = fs_err::read(world.path("runs.tar")).unwrap();
    let before = world.run(&["runs", "--json"]).stdout;
    let mut changed = good.clone();
    let word = changed.windows(6).position(|part| part == b"primes").unwrap();
    changed[word] = b'P';
    fs_err::write(world.path("changed.tar"), changed).unwrap();
    fs_err::write(world.path("cut.tar"), &good[..good.len() / 2]).unwrap();
    world.write("diary.tar", "Dear diary");
    for (file, force) in
        [("changed.tar", true), ("cut.tar", true), ("diary.tar", true), ("changed.tar", false)]
    {
        let place = if force { "--force" } else { "--into=elsewhere" };
        let refused = world.run(&["restore", file, place]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(&format!("{file} is not restored: ")), "{refused}");
    }
    assert_snapshot!(world.run(&["restore", "changed.tar", "--force"]));
    assert_eq!(world.run(&["runs", "--json"]).stdout, before);
    let left = names(&data(&world));
    assert!(
        left.iter().all(|name| !name.starts_with(['.']) && !name.contains("before")),
        "{left:?}"
    );
    assert_eq!(names(&world.path("elsewhere")), [""; 0]);
}

#[test]
fn nothing_to_back_up_and_no_backup_are_usage_errors() {
    let world = World::new();
    assert_snapshot!(world.run(&["backup", "runs.tar"]));
    assert_snapshot!(world.run(&["restore", "runs.tar"]));
    assert_eq!(names(&world.path("")), [""; 0]);
}

#[test]
fn help_of_backup_and_restore_shows_every_flag() {
    let world = World::new();
    let pages = ["backup", "restore"].map(|command| world.run(&[command, "--help"]).to_string());
    assert_snapshot!(pages.join("\n\n"));
}
