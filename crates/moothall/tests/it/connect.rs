//! `moothall connect`: whole configuration files before and after.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::init::Person;
use crate::world::{World, set_mode};

/// A world in which the PATH leads to the program.
fn world() -> World {
    let mut world = World::new();
    let bin = world.root().join("bin");
    fs_err::create_dir(&bin).unwrap();
    fs_err::os::unix::fs::symlink(env!("CARGO_BIN_EXE_moothall"), bin.join("moothall")).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    world.set("PATH", &path);
    world
}

fn home(world: &World, name: &str) -> PathBuf {
    world.root().join("home").join(name)
}

fn put(path: &Path, text: &str) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

fn read(path: &Path) -> Option<String> {
    fs_err::read_to_string(path).ok()
}

struct Case {
    client: &'static str,
    /// In the home directory and in the project.
    files: [&'static str; 2],
    before: &'static str,
    after: &'static str,
}

const CASES: [Case; 6] = [
    Case {
        client: "claude-code",
        files: [".claude.json", "work/.mcp.json"],
        before: "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  }\n}",
        after: "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    },\n    \"moothall\": {\n      \"type\": \"stdio\",\n      \"command\": \"moothall\",\n      \"args\": [\"mcp\", \"--workspace\", \".\", \"--worker\", \"claude-code\"]\n    }\n  }\n}",
    },
    Case {
        client: "codex",
        files: [".codex/config.toml", "work/.codex/config.toml"],
        before: "# mine\nmodel = \"gpt-5.5\" # good\n\n[features]\nplugins = false\n",
        after: "# mine\nmodel = \"gpt-5.5\" # good\n\n[features]\nplugins = false\n\n[mcp_servers.moothall]\ncommand = \"moothall\"\nargs = [\"mcp\", \"--workspace\", \".\", \"--worker\", \"codex\"]\n",
    },
    Case {
        client: "gemini",
        files: [".gemini/settings.json", "work/.gemini/settings.json"],
        before: "{\n  // mine\n  \"ui\": { \"theme\": \"Default\" }\n}\n",
        after: "{\n  // mine\n  \"ui\": { \"theme\": \"Default\" },\n  \"mcpServers\": {\n    \"moothall\": {\n      \"command\": \"moothall\",\n      \"args\": [\"mcp\", \"--workspace\", \".\", \"--worker\", \"gemini\"]\n    }\n  }\n}\n",
    },
    Case {
        client: "cursor",
        files: [".cursor/mcp.json", "work/.cursor/mcp.json"],
        before: "{\n    \"mcpServers\": {\n        \"b\": { \"url\": \"https://example.com/mcp\" },\n        \"a\": { \"command\": \"x\" }\n    }\n}\n",
        after: "{\n    \"mcpServers\": {\n        \"b\": { \"url\": \"https://example.com/mcp\" },\n        \"a\": { \"command\": \"x\" },\n        \"moothall\": {\n            \"command\": \"moothall\",\n            \"args\": [\"mcp\", \"--workspace\", \"${workspaceFolder}\", \"--worker\", \"cursor\"]\n        }\n    }\n}\n",
    },
    Case {
        client: "opencode",
        files: [".config/opencode/opencode.json", "work/opencode.json"],
        before: "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"model\": \"a/b\", // good\n}\n",
        after: "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"model\": \"a/b\", // good\n  \"mcp\": {\n    \"moothall\": {\n      \"type\": \"local\",\n      \"command\": [\"moothall\", \"mcp\", \"--workspace\", \".\", \"--worker\", \"opencode\"],\n      \"enabled\": true,\n    },\n  },\n}\n",
    },
    Case {
        client: "zed",
        files: [".config/zed/settings.json", "work/.zed/settings.json"],
        before: "// Zed settings\n{\n  /* mine */\n  \"theme\": \"One Dark\" // good\n}\n",
        after: "// Zed settings\n{\n  /* mine */\n  \"theme\": \"One Dark\", // good\n  \"context_servers\": {\n    \"moothall\": {\n      \"command\": \"moothall\",\n      \"args\": [\"mcp\", \"--workspace\", \".\", \"--worker\", \"zed\"],\n      \"env\": {}\n    }\n  }\n}\n",
    },
];

#[test]
fn connect_adds_one_entry_and_remove_restores_every_byte() {
    for Case { client, files, before, after } in CASES {
        for (place, flags) in [(0, &["--yes"][..]), (1, &["--yes", "--project"][..])] {
            let world = world();
            let file = match place {
                0 => home(&world, files[0]),
                _ => world.root().join(files[1]),
            };
            put(&file, before);
            set_mode(&file, 0o640);
            let connect = [&["connect", client][..], flags].concat();
            let ran = world.run(&connect);
            assert_eq!(ran.code, Some(0), "{ran}");
            assert_eq!(read(&file).unwrap(), after, "{client}");
            assert!(ran.stderr.contains("+ "), "{ran}");
            let again = world.run(&connect);
            assert_eq!(again.code, Some(0), "{again}");
            assert!(again.stderr.contains("is already connected"), "{again}");
            assert_eq!(read(&file).unwrap(), after, "{client}");
            let mode = fs_err::metadata(&file).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o640, "{client}");
            let removed = world.run(&[&connect[..], &["--remove"]].concat());
            assert_eq!(removed.code, Some(0), "{removed}");
            assert_eq!(read(&file).unwrap(), before, "{client}");
            let nothing = world.run(&[&connect[..], &["--remove"]].concat());
            assert!(nothing.stderr.contains("is not connected"), "{nothing}");
        }
    }
}

#[test]
fn connect_creates_missing_files_and_prints_the_same_entries() {
    for Case { client, files, .. } in CASES {
        let world = world();
        let printed = world.run(&["connect", client, "--project", "--print"]);
        assert_eq!(printed.code, Some(0), "{printed}");
        let ran = world.run(&["connect", client, "--project", "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran}");
        let written = read(&world.root().join(files[1])).unwrap();
        let (comment, entry) = printed.stdout.split_once('\n').unwrap();
        assert!(comment.ends_with(files[1].trim_start_matches("work/")), "{printed}");
        assert_eq!(entry, written, "{client}");
        // `--print` writes nothing.
        assert!(!home(&world, files[0]).exists());
    }
}

#[test]
fn the_hook_of_each_client_is_added_and_removed() {
    let cases = [
        ("claude-code", ".claude/settings.json", "\"Write|Edit|NotebookEdit\""),
        ("codex", ".codex/config.toml", "\"Bash|apply_patch\""),
        ("gemini", ".gemini/settings.json", "\"write_file|replace\""),
        ("opencode", ".config/opencode/plugins/moothall.js", "tool.execute.before"),
    ];
    for (client, name, expected) in cases {
        let world = world();
        let ran = world.run(&["connect", client, "--hook", "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran}");
        let file = home(&world, name);
        let text = read(&file).unwrap();
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("trusted_hash"), "{text}");
        let advises_review = ran.stderr.contains("until you have reviewed it");
        assert_eq!(advises_review, client == "codex", "{ran}");
        let again = world.run(&["connect", client, "--hook", "--yes"]);
        assert!(again.stderr.contains("is already connected"), "{again}");
        let removed = world.run(&["connect", client, "--remove", "--yes"]);
        assert_eq!(removed.code, Some(0), "{removed}");
        assert!(!read(&file).unwrap_or_default().contains("moothall"), "{client}");
    }
    for client in ["cursor", "zed"] {
        let refused = world().run(&["connect", client, "--hook", "--yes"]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("has no hook that runs before an edit"), "{refused}");
    }
}

#[test]
fn broken_files_and_foreign_plugins_are_refused_and_kept() {
    for (client, name, text) in [
        ("claude-code", ".claude.json", "{ \"mcpServers\": "),
        ("claude-code", ".claude.json", "{ \"mcpServers\": [] }"),
        ("codex", ".codex/config.toml", "[mcp_servers\n"),
        ("gemini", ".gemini/settings.json", "[]"),
    ] {
        let world = world();
        put(&home(&world, name), text);
        let refused = world.run(&["connect", client, "--yes"]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(
            refused.stderr.contains("cannot edit") && refused.stderr.contains("hint: "),
            "{refused}"
        );
        assert_eq!(read(&home(&world, name)).unwrap(), text);
    }
    // No file is written if one of them is refused.
    let world = world();
    let plugin = home(&world, ".config/opencode/plugins/moothall.js");
    put(&plugin, "export const Mine = 1;\n");
    let refused = world.run(&["connect", "opencode", "--hook", "--yes"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(!home(&world, ".config/opencode/opencode.json").exists());
    let removed = world.run(&["connect", "opencode", "--remove", "--yes"]);
    assert_eq!(removed.code, Some(0), "{removed}");
    assert_eq!(read(&plugin).unwrap(), "export const Mine = 1;\n");
}

#[test]
fn a_symbolic_link_is_kept_and_its_target_is_edited() {
    let world = world();
    let target = world.root().join("dotfiles/claude.json");
    put(&target, "{}\n");
    let link = home(&world, ".claude.json");
    fs_err::os::unix::fs::symlink(&target, &link).unwrap();
    let ran = world.run(&["connect", "claude-code", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(fs_err::symlink_metadata(&link).unwrap().is_symlink());
    assert!(read(&target).unwrap().contains("\"moothall\""));

    fs_err::remove_file(&target).unwrap();
    let refused = world.run(&["connect", "claude-code", "--yes"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("symbolic link to a file that does not exist"), "{refused}");
    assert!(fs_err::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn connect_shows_the_change_and_asks_before_it_writes() {
    let world = world();
    let refused = world.run(&["connect", "codex"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("hint: write it without asking with `--yes`"), "{refused}");
    let file = home(&world, ".codex/config.toml");
    assert!(!file.exists());

    let mut person = Person::start(world.command(&["connect", "codex", "--color", "never"]));
    person.answer("+ [mcp_servers.moothall]", "");
    person.answer("Write these changes? [Y/n]", "n\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(130), "{shown}");
    assert!(!file.exists());

    let mut person = Person::start(world.command(&["connect", "codex", "--color", "never"]));
    person.answer("Write these changes? [Y/n]", "y\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("check it with `codex mcp list`"), "{shown}");
    assert!(file.exists());
}

#[test]
fn the_entry_names_the_program_by_its_path_if_it_is_not_on_the_path() {
    let mut world = world();
    world.set("PATH", "/usr/bin:/bin");
    let printed = world.run(&["connect", "gemini", "--print"]);
    let program = fs_err::canonicalize(env!("CARGO_BIN_EXE_moothall")).unwrap();
    assert!(
        printed.stdout.contains(&format!("\"command\": \"{}\"", program.display())),
        "{printed}"
    );
    let project = world.run(&["connect", "gemini", "--project", "--yes"]);
    assert!(project.stderr.contains("`moothall` is not on your PATH"), "{project}");
    assert!(world.read(".gemini/settings.json").contains("\"command\": \"moothall\""));
}

#[test]
fn the_hook_refuses_what_the_gate_would_not_accept_at_once() {
    let world = world();
    world.write("main.py", "x = 1\n");
    world.write("Makefile", "all:\n");
    let call = |client: &str, tool: &str, input: &serde_json::Value| {
        let call = serde_json::json!({
            "session_id": "s", "hook_event_name": "PreToolUse", "cwd": world.path(""),
            "tool_name": tool, "tool_input": input,
        });
        world.run_with_input(&["hook", client], call.to_string().as_bytes())
    };
    let edit = |path: &str, old: &str, new: &str| serde_json::json!({ "file_path": world.path(path), "old_string": old, "new_string": new });
    let fine = call("claude-code", "Edit", &edit("main.py", "x = 1", "x = 2"));
    assert_eq!((fine.code, fine.stderr.as_str()), (Some(0), ""), "{fine}");
    let protected = call("claude-code", "Edit", &edit("Makefile", "all:", "all: run"));
    assert_eq!(protected.code, Some(2), "{protected}");
    assert!(protected.stderr.contains("needs review by a person"), "{protected}");
    assert!(protected.stderr.contains("draft_request"), "{protected}");
    let denied = serde_json::json!({ "file_path": ".git/config", "content": "x" });
    let refused = call("gemini", "write_file", &denied);
    assert_eq!(refused.code, Some(2), "{refused}");
    let patch = "*** Begin Patch\n*** Update File: Makefile\n@@\n-all:\n+all: run\n*** End Patch\n";
    let refused = call("codex", "apply_patch", &serde_json::json!({ "command": patch }));
    assert_eq!(refused.code, Some(2), "{refused}");
    let shell = call("codex", "Bash", &serde_json::json!({ "command": "ls" }));
    assert_eq!(shell.code, Some(0), "{shell}");
    let outside = serde_json::json!({ "file_path": "/tmp/notes.md", "content": "x" });
    assert_eq!(call("claude-code", "Write", &outside).code, Some(0));

    // What cannot be judged is refused.
    let broken = world.run_with_input(&["hook", "claude-code"], b"{");
    assert_eq!(broken.code, Some(2), "{broken}");
    world.write_config("policy.toml", "version = 99\n");
    let broken = call("claude-code", "Edit", &edit("main.py", "x = 1", "x = 2"));
    assert_eq!(broken.code, Some(2), "{broken}");
}
