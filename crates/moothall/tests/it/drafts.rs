//! `moothall draft`, `review`, `policy` and `audit`.

use nix::unistd::{Uid, User};
use serde_json::Value;

use crate::world::{Ran, World};

/// A workspace with one file.
fn world() -> World {
    let world = World::new().with("USER", "ada");
    fs_err::create_dir_all(world.path("ws/src")).unwrap();
    world.write("ws/src/watchdog.py", "import sys\n\n\ndef main():\n    print(sys.argv)\n");
    world.write("ws/Makefile", "all:\n");
    world
}

fn run(world: &World, arguments: &[&str]) -> Ran {
    let mut all = arguments.to_vec();
    all.extend(["--workspace", "ws"]);
    world.run(&all)
}

fn json(world: &World, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut all = arguments.to_vec();
    all.push("--json");
    let ran = run(world, &all);
    let value = serde_json::from_str(&ran.stdout);
    (ran.code, value.unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr)))
}

fn request(world: &World, path: &str) -> String {
    let (code, told) = json(world, &["draft", "request", path, "--task", "t1", "--new"]);
    assert_eq!(code, Some(0));
    told["draft_id"].as_str().unwrap().to_owned()
}

fn write(world: &World, draft: &str, text: &str) {
    let arguments = ["draft", "write", draft, "--file", "-", "--workspace", "ws"];
    let ran = world.run_with_input(&arguments, text.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn the_documented_draft_workflow_ends_in_the_workspace() {
    let world = world();
    let (_, asked) = json(&world, &["draft", "request", "src/watchdog.py", "--task", "phase10"]);
    assert_eq!(asked["line_count"], 5);
    assert_eq!(asked["draft_path"], asked["draft_id"]);
    let draft = asked["draft_id"].as_str().unwrap();
    let old = "    print(sys.argv)";
    let new = "    if \"--version\" in sys.argv:\n        print(\"1.0\")\n    print(sys.argv)";
    let (code, told) = json(&world, &["draft", "edit", draft, "--old", old, "--new", new]);
    assert_eq!((code, &told["success"], &told["line_count"]), (Some(0), &true.into(), &7.into()));
    let (code, told) = json(&world, &["draft", "check", draft]);
    assert_eq!((code, &told["verdict"]["action"]), (Some(0), &"allow".into()));
    assert!(!world.read("ws/src/watchdog.py").contains("--version"));
    let (code, told) = json(&world, &["draft", "submit", draft, "--summary", "adds --version"]);
    assert_eq!(
        (code, &told["submitted"], &told["state"]),
        (Some(0), &true.into(), &"applied".into())
    );
    assert!(world.read("ws/src/watchdog.py").contains("--version"));
    let (code, told) = json(&world, &["draft", "undo", draft]);
    assert_eq!((code, &told["drafts"][0]["state"]), (Some(0), &"reverted".into()));
    assert!(!world.read("ws/src/watchdog.py").contains("--version"));
}

#[test]
fn an_escalated_draft_needs_approval_of_the_version_that_was_shown() {
    let world = world();
    let draft = request(&world, "Makefile");
    write(&world, &draft, "all: build\n");
    assert_eq!(run(&world, &["draft", "submit", &draft]).code, Some(3));
    let (_, waiting) = json(&world, &["review"]);
    let listed = run(&world, &["review"]).stdout;
    assert!(listed.ends_with(&format!("read one: moothall review show {draft}\n")), "{listed}");
    assert_eq!(waiting["waiting"][0]["draft_id"], draft);
    let (_, shown) = json(&world, &["review", "show", &draft]);
    let seal = shown["seal"].as_str().unwrap().to_owned();
    // The worker changes the draft after it was shown.
    write(&world, &draft, "all: evil\n");
    assert_eq!(run(&world, &["draft", "submit", &draft]).code, Some(3));
    let refused = run(&world, &["review", "approve", &draft, "--if-match", &seal]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("draft changed since it was shown"), "{}", refused.stderr);
    let refused = run(&world, &["review", "approve", &draft, "--if-match", &seal[..12]]);
    assert_eq!(refused.code, Some(2));
    assert_eq!(world.read("ws/Makefile"), "all:\n");
    let (_, shown) = json(&world, &["review", "show", &draft]);
    let seal = shown["seal"].as_str().unwrap();
    let approved = run(&world, &["review", "approve", &draft, "--if-match", &seal[..12]]);
    assert_eq!((approved.code, approved.stdout.as_str()), (Some(0), "applied\n"));
    assert_eq!(world.read("ws/Makefile"), "all: evil\n");
}

/// Regression: it refused to list drafts without `$USER`.
#[test]
fn drafts_are_listed_and_reviewed_as_the_account_without_a_variable_for_its_name() {
    let mut world = world();
    world.set("USER", "");
    let account = User::from_uid(Uid::current()).unwrap().unwrap().name;
    let draft = request(&world, "Makefile");
    write(&world, &draft, "all: build\n");
    assert_eq!(run(&world, &["draft", "submit", &draft]).code, Some(3));
    let listed = run(&world, &["review"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed}");
    assert!(listed.stdout.starts_with(&format!("{draft}  Makefile\n")), "{listed}");
    let (_, shown) = json(&world, &["review", "show", &draft]);
    let seal = shown["seal"].as_str().unwrap();
    let approved = run(&world, &["review", "approve", &draft, "--if-match", seal]);
    assert_eq!((approved.code, approved.stdout.as_str()), (Some(0), "applied\n"), "{approved}");
    let audited = run(&world, &["audit", "show"]);
    let who = format!("human:{account} (uid:{})", Uid::current());
    assert!(audited.stdout.contains(&who), "{who} in {audited}");
}

/// Regression: `review --by ada` satisfied `approvers = ["ada"]` for any user.
#[test]
fn approver_is_a_user_id_and_the_name_of_a_review_is_only_a_label() {
    let world = world();
    let uid = rustix::process::getuid().as_raw();
    let policy = |approvers: &str| {
        let text = format!("version = 1\n[review]\napprovers = [{approvers}]\n");
        world.write("ws/.moothall/policy.toml", &text);
    };
    fs_err::create_dir_all(world.path("ws/.moothall")).unwrap();
    policy("\"ada\"");
    let draft = request(&world, "Makefile");
    write(&world, &draft, "all: build\n");
    assert_eq!(run(&world, &["draft", "submit", &draft]).code, Some(3));
    let approve = |by: &str| {
        let (_, shown) = json(&world, &["review", "show", &draft]);
        let seal = shown["seal"].as_str().unwrap().to_owned();
        run(&world, &["review", "approve", &draft, "--if-match", &seal, "--by", by])
    };
    let refused = approve("ada");
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    let who = format!("human:ada (uid:{uid}) is not an approver in the policy");
    assert!(refused.stderr.contains(&who), "{}", refused.stderr);
    let checked = run(&world, &["policy", "check"]);
    assert_eq!(checked.code, Some(2), "{}", checked.stdout);
    assert!(checked.stderr.contains("the name `ada`, which matches no user"), "{}", checked.stderr);
    assert!(checked.stderr.contains(&format!("uid:{uid}")), "{}", checked.stderr);

    policy(&format!("\"uid:{}\"", uid + 1));
    assert_eq!(run(&world, &["policy", "check"]).code, Some(0));
    assert_eq!(approve("ada").code, Some(2));

    policy(&format!("\"uid:{uid}\""));
    let refused = approve("ada/cli");
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("`ada/cli` is the name of a worker"), "{}", refused.stderr);
    let approved = approve("grace");
    assert_eq!((approved.code, approved.stdout.as_str()), (Some(0), "applied\n"));
    let shown = run(&world, &["audit", "show"]);
    assert!(shown.stdout.contains(&format!("human:grace (uid:{uid})")), "{}", shown.stdout);
}

#[test]
fn a_review_shows_control_characters_escaped() {
    let world = world();
    let draft = request(&world, "Makefile");
    let long = "x".repeat(5_000);
    write(
        &world,
        &draft,
        &format!("all:\n\x1b[2K\x1b]0;owned\x07hidden\rvisible\u{202e}\n{long}\n"),
    );
    let submitted = world.run(&[
        "draft",
        "submit",
        &draft,
        "--summary",
        "fine \x1b[31m\n  approved by: nobody",
        "--workspace",
        "ws",
    ]);
    // Bidirectional control characters are rejected; `check` shows the diff as well.
    assert_eq!(submitted.code, Some(1));
    let checked = run(&world, &["draft", "check", &draft]);
    write(&world, &draft, &format!("all:\n\x1b[2K\x1b]0;owned\x07hidden\rvisible\n{long}\n"));
    assert_eq!(run(&world, &["draft", "submit", &draft]).code, Some(3));
    let shown = run(&world, &["review", "show", &draft]);
    for text in [&checked.stdout, &shown.stdout] {
        assert!(!text.contains(['\x1b', '\r', '\x07', '\u{202e}']), "{text}");
        assert!(text.contains("\\u{1b}[2K\\u{1b}]0;owned\\u{7}hidden\\u{d}"), "{text}");
        assert!(text.contains("line is longer") && text.len() < 4_000, "{}", text.len());
    }
}

/// As in the browser, the seal covers only what was shown.
#[test]
fn a_truncated_line_must_be_shown_completely_before_approval() {
    let world = world();
    let draft = request(&world, "Makefile");
    let hidden = format!("all:\n# {} && rm -rf build\n", "x".repeat(500));
    write(&world, &draft, &hidden);
    assert_eq!(run(&world, &["draft", "submit", &draft]).code, Some(3));
    let seal = json(&world, &["review", "show", &draft]).1["seal"].as_str().unwrap().to_owned();
    let cut = run(&world, &["review", "show", &draft]).stdout;
    assert!(!cut.contains("rm -rf") && !cut.contains(&seal[..12]), "{cut}");
    let how = format!("moothall review show {draft} --full shows them completely, with the seal");
    assert!(cut.contains(&how), "{cut}");
    let whole = run(&world, &["review", "show", &draft, "--full"]).stdout;
    assert!(whole.contains("rm -rf build") && whole.contains(&seal), "{whole}");
    assert_eq!(
        run(&world, &["review", "approve", &draft, "--if-match", &seal[..12]]).code,
        Some(0)
    );
    assert_eq!(world.read("ws/Makefile"), hidden);
}

#[test]
fn a_credential_is_rejected_and_printed_nowhere() {
    let world = world();
    let draft = request(&world, "src/watchdog.py");
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    write(&world, &draft, &format!("import sys\nKEY = \"{token}\"\n"));
    let ran = run(&world, &["draft", "submit", &draft]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("secret.specific"), "{}", ran.stdout);
    let audit = run(&world, &["audit", "export", "-"]);
    for text in [&ran.stdout, &ran.stderr, &audit.stdout] {
        assert!(!text.contains(&token[8..24]), "{text}");
    }
}

#[test]
fn a_draft_with_an_example_key_of_documentation_is_applied_with_a_note() {
    let world = world();
    let draft = request(&world, "src/watchdog.py");
    let example = "aws_access_key_id = \"AKIAIOSFODNN7EXAMPLE\"\n";
    let text = world.read("ws/src/watchdog.py") + example;
    write(&world, &draft, &text);
    let ran = run(&world, &["draft", "submit", &draft]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let note = "src/watchdog.py:6  looks like a documentation example: aws-access-key\n";
    assert!(ran.stdout.contains(note) && ran.stdout.ends_with("applied\n"), "{ran}");
    assert_eq!(world.read("ws/src/watchdog.py"), text);
}

#[test]
fn imported_model_answers_become_drafts_judged_by_the_gate() {
    let world = world();
    world.write("answer.md", "Here:\n\n```python src/new.py\nprint(1)\n```\n");
    let arguments = ["draft", "import", "answer.md", "--task", "t1", "--submit"];
    assert_eq!(run(&world, &arguments).code, Some(0));
    assert_eq!(world.read("ws/src/new.py"), "print(1)\n");
    let diff = "--- a/src/new.py\n+++ b/src/new.py\n@@ -1 +1 @@\n-print(1)\n+print(2)\n";
    world.write("answer.diff", diff);
    let arguments = ["draft", "import", "answer.diff", "--task", "t2", "--submit"];
    assert_eq!(run(&world, &arguments).code, Some(0));
    assert_eq!(world.read("ws/src/new.py"), "print(2)\n");
    world.write("answer.diff", &diff.replace("src/new.py", "../../x"));
    let refused = run(&world, &arguments);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("hint: use a path inside the workspace"), "{}", refused.stderr);
}

/// The hint for answers without a file was also shown for a diff that was not valid.
#[test]
fn a_diff_that_cannot_be_imported_is_refused_with_the_reason() {
    let world = world();
    let arguments = ["draft", "import", "answer.md", "--task", "t1"];
    world.write("answer.md", "--- a/src/new.py\n+++ b/src/new.py\n@@ -0,0 +1,2 @@\n+a\n");
    let refused = run(&world, &arguments);
    let reason =
        "cannot use the answer: line 4: the line counts of the hunk do not match its header";
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    assert!(!refused.stderr.contains("hint:"), "{}", refused.stderr);
    world.write("answer.md", "Done.\n");
    let refused = run(&world, &arguments);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("hint: name the file of each block"), "{}", refused.stderr);
}

#[test]
fn workers_see_their_own_drafts_only() {
    let world = world();
    let draft = request(&world, "Makefile");
    let other = run(&world, &["draft", "read", &draft, "--worker", "other"]);
    let none = run(&world, &["draft", "read", "../../etc/passwd", "--worker", "other"]);
    assert_eq!((other.code, &other.stderr), (Some(2), &none.stderr));
    assert!(other.stderr.contains("draft not found"), "{}", other.stderr);
}

#[test]
fn an_invalid_policy_stops_every_command_and_names_the_mistake() {
    let world = world();
    fs_err::create_dir_all(world.path("ws/.moothall")).unwrap();
    world.write("ws/.moothall/policy.toml", "version = 1\n[limits]\nmax_chnaged_lines = 1\n");
    for arguments in [&["policy", "check"][..], &["draft", "list"], &["review"]] {
        let ran = run(&world, arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(ran.stderr.contains("max_chnaged_lines"), "{}", ran.stderr);
    }
}

#[test]
fn a_policy_can_be_checked_tested_and_explained() {
    let world = world();
    fs_err::create_dir_all(world.path("ws/.moothall")).unwrap();
    world.write(
        "ws/.moothall/policy.toml",
        "version = 1\n[paths]\ndeny = [\"secrets/**\"]\n[rules]\n\"secret.specific\" = \"warn\"\n",
    );
    let checked = run(&world, &["policy", "check"]);
    assert_eq!(checked.code, Some(0));
    assert!(checked.stdout.contains("reject stays in effect"), "{}", checked.stdout);
    world.write("new", "import sys\n# rest of the code unchanged\n");
    let (code, tried) = json(&world, &["policy", "test", "src/watchdog.py", "--draft", "new"]);
    assert_eq!(code, Some(1));
    assert_eq!(tried["verdict"]["findings"][0]["rule"], "content.placeholder");
    let (_, told) = json(&world, &["policy", "explain", "secrets/x"]);
    assert_eq!((&told["denied"], &told["patterns"][0]), (&true.into(), &"deny secrets/**".into()));
    let (_, told) = json(&world, &["policy", "explain", "Makefile"]);
    assert_eq!(told["protected"], true);
}

#[test]
fn the_journal_is_verified_and_a_changed_one_is_found() {
    let world = world();
    let draft = request(&world, "src/watchdog.py");
    write(&world, &draft, "import sys\n\n\ndef main():\n    print(1)\n");
    assert_eq!(run(&world, &["draft", "submit", &draft]).code, Some(0));
    let (code, told) = json(&world, &["audit", "verify"]);
    assert_eq!((code, &told["holds"]), (Some(0), &true.into()));
    let anchor = format!("{}:{}", told["records"], told["head"].as_str().unwrap());
    let shown = run(&world, &["audit", "show", "--draft", &draft]);
    for word in
        ["requested", "written", "submitted", "judged", "applying", "ended", "worker:ada/cli"]
    {
        assert!(shown.stdout.contains(word), "{word}: {}", shown.stdout);
    }
    let states = world.root().join("home/.local/state/moothall/drafts");
    let state = fs_err::read_dir(states).unwrap().next().unwrap().unwrap().path();
    let file = state.join("audit/000001.ndjson");
    let text = fs_err::read_to_string(&file).unwrap();
    let cut: String = text.lines().take(3).map(|line| format!("{line}\n")).collect();
    fs_err::write(&file, cut).unwrap();
    // The last record is also stored outside the store.
    let anchors = world.root().join("home/.local/share/moothall/anchors");
    let kept = fs_err::read_dir(anchors).unwrap().next().unwrap().unwrap().path();
    assert!(fs_err::read_to_string(&kept).unwrap().starts_with(&anchor));
    let ran = run(&world, &["audit", "verify"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stdout.contains("ends before the anchor"), "{}", ran.stdout);
    assert!(ran.stdout.contains("share/moothall/anchors/"), "{}", ran.stdout);
    fs_err::remove_file(&kept).unwrap();
    assert_eq!(run(&world, &["audit", "verify"]).code, Some(0));
    assert_eq!(run(&world, &["audit", "verify", "--anchor", &anchor]).code, Some(1));
    let torn = state.join("audit/000001.torn");
    fs_err::write(&torn, "{\"seq\":9").unwrap();
    let ran = run(&world, &["audit", "verify"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("000001.torn contains 8 bytes"), "{}", ran.stdout);
    let (_, told) = json(&world, &["audit", "verify"]);
    assert_eq!(
        (&told["torn"][0]["file"], &told["torn"][0]["bytes"]),
        (&"000001.torn".into(), &8.into())
    );
    fs_err::write(&file, text.replacen("\"written\"", "\"wriiten\"", 1)).unwrap();
    let (code, told) = json(&world, &["audit", "verify"]);
    assert_eq!((code, &told["holds"]), (Some(1), &false.into()));
    assert_eq!(run(&world, &["draft", "list"]).code, Some(4));
}

#[test]
fn a_state_file_that_is_not_valid_is_named_with_a_hint() {
    let world = world();
    let draft = request(&world, "src/watchdog.py");
    write(&world, &draft, "import sys\n");
    let only = |folder: &str| {
        let folder = world.root().join("home/.local").join(folder);
        fs_err::read_dir(folder).unwrap().next().unwrap().unwrap().path()
    };
    let handoff = only("state/moothall/drafts").join("handoff.json");
    let anchor = only("share/moothall/anchors");
    fs_err::write(&handoff, "{").unwrap();
    fs_err::write(&anchor, "12\n").unwrap();
    let cases = [
        (
            "draft list --handoff",
            "cannot read the state of the `_handoff` directory",
            format!("{} is not valid: EOF", handoff.display()),
            "hint: delete this file to turn the export off; `--handoff` turns it on again",
        ),
        (
            "audit verify",
            "cannot read the anchor of the audit log",
            format!("{} is not a valid anchor file: expected RECORD:HASH", anchor.display()),
            "hint: restore the file from a backup, or delete it to accept the audit log without it",
        ),
    ];
    for (command, message, cause, hint) in cases {
        let ran = run(&world, &command.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        for words in [message, &cause, hint] {
            assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_store_inside_of_its_workspace_is_refused() {
    let world = world();
    let ran = world.run(&["draft", "list", "--workspace", ".."]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("inside the workspace"), "{}", ran.stderr);
}
