//! Debates in sandboxes whose image is installed when a consultation first needs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::guard;
use crate::real_sandbox;
use crate::world::{Ran, World};

const CONSULT: [&str; 10] =
    ["consult", "HLXI", "--verdict", "off", "--model", "demo", "--moves", "1", "--rounds", "1"];

/// A machine that has QEMU but no container runtime and no images.
fn machine_with_qemu() -> World {
    let world = World::new().with("MOOTHALL_ISOLATION__BUILD", "true");
    let programs = world.root().join("programs");
    fs_err::create_dir(&programs).unwrap();
    let qemu = "qemu-system-x86_64";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(qemu)).find(|it| it.exists());
    fs_err::os::unix::fs::symlink(found.unwrap(), programs.join(qemu)).unwrap();
    world.with("PATH", programs.to_str().unwrap())
}

/// The attestation of the only debate of the newest run.
fn attestation(world: &World) -> Value {
    let runs = world.run(&["runs", "--json"]).json();
    let run = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let shown = world.run(&["show", &run, "--move", "m1", "--json"]).json();
    shown["isolation"]["attestation"].clone()
}

#[track_caller]
fn check_probed(attestation: &Value) {
    let tests = attestation["self_tests"].as_array().unwrap();
    for rule in ["no-network", "no-host-files", "own-processes", "no-devices"] {
        let rule = format!("sandbox.{rule}");
        let test = tests.iter().find(|test| test["rule"] == *rule);
        assert_eq!(test.unwrap_or_else(|| panic!("no {rule}"))["held"], true, "{attestation}");
    }
}

#[test]
fn a_machine_with_qemu_and_without_images_debates_in_a_microvm() {
    let world = machine_with_qemu();
    let first = world.run(&CONSULT);
    assert_eq!(first.code, Some(0), "{first}");
    assert!(first.stderr.starts_with("building the sandbox image for debates"), "{first}");
    assert!(first.stderr.contains("built the sandbox image for debates in "), "{first}");
    assert!(!first.stderr.contains("isolation class none"), "{first}");
    let attested = attestation(&world);
    assert_eq!((&attested["engine"], &attested["image"]), (&"microvm".into(), &"debate".into()));
    check_probed(&attested);

    // Neither the build nor the probe is repeated.
    let probe = world.root().join("home/.cache/moothall/probes/microvm-debate.json");
    let probed = fs_err::metadata(&probe).unwrap().modified().unwrap();
    let second = world.run(&CONSULT);
    assert_eq!(second.code, Some(0), "{second}");
    assert!(!second.stderr.contains("sandbox image"), "{second}");
    assert_eq!(fs_err::metadata(&probe).unwrap().modified().unwrap(), probed);
}

/// Regression: only root's agents were started. Others lost the capabilities that building the view
/// needs, or used a cgroup that root had created.
#[test]
fn an_agent_of_another_user_is_confined_like_one_of_root() {
    let world = guard::world();
    let script = "echo evil > ../evil.txt
                  [ $(grep -c '^Cap.*:.0000000000000000$' /proc/self/status) = 5 ] &&
                  echo two >> notes.txt";
    let args = guard::guard_args(&[], script);
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(0), "{ran}");
    let prefix = world.root().join("usr");
    let program = installed(&prefix);
    let owner = Command::new("chown").args(["-R", "65534:65534"]).arg(world.root()).status();
    assert!(owner.unwrap().success());
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let mut command = Command::new("setpriv");
    command.args(user).arg(program).args(&args).current_dir(world.path("")).env_clear();
    let like = world.command(&args);
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = world.ran(&args, command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(world.read("ws/notes.txt"), "one\ntwo\ntwo\n");
    assert!(!world.path("evil.txt").exists());
}

/// A copy of the program in `bin/` of a directory, as a package installs it.
fn installed(prefix: &Path) -> PathBuf {
    let program = prefix.join("bin/moothall");
    if !program.exists() {
        fs_err::create_dir_all(prefix.join("bin")).unwrap();
        fs_err::copy(env!("CARGO_BIN_EXE_moothall"), &program).unwrap();
    }
    program
}

fn run_installed(world: &World, prefix: &Path, arguments: &[&str]) -> Ran {
    let program = installed(prefix);
    let like = world.command(arguments);
    let mut command = Command::new(program);
    command.args(arguments).current_dir(world.path("")).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    world.ran(arguments, command.output().unwrap())
}

#[test]
fn the_bundle_of_a_package_is_used_instead_of_a_build() {
    let built = real_sandbox::world();
    let prefix = built.root().join("usr");
    let images: PathBuf = prefix.join("share/moothall/images");
    fs_err::create_dir_all(&images).unwrap();
    let bundle = images.join("debate.tar");
    let export = built.run(&["image", "export", "debate", "--output", bundle.to_str().unwrap()]);
    assert_eq!(export.code, Some(0), "{export}");

    let world = World::new().with("MOOTHALL_ISOLATION__BUILD", "true");
    let ran = run_installed(&world, &prefix, &CONSULT);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(!ran.stderr.contains("sandbox image"), "{ran}");
    let digest = |world: &World| {
        let listed = world.run(&["image", "list", "--json"]).json();
        let images = listed["images"].as_array().unwrap().clone();
        images.iter().find(|image| image["name"] == "debate").unwrap()["sha256"].clone()
    };
    assert_eq!(digest(&world), digest(&built));
    assert_eq!(attestation(&world)["image_sha256"], digest(&built));
    check_probed(&attestation(&world));
}
