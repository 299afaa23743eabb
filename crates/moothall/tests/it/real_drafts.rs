//! Policy checks in real sandboxes.

use serde_json::json;

use crate::real_sandbox::world;
use crate::world::World;

const POLICY: &str = r#"version = 1
[[check]]
id = "tests"
run = ["python3", "-m", "unittest", "-v"]
timeout = "SECONDS"
sandbox = "runsc"
when = ["**/*.py"]
"#;

const TEST: &str = "\
import unittest, os, watchdog

class Version(unittest.TestCase):
    def test_version(self):
        self.assertEqual(watchdog.VERSION, '1.0')
        self.assertTrue(os.access('run.sh', os.X_OK))
        self.assertEqual(open('logo.bin', 'rb').read(), bytes(range(256)))
        open('may-write-here', 'w').write('yes')
";

fn workspace(seconds: &str) -> World {
    let world = world();
    fs_err::create_dir_all(world.path("ws/.moothall")).unwrap();
    world.write("ws/.moothall/policy.toml", &POLICY.replace("SECONDS", seconds));
    world.write("ws/watchdog.py", "VERSION = '0.9'\n");
    world.write("ws/test_watchdog.py", TEST);
    world.write("ws/run.sh", "#!/bin/sh\n");
    let path = |name: &str| world.path("ws").join(name);
    fs_err::write(path("logo.bin"), (0..=255).collect::<Vec<u8>>()).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(path("run.sh"), mode).unwrap();
    world
}

/// Submits a text for watchdog.py: returns the exit code, the state, the rules, and the output of
/// the check.
fn submit(world: &World, text: &str) -> (Option<i32>, serde_json::Value) {
    let draft = ["draft", "--workspace", "ws", "--json"];
    let run = |more: &[&str]| world.run(&[&draft[..], more].concat());
    let id = run(&["request", "watchdog.py", "--task", "t"]).json()["draft_id"].clone();
    let id = id.as_str().unwrap();
    world.write("new.py", text);
    assert_eq!(run(&["write", id, "--file", "new.py"]).code, Some(0));
    let submitted = run(&["submit", id]);
    let report = submitted.json();
    let findings = report["verdict"]["findings"].as_array().unwrap();
    let rules: Vec<_> = findings.iter().map(|one| one["rule"].clone()).collect();
    (submitted.code, json!([report["state"], rules, report["checks"][0]["output"]]))
}

#[test]
fn tests_of_a_drafted_tree_decide_about_the_draft() {
    let world = workspace("60s");
    let (code, told) = submit(&world, "VERSION = '0.8'\n");
    assert_eq!((code, &told[0], &told[1]), (Some(1), &json!("editing"), &json!(["check.failed"])));
    assert!(told[2].as_str().unwrap().contains("'0.8' != '1.0'"), "{told}");
    let (code, told) = submit(&world, "VERSION = '1.0'\n");
    assert_eq!((code, &told[0], &told[1]), (Some(0), &json!("applied"), &json!([])), "{told}");
    assert_eq!(world.read("ws/watchdog.py"), "VERSION = '1.0'\n");
    assert!(!world.path("ws/may-write-here").exists());
    assert_eq!(world.run(&["sandbox", "list"]).stdout, "no sandboxes\n");
}

#[test]
fn an_endless_check_is_stopped_and_escalated() {
    let world = workspace("10s");
    let (code, told) = submit(&world, "while True: pass\n");
    assert_eq!(
        (code, &told[0], &told[1]),
        (Some(3), &json!("escalated"), &json!(["check.timeout"])),
        "{told}"
    );
}

#[test]
fn a_workspace_cannot_choose_a_shared_kernel_for_its_checks() {
    let world = workspace("60s");
    world.write(
        "ws/.moothall/policy.toml",
        &POLICY.replace("SECONDS", "60s").replace("runsc", "runc"),
    );
    let (code, told) = submit(&world, "VERSION = '1.0'\n");
    assert_eq!(
        (code, &told[0], &told[1]),
        (Some(3), &json!("escalated"), &json!(["gate.error"])),
        "{told}"
    );
}
