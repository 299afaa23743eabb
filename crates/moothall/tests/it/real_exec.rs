//! `exec`, `doctor` and `sandbox` with real sandboxes.

use serde_json::{Value, json};

use crate::real_sandbox::world;
use crate::world::World;

const PROGRAM: &str = "\
import sys
print('hello', sys.argv[1:], sys.stdin.read().strip(), open('/inputs/given.txt').read())
open('out/left.txt', 'w').write('left')
sys.exit(int(sys.argv[1]))
";

fn prepared() -> World {
    let world = world();
    world.write("hello.py", PROGRAM);
    world.write("given.txt", "given");
    world
}

#[track_caller]
fn check_engine(engine: &str, class: &str) {
    let world = prepared();
    let arguments = ["exec", "hello.py", "--isolation", engine, "--input", "given.txt"];
    let more = ["--output", "files", "--", "0"];
    let ran = world.run_with_input(&[&arguments[..], &more[..]].concat(), b"typed");
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(ran.stdout, "hello ['0'] typed given\n");
    // A distribution's runc may be old, which is reported on a separate line.
    let is_warning = |line: &&str| line.contains(" is older than ");
    let said: Vec<&str> = ran.stderr.lines().filter(|line| !is_warning(line)).collect();
    let ended = format!("exit code 0 · {class} on {engine} · image python");
    assert_eq!(said, [ended.as_str(), "wrote files/left.txt"]);
    assert_eq!(world.read("files/left.txt"), "left");
    let list = world.run(&["sandbox", "list"]);
    assert_eq!((list.code, list.stdout.as_str()), (Some(0), "no sandboxes\n"));
}

#[test]
fn microvm_runs_a_program_with_input_and_files() {
    // With KVM the same engine has a higher class.
    let kvm = std::path::Path::new("/sys/module/kvm_intel").exists()
        || std::path::Path::new("/sys/module/kvm_amd").exists();
    check_engine("microvm", if kvm { "hardware-vm" } else { "emulated-vm" });
}

#[test]
fn runsc_runs_a_program_with_input_and_files() {
    check_engine("runsc", "user-kernel");
}

#[test]
fn runc_runs_a_program_with_input_and_files() {
    check_engine("runc", "shared-kernel");
}

#[test]
fn a_failed_program_exits_with_1_and_json_shows_its_exit_code() {
    let world = prepared();
    let arguments = ["exec", "hello.py", "--isolation", "runc", "--input", "given.txt", "--json"];
    let ran = world.run(&[&arguments[..], &["--", "42"][..]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{ran}");
    let report = ran.json();
    assert_eq!(report["exit"], json!({"exit": "exited", "code": 42}));
    assert_eq!(report["limits_not_held"], json!([]));
    assert_eq!(report["attestation"]["class"], "shared-kernel");
}

#[test]
fn a_class_below_the_minimum_is_refused_even_if_requested() {
    let mut world = prepared();
    world.set("MOOTHALL_ISOLATION__MINIMUM", "user-kernel");
    let ran = world.run(&["exec", "hello.py", "--isolation", "runc"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(
        ran.stderr.contains("(minimum isolation class: user-kernel): runc is shared-kernel"),
        "{ran}"
    );
}

#[test]
fn a_file_in_the_working_directory_cannot_weaken_isolation() {
    let world = prepared();
    for text in ["[isolation]\nallow_shared_kernel = true\n", "[isolation]\nengine = \"runc\"\n"] {
        world.write("moothall.toml", text);
        let ran = world.run(&["exec", "hello.py"]);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains("allows programs to share the host kernel"), "{ran}");
    }
    let named = ["exec", "hello.py", "--config", "moothall.toml", "--input", "given.txt"];
    let ran = world.run(&[&named[..], &["--", "0"][..]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
}

#[test]
fn doctor_tries_every_engine_and_chooses_the_strongest() {
    let world = prepared();
    let report = world.run(&["doctor", "--json"]).json();
    let works = |engine: &str| -> Value {
        let engines = report["engines"].as_array().unwrap();
        engines.iter().find(|found| found["engine"] == engine).unwrap()["works"].clone()
    };
    assert_eq!(["microvm", "runsc", "runc"].map(works), [json!(true), json!(true), json!(true)]);
    let strongest = report["class"].as_str().unwrap();
    assert!(["hardware-vm", "user-kernel"].contains(&strongest), "{report:#}");
}

#[test]
fn a_missing_sandbox_image_says_how_to_build_it() {
    let world = World::new();
    world.write("hello.py", PROGRAM);
    let ran = world.run(&["exec", "hello.py"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.stderr.contains("hint: build the image: `moothall image build python`"), "{ran}");
}

/// Regression: a file in the working directory replaced the user's own file and hid its minimum.
#[test]
fn a_file_in_the_working_directory_cannot_lower_the_users_minimum() {
    let world = prepared();
    world.write_config("moothall.toml", "[isolation]\nminimum = \"hardware-vm\"\n");
    world.write("moothall.toml", "");
    let ran = world.run(&["exec", "hello.py", "--isolation", "runc"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.stderr.contains("minimum isolation class: hardware-vm"), "{ran}");
}

/// Regression: one hidden name prevented all other files from being written, with exit code 4.
#[test]
fn unsafe_output_names_do_not_prevent_writing_other_files() {
    let world = world();
    let program = "\
import os
os.makedirs('out/deep')
names = ['..x', '.\u{200b}', '-rf', 'deep/.env', 'deep/-f', 'good.txt', 'deep/good.txt', 'tu\u{202e}rn']
for name in names:
    open('out/' + name, 'w').write(name)
";
    world.write("odd.py", program);
    let ran = world.run(&["exec", "odd.py", "--isolation", "runc", "--output", "files"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    for name in ["good.txt", "deep/good.txt"] {
        assert_eq!(world.read(&format!("files/{name}")), name);
    }
    for line in ["skipped `..x`: ", "skipped `-rf`: ", "skipped `deep/.env`: "] {
        assert!(ran.stderr.contains(line), "{ran}");
    }
    assert!(!ran.stderr.contains(['\u{200b}', '\u{202e}']), "{ran}");
    let json = ["exec", "odd.py", "--isolation", "runc", "--output", "again", "--json"];
    let report = world.run(&json).json();
    assert_eq!(report["written"], json!(["again/deep/good.txt", "again/good.txt"]));
    let left_out = report["not_written"].as_array().unwrap();
    let names: Vec<&str> = left_out.iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["-rf", "..x", ".\u{200b}", "deep/-f", "deep/.env", "tu\u{202e}rn"]);
    assert!(left_out.iter().all(|one| one["reason"].is_string()), "{report:#}");
}

/// Replaces runc with a script that runs these commands first.
fn with_runc(world: World, script: &str) -> World {
    let bin = world.path("bin");
    fs_err::create_dir(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let folders = path.split(':').chain(["/usr/sbin", "/sbin"]);
    let mut programs = folders.map(|folder| format!("{folder}/runc"));
    let real = programs.find(|name| std::path::Path::new(name).exists()).unwrap();
    let script = format!("#!/bin/sh\n{script}\nexec {real} \"$@\"\n");
    fs_err::write(bin.join("runc"), script).unwrap();
    crate::world::set_mode(&bin.join("runc"), 0o755);
    world.with("PATH", &format!("{}:{path}", bin.display()))
}

#[test]
fn runc_without_user_namespaces_is_used_and_reported() {
    let refuse = "\
for argument do
    if [ \"$before\" = --bundle ] && grep -q uidMappings \"$argument/config.json\"; then
        echo 'no user namespaces here' >&2
        exit 1
    fi
    before=$argument
done";
    let arguments = ["exec", "hello.py", "--isolation", "runc", "--input", "given.txt", "--json"];
    let version = |world: &World| {
        let ran = world.run(&[&arguments[..], &["--", "0"]].concat());
        assert_eq!(ran.code, Some(0), "{ran}");
        ran.json()["attestation"]["engine_version"].as_str().unwrap().to_owned()
    };
    let world = with_runc(prepared(), refuse);
    // Detected once, then cached.
    for _ in 0..2 {
        assert!(version(&world).ends_with(" (no user namespace)"), "{}", version(&world));
    }
    assert!(version(&prepared()).ends_with(" (user namespace)"));
}

/// The version of a runtime determines whether known escapes are fixed.
#[test]
fn a_runtime_with_known_escapes_is_reported_by_doctor_and_exec() {
    let world = prepared();
    let world = with_runc(world, "[ \"$1\" = --version ] && echo 'runc version 1.1.4' && exit");
    let arguments = ["exec", "hello.py", "--isolation", "runc", "--input", "given.txt"];
    let ran = world.run(&[&arguments[..], &["--", "0"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains("runc 1.1.4 is older than 1.2.8"), "{ran}");
    assert!(ran.stderr.contains("CVE-2024-21626"), "{ran}");
    let ran = world.run(&[&arguments[..], &["--json", "--", "0"]].concat());
    let warnings = ran.json()["warnings"].to_string();
    assert!(warnings.contains("CVE-2025-31133"), "{ran}");
    let ran = world.run(&["doctor"]);
    assert!(ran.stdout.contains("runc 1.1.4 is older than 1.2.8"), "{ran}");
}
