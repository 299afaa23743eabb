//! `moothall doctor` on a machine with missing parts.

use crate::world::World;

const ENGINES: [&str; 4] = ["microvm", "runsc", "runc", "crun"];

/// Regression: it printed one line of error and nothing about the rest of the machine.
#[test]
fn doctor_without_an_image_prints_every_row_and_what_is_missing() {
    let world = World::new();
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    for engine in ENGINES {
        assert!(ran.stdout.lines().any(|line| line.starts_with(engine)), "{engine} in {ran}");
    }
    for part in [
        "hint: build the image: `moothall image build python`",
        "images: ",
        "runs: file ",
        "guard: works, with overlays",
    ] {
        assert!(ran.stdout.contains(part), "{part} in {ran}");
    }
    let version = env!("CARGO_PKG_VERSION");
    let first = format!("moothall {version}, built from source: /");
    assert!(ran.stdout.starts_with(&first), "{ran}");
    let ran = world.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    let report = ran.json();
    assert_eq!((&report["version"], &report["installed_as"]), (&version.into(), &"source".into()));
    let names: Vec<_> =
        report["engines"].as_array().unwrap().iter().map(|row| &row["engine"]).collect();
    assert_eq!(names, ENGINES);
    let problem = &report["problems"][0];
    assert_eq!(problem["part"], "image python", "{ran}");
    assert_eq!(problem["hint"], "build the image: `moothall image build python`", "{ran}");
}

#[test]
fn doctor_without_its_database_still_prints_every_other_row() {
    let world = World::new().with("MOOTHALL_DATABASE_URL", "postgres://u:hunter2@127.0.0.1:1/x");
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    for engine in ENGINES {
        assert!(ran.stdout.lines().any(|line| line.starts_with(engine)), "{engine} in {ran}");
    }
    assert!(ran.stdout.contains("runs: "), "{ran}");
    let ran = world.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    let report = ran.json();
    let problems = report["problems"].as_array().unwrap();
    let parts: Vec<_> = problems.iter().map(|problem| problem["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["image python", "runs"], "{ran}");
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("hunter2"), "{ran}");
}
