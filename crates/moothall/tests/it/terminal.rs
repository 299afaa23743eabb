//! Colors, pipes, and untrusted text.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _, pipe};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use insta::assert_snapshot;
use moothall_testkit::{ProviderBehaviour, ProviderFault};

use crate::backup::draft_that_waits;
use crate::fake::Fake;
use crate::init::Person;
use crate::scene::{Scene, second_try};
use crate::world::{SMALL, World};

#[test]
fn pipes_get_no_colour() {
    let world = World::new();
    for arguments in
        [&["models"][..], &["ask", "hello"], &["--help"], &["ask", "--model", "demo", "hello"]]
    {
        let ran = world.run(arguments);
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran}");
    }
}

#[test]
fn colour_can_be_forced_with_a_flag() {
    let world = World::new();
    assert_snapshot!(world.run(&["ask", "--color", "always", "hello"]));
    assert_snapshot!(world.run(&["models", "ollama", "--color", "always"]));
}

#[test]
fn every_hint_of_an_error_is_painted() {
    let world = World::new();
    world.write("moothall.toml", "modl = 1\nbudgt.usd = 2\n");
    assert_snapshot!(world.run(&["ask", "--color", "always", "hello"]));
}

#[test]
fn variables_and_the_flag_decide_about_colour_in_the_usual_order() {
    let painted = |world: &World, when: &str| {
        world.run(&["ask", "--color", when, "hello"]).stderr.contains('\u{1b}')
    };
    let forced = World::new().with("CLICOLOR_FORCE", "1");
    assert!(painted(&forced, "auto"));
    assert!(!painted(&forced, "never"));
    let plain = World::new().with("NO_COLOR", "1");
    assert!(!painted(&plain, "auto"));
    assert!(painted(&plain, "always"));
}

#[test]
fn answer_reaches_a_pipe_byte_for_byte() {
    // Regression: escape sequences were stripped, so the file differed from the receipt.
    let said = "a\u{1b}[31mred\u{1b}[0m \u{7}bell\r\n\u{9b}1mtail";
    let fake = Fake::start();
    fake.always(ProviderBehaviour::text(said));
    let world = World::new();
    fake.configure(&world, "");
    for when in ["auto", "always", "never"] {
        let ran = world.run(&[
            "ask",
            "--config",
            "fake.toml",
            "--color",
            when,
            "--model",
            "openai/m",
            "hello",
        ]);
        assert_eq!((ran.code, ran.stdout), (Some(0), format!("{said}\n")), "{when}");
    }
}

#[test]
fn a_closed_stdout_pipe_ends_the_program_quietly() {
    let world = World::new();
    for arguments in [
        &["--help"][..],
        &["man"],
        &["completions", "bash"],
        &["models"],
        &["models", "--json"],
        &["config", "show"],
        &["ask", "--model", "demo", "hello"],
        &["ask", "--model", "demo", "--json", "hello"],
    ] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = world.command(arguments).stdout(writer).output().unwrap();
        let ran = world.ran(arguments, output);
        assert_eq!(ran.code, Some(0), "{ran}");
        assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("error"), "{ran}");
    }
}

#[test]
fn a_closed_stderr_does_not_affect_the_result() {
    // Regression: the log reported on standard error that standard error was closed, and panicked.
    let fake = Fake::scripted([
        ProviderBehaviour::from(ProviderFault::ServerError),
        ProviderBehaviour::text("fine"),
    ]);
    let world = World::new();
    fake.configure(&world, "");
    let arguments = ["ask", "-vvv", "--config", "fake.toml", "--model", "openai/m", "hello"];
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let ran = world.ran(&arguments, world.command(&arguments).stderr(writer).output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "fine\n"), "{ran}");
}

/// What a command prints on a terminal with this many columns.
fn shown_in(world: &World, columns: usize, arguments: &[&str]) -> String {
    let command = world.on_terminal(columns, 40, &[arguments, &["--color", "never"]].concat());
    let (shown, code) = Person::start(command).leave();
    assert_eq!(code, Some(0), "{shown}");
    shown
}

/// Regression: words were broken and rows wrapped.
#[test]
fn tables_drop_columns_in_narrow_terminals() {
    let world = World::new();
    let task = "print the first 3 primes, one per line, and their sum";
    Scene::new(&world).run(0, task, second_try());
    let header = |shown: &str| {
        shown.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (columns, expected) in [(80, "RUN STATE VERDICT SPENT TITLE"), (40, "RUN STATE TITLE")] {
        let shown = shown_in(&world, columns, &["runs"]);
        assert_eq!(header(&shown), expected, "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= columns), "{shown}");
        let shown = shown_in(&world, columns, &["models", "anthropic"]);
        let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with("  ")).collect();
        assert!(rows.iter().all(|row| row.starts_with("  anthropic/")), "{shown}");
        assert!(rows.iter().all(|row| row.chars().count() <= columns), "{shown}");
        assert_eq!(shown.contains(" context "), columns == 80, "{shown}");
    }
}

/// Regression: the terminal broke words of lines that were made for 80 columns.
#[test]
fn commands_break_lines_between_words_in_narrow_terminals() {
    let world = World::new();
    assert_eq!(world.run(&SMALL).code, Some(0));
    let run = world.only_run();
    draft_that_waits(&world);
    world.write("memo.md", "Revenue was $9 million.\n");
    for arguments in [
        &["show", run.as_str()][..],
        &["moves", run.as_str()],
        &["draft", "list", "--workspace", "ws"],
        &["doctor"],
        &["check", "memo.md", "--facts", "HLXI"],
    ] {
        let piped = world.run(arguments);
        let piped = format!("{} {}", piped.stdout, piped.stderr);
        let words: BTreeSet<&str> = piped.split_whitespace().collect();
        let command = world.on_terminal(40, 40, &[arguments, &["--color", "never"]].concat());
        let (shown, _) = Person::start(command).leave();
        let shown = anstream::adapter::strip_str(&shown).to_string();
        assert!(shown.lines().count() > 1, "{arguments:?}: {shown}");
        for line in shown.lines() {
            // A path stays whole, so that it can be copied.
            let is_path = line.contains('/') && !line.trim().contains(' ');
            assert!(line.chars().count() <= 40 || is_path, "{arguments:?}: {line}\n{shown}");
            for word in line.split_whitespace() {
                let is_whole = words.contains(word) || word.ends_with('…');
                assert!(is_whole, "{arguments:?}: {word} is not in {piped}\n{shown}");
            }
        }
    }
}

/// Imports images from a pipe that delivers only 100 bytes.
fn start_slow_import(world: &World, flags: &[&str]) -> Child {
    let arguments = [&["image", "import", "-"], flags].concat();
    let mut child = world.command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(&[b'x'; 100]).unwrap();
    child
}

#[test]
fn long_work_prints_what_happens_and_how_far_it_is() {
    let world = World::new();
    let silent = [&["--json"], &["--quiet"]].map(|flags| start_slow_import(&world, flags));
    let mut noisy = start_slow_import(&world, &[]);
    let mut lines = BufReader::new(noisy.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    assert!(line.starts_with("… importing images, 100 bytes, "), "{line}");
    // Closes the pipe, which ends the import with an error.
    assert_eq!(noisy.wait_with_output().unwrap().status.code(), Some(4));
    for child in silent {
        let ended = child.wait_with_output().unwrap();
        let shown = String::from_utf8(ended.stderr).unwrap();
        assert!(shown.starts_with("error: "), "{shown}");
    }
}

#[test]
fn a_waiting_question_says_how_much_of_the_answer_has_arrived() {
    let fake = Fake::start();
    let slow = ProviderFault::SlowDrip { chunk: 10, every: Duration::from_millis(100) };
    fake.always(ProviderBehaviour::text(r#"{"count": 3}"#).with_fault(slow));
    let world = World::new();
    fake.configure(&world, "");
    world.write("count.json", r#"{"type": "object", "required": ["count"]}"#);
    let ask = ["ask", "--config", "fake.toml", "--model", "openai/m", "--schema", "count.json"];
    let ask = [&ask[..], &["--color", "never", "How many?"]].concat();
    let mut person = Person::start(world.command(&ask));
    person.answer("… waiting for openai/m, tokens received: about ", "");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains(r#"{"count": 3}"#), "{shown}");
}

#[test]
fn long_work_is_one_changing_line_on_a_terminal() {
    let world = World::new();
    let program = world.command(&[]);
    let mut shell = Command::new("sh");
    let script = "mkfifo bundle && exec \"$0\" image import - --color never <bundle";
    shell.args(["-c", script]).arg(program.get_program()).current_dir(world.path(""));
    shell.env("HOME", world.root().join("home"));
    let mut person = Person::start(shell);
    let path = world.path("bundle");
    while !path.exists() {
        std::thread::yield_now();
    }
    let mut bundle = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
    bundle.write_all(&[b'x'; 100]).unwrap();
    for _redraw in 0..3 {
        person.answer("… importing images, 100 bytes, ", "");
    }
    drop(bundle);
    let (shown, code) = person.leave();
    assert_eq!(code, Some(4), "{shown}");
    assert!(shown.contains("error: cannot read the bundle"), "{shown}");
}
