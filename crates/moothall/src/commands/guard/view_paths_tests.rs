use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use fs_err as fs;

use super::find_agent;

/// A home directory with an agent that npm installed, and one in `~/.local/bin`.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let program = |path: &str, text: &str| {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("node/v20/lib/node_modules/@x/agent/cli.js", "#!/usr/bin/env node\n");
    program("node/v20/bin/node", "");
    program(".local/bin/other", "#!/bin/sh\n");
    program("ws/agent.sh", "#!/bin/sh\n");
    let link = "../lib/node_modules/@x/agent/cli.js";
    fs::os::unix::fs::symlink(link, home.path().join("node/v20/bin/agent")).unwrap();
    home
}

fn check(name: &str, expected: Option<(&str, &[&str])>) {
    let home = home();
    let at = |path: &str| fs::canonicalize(home.path()).unwrap().join(path);
    let search = std::env::join_paths([at("node/v20/bin"), at(".local/bin")]).unwrap();
    let found = find_agent(OsStr::new(name), &search, &at("ws"), &at(""));
    match expected {
        None => assert!(found.unwrap_err().message.contains("cannot find the agent")),
        Some((program, read)) => {
            let found = found.unwrap();
            assert_eq!(found.program, at(program));
            let read: Vec<PathBuf> = read.iter().map(|path| at(path)).collect();
            let mut shown = found.read;
            shown.retain(|path| path.starts_with(at("")));
            assert_eq!(shown, read);
        }
    }
}

#[test]
fn an_agent_sees_its_packages_and_interpreter_but_not_the_home_directory() {
    check(
        "agent",
        Some((
            "node/v20/bin/agent",
            &[
                ".local/bin",
                "node/v20",
                "node/v20/bin",
                "node/v20/bin/agent",
                "node/v20/bin/node",
                "node/v20/lib/node_modules",
                "node/v20/lib/node_modules/@x/agent/cli.js",
            ],
        )),
    );
    check("other", Some((".local/bin/other", &[".local/bin", ".local/bin/other", "node/v20/bin"])));
}

#[test]
fn a_program_of_the_workspace_comes_from_the_copy() {
    check("./agent.sh", Some(("ws/agent.sh", &[".local/bin", "node/v20/bin"])));
    check("./missing.sh", None);
    check("missing", None);
}
