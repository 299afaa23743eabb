//! `moothall review` by hunk: flags for scripts, and questions in a real terminal with a real
//! editor.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::Value;

use crate::world::{Ran, World};

fn numbered(changed: &[usize]) -> String {
    let line = |at: usize| match changed.contains(&at) {
        true => format!("new {at}\n"),
        false => format!("line {at}\n"),
    };
    (0..40).map(line).collect()
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

/// A waiting draft of a Makefile with three hunks, and its seal.
fn waiting(world: &World) -> (String, String) {
    fs_err::create_dir_all(world.path("ws")).unwrap();
    world.write("ws/Makefile", &numbered(&[]));
    let (_, told) = json(world, &["draft", "request", "Makefile", "--task", "t1"]);
    let draft = told["draft_id"].as_str().unwrap().to_owned();
    let arguments = ["draft", "write", &draft, "--file", "-", "--workspace", "ws"];
    let ran = world.run_with_input(&arguments, numbered(&[2, 20, 38]).as_bytes());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(run(world, &["draft", "submit", &draft]).code, Some(3));
    let (_, shown) = json(world, &["review", "show", &draft]);
    assert_eq!(shown["hunks"].as_array().unwrap().len(), 3, "{shown}");
    let seal = shown["seal"].as_str().unwrap().to_owned();
    (draft, seal)
}

#[test]
fn hunks_are_numbered_and_approved_by_number() {
    let world = World::new().with("USER", "ada");
    let (draft, seal) = waiting(&world);
    let shown = run(&world, &["review", "show", &draft]).stdout;
    assert!(shown.contains("hunk 1\n") && shown.contains("hunk 3\n"), "{shown}");
    assert!(shown.contains(&format!("moothall review hunks {draft}")), "{shown}");
    let approve = |more: &[&str]| {
        let mut all = vec!["review", "approve", &draft, "--if-match", &seal];
        all.extend(more);
        run(&world, &all)
    };
    let unknown = approve(&["--hunks", "4"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(unknown.stderr.contains("no hunk 4: the submission has 3 hunks"), "{unknown}");
    let both = approve(&["--hunks", "1", "--content", "x"]);
    assert_eq!(both.code, Some(2), "{both}");
    let approved = approve(&["--hunks", "1,3"]);
    assert_eq!((approved.code, approved.stdout.as_str()), (Some(0), "applied\n"), "{approved}");
    assert_eq!(world.read("ws/Makefile"), numbered(&[2, 38]));
    let audit = run(&world, &["audit", "show", "--draft", &draft]).stdout;
    assert!(audit.contains("amended") && audit.contains("hunks 1,3 of 3"), "{audit}");
}

#[test]
fn content_of_a_file_is_judged_and_applied_instead_of_the_proposal() {
    let world = World::new().with("USER", "ada");
    let (draft, seal) = waiting(&world);
    let approve = |file: &str| {
        json(&world, &["review", "approve", &draft, "--if-match", &seal, "--content", file])
    };
    world.write("bad", "<<<<<<< a\n=======\n>>>>>>> b\n");
    let (code, refused) = approve("bad");
    assert_eq!((code, &refused["state"]), (Some(1), &"rejected".into()), "{refused}");
    assert_eq!(world.read("ws/Makefile"), numbered(&[]));
    // Removes most lines, which the proposal did not do.
    world.write("short", "line 0\n");
    let (code, unconfirmed) = approve("short");
    assert_eq!((code, &unconfirmed["state"]), (Some(3), &"unconfirmed".into()), "{unconfirmed}");
    assert_eq!(world.read("ws/Makefile"), numbered(&[]));
    let confirm = &unconfirmed["confirm"].as_str().unwrap()[..12];
    let arguments = ["review", "approve", &draft, "--if-match", &seal, "--content", "short"];
    let wrong = run(&world, &[&arguments[..], &["--confirm", "000000000000"]].concat());
    assert_eq!(wrong.code, Some(2), "{wrong}");
    let done = run(&world, &[&arguments[..], &["--confirm", confirm]].concat());
    assert_eq!(done.code, Some(0), "{done}");
    assert_eq!(world.read("ws/Makefile"), "line 0\n");
    let audit = run(&world, &["audit", "show", "--draft", &draft]).stdout;
    assert!(audit.contains("edited by a person"), "{audit}");
}

#[test]
fn comments_are_shown_below_their_lines_and_to_the_worker() {
    let world = World::new().with("USER", "ada");
    let (draft, seal) = waiting(&world);
    let comment = |more: &[&str]| {
        let mut all = vec!["review", "comment", &draft, "--if-match", &seal[..12]];
        all.extend(more);
        run(&world, &all)
    };
    assert_eq!(comment(&["--line", "21", "--text", "why \u{1b}[31mthis?"]).code, Some(0));
    assert_eq!(comment(&["--line", "3", "--old", "--text", "keep"]).code, Some(0));
    let refused = comment(&["--line", "99", "--text", "x"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("has no line 99"), "{refused}");
    let shown = run(&world, &["review", "show", &draft]).stdout;
    assert!(shown.contains("▲ ada: why \u{fffd}[31mthis?\n"), "{shown}");
    assert!(shown.contains("▲ ada: keep\n"), "{shown}");
    let (_, status) = json(&world, &["draft", "status", &draft]);
    let comments = status["submission"]["comments"].as_array().unwrap();
    assert_eq!(comments[0]["comment"]["line"], 21);
    let text = run(&world, &["draft", "status", &draft]).stdout;
    assert!(text.contains("Makefile:21"), "{text}");
}

#[test]
fn review_by_hunk_needs_a_terminal() {
    let world = World::new().with("USER", "ada");
    let (draft, _) = waiting(&world);
    let ran = run(&world, &["review", "hunks", &draft]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("needs a terminal") && ran.stderr.contains("--hunks 1,3"), "{ran}");
}

/// Runs `review hunks` in a terminal and types these lines.
fn typed(world: &World, draft: &str, lines: &str) -> (Option<i32>, String) {
    use rustix::{pty, termios};
    let flags = pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY;
    let main = pty::openpt(flags).unwrap();
    pty::grantpt(&main).unwrap();
    pty::unlockpt(&main).unwrap();
    let size = termios::Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    termios::tcsetwinsize(&main, size).unwrap();
    let name = pty::ptsname(&main, Vec::new()).unwrap();
    let open = || {
        let name = name.to_str().unwrap();
        let file = fs_err::File::options().read(true).write(true).open(name).unwrap();
        Stdio::from(file.into_file())
    };
    let mut command = world.command(&["review", "hunks", draft, "--workspace", "ws"]);
    let mut child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
    // Dropping the command closes our copies of the other end, so that reading ends.
    drop(command);
    let mut main = std::fs::File::from(main);
    main.write_all(lines.as_bytes()).unwrap();
    let mut drawn = Vec::new();
    // Reading from a closed terminal ends with an error.
    let _ = main.read_to_end(&mut drawn);
    let text = String::from_utf8_lossy(&drawn).replace("\r\n", "\n");
    (child.wait().unwrap().code(), anstream::adapter::strip_str(&text).to_string())
}

#[test]
fn keys_approve_reject_and_comment_in_a_terminal() {
    let world = World::new().with("USER", "ada");
    let (draft, _) = waiting(&world);
    let (code, text) = typed(&world, &draft, "?\ny\nc\n21\nwhy this?\nn\ny\ny\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("y - approve this hunk") && text.contains("+ new 20"), "{text}");
    assert!(text.contains("2 of 3 hunks approved") && text.contains("applied"), "{text}");
    assert_eq!(world.read("ws/Makefile"), numbered(&[2, 38]));
    let (_, status) = json(&world, &["draft", "status", &draft]);
    assert_eq!(status["submission"]["comments"][0]["comment"]["text"], "why this?");
}

#[test]
fn quitting_decides_nothing_and_sending_back_gives_a_reason() {
    let world = World::new().with("USER", "ada");
    let (draft, _) = waiting(&world);
    let (code, text) = typed(&world, &draft, "y\nq\n");
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("nothing was decided"), "{text}");
    assert_eq!(world.read("ws/Makefile"), numbered(&[]));
    let (code, text) = typed(&world, &draft, "d\ns\nsmaller, please\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("sent back to the worker"), "{text}");
    let (_, status) = json(&world, &["draft", "status", &draft]);
    assert!(status.to_string().contains("smaller, please"), "{status}");
}

#[test]
fn editor_opens_the_proposal_in_a_private_file_and_its_text_is_applied() {
    let world = World::new().with("USER", "ada");
    let seen = world.path("seen");
    let script = format!(
        "#!/bin/sh\nstat -c '%a' \"$1\" \"$(dirname \"$1\")\" > '{0}'\n\
         cat \"$1\" >> '{0}'\nsed -i 's/new 20/my own/' \"$1\"\n",
        seen.display()
    );
    world.write("editor.sh", &script);
    let path = world.path("editor.sh");
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let world = world.with("VISUAL", path.to_str().unwrap());
    let (draft, _) = waiting(&world);
    // The rejected hunk is not part of the text to edit.
    let (code, text) = typed(&world, &draft, "n\ne\ny\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("your version of Makefile") && text.contains("+ my own"), "{text}");
    assert!(text.contains("1 file edited"), "{text}");
    assert_eq!(world.read("ws/Makefile"), numbered(&[20, 38]).replace("new 20", "my own"));
    let seen = world.read("seen");
    assert!(seen.starts_with("600\n700\nline 0\n"), "{seen}");
    let (_, status) = json(&world, &["draft", "status", &draft]);
    assert_eq!(status["submission"]["amended"][0]["edited"], true, "{status}");
}

/// The worker writes again while the reviewer reads: the answers are about the old version.
#[test]
fn draft_that_changes_while_it_is_reviewed_is_not_applied() {
    let world = World::new().with("USER", "ada");
    let program = env!("CARGO_BIN_EXE_moothall");
    let script = format!(
        "#!/bin/sh\nprintf 'all: harm\\n' | '{program}' draft write \"$DRAFT\" --file - --workspace ws\n\
         '{program}' draft submit \"$DRAFT\" --workspace ws\necho mine >> \"$1\"\n"
    );
    world.write("editor.sh", &script);
    let path = world.path("editor.sh");
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (draft, _) = waiting(&world);
    let world = world.with("EDITOR", path.to_str().unwrap()).with("DRAFT", &draft);
    let (code, text) = typed(&world, &draft, "e\ny\n");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("draft changed since it was shown"), "{text}");
    assert_eq!(world.read("ws/Makefile"), numbered(&[]));
}
