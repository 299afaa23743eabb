//! Runs the program in a temporary directory with its own home and an empty environment.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A consultation that takes one or two seconds.
pub(crate) const SMALL: [&str; 11] = [
    "consult",
    "HLXI",
    "--verdict",
    "off",
    "--model",
    "demo",
    "--moves",
    "5",
    "--rounds",
    "1",
    "--yes",
];

/// The isolated environment of one test, removed at its end.
pub(crate) struct World {
    folder: TempDir,
    variables: BTreeMap<String, String>,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap(), variables: BTreeMap::new() };
        for folder in ["work", "home"] {
            fs_err::create_dir(world.root().join(folder)).unwrap();
        }
        world
    }

    /// Sets a variable for all later commands.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }

    /// Contains every file that the program can write.
    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// A path in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join("work").join(name)
    }

    /// Writes a file to the working directory.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs_err::write(self.path(name), text).unwrap();
    }

    /// Writes a file to the user's configuration directory, with the mode required for keys.
    pub(crate) fn write_config(&self, name: &str, text: &str) {
        let path = self.root().join("home/.config/moothall").join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        set_mode(&path, 0o600);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs_err::read_to_string(self.path(name)).unwrap()
    }

    /// The lines of an events file.
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        // Measurements need an optimized program; optimized tests would take long to build.
        let program = std::env::var_os("MOOTHALL_TEST_PROGRAM");
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_moothall").into());
        let mut command = Command::new(program);
        let home = self.root().join("home");
        command
            .args(arguments)
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("XDG_DATA_HOME", home.join(".local/share"))
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .env("XDG_STATE_HOME", home.join(".local/state"))
            .env("HOME", home)
            // Tests download nothing unless they ask for it.
            .env("MOOTHALL_ISOLATION__BUILD", "false")
            .envs(&self.variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The command, with the size of its terminal set before it starts.
    pub(crate) fn on_terminal(&self, columns: usize, rows: usize, arguments: &[&str]) -> Command {
        let command = self.command(arguments);
        let mut shell = Command::new("sh");
        let script = format!("stty cols {columns} rows {rows} && exec \"$0\" \"$@\"");
        shell.args(["-c", &script]).arg(command.get_program()).args(command.get_args());
        shell.current_dir(self.path("")).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.ran(arguments, self.command(arguments).output().unwrap())
    }

    /// The id of the only stored run.
    #[track_caller]
    pub(crate) fn only_run(&self) -> String {
        let runs = self.run(&["runs", "--json"]).json();
        assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
        runs["runs"][0]["run_id"].as_str().unwrap().to_owned()
    }

    /// The id of the run that was started last.
    pub(crate) fn newest_run(&self) -> String {
        let runs = self.run(&["runs", "--json"]).json();
        runs["runs"][0]["run_id"].as_str().unwrap().to_owned()
    }

    /// With `input` on standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // A program that does not read its input may close it.
        let _ = child.stdin.take().unwrap().write_all(input);
        self.ran(arguments, child.wait_with_output().unwrap())
    }

    /// The result of a process that the test started itself.
    pub(crate) fn ran(&self, arguments: &[&str], output: Output) -> Ran {
        let quoted = arguments.iter().map(|argument| {
            if argument.is_empty() || argument.contains([' ', '"']) {
                format!("'{argument}'")
            } else {
                (*argument).to_owned()
            }
        });
        Ran {
            line: std::iter::once("moothall".to_owned())
                .chain(quoted)
                .collect::<Vec<_>>()
                .join(" "),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: without_progress(&String::from_utf8(output.stderr).unwrap()),
            root: self.root().to_str().unwrap().to_owned(),
        }
    }
}

/// The text without the lines about slow work, which depend on the speed of the machine.
fn without_progress(stderr: &str) -> String {
    let is_progress = |line: &str| line.trim_start_matches("\u{1b}[2m").starts_with("… ");
    stderr.split_inclusive('\n').filter(|line| !is_progress(line)).collect()
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs_err::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// The result of a command. `Display` prints the whole command as in snapshots.
#[derive(Debug)]
pub(crate) struct Ran {
    line: String,
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    root: String,
}

impl Ran {
    /// Parses standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self}"))
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or_else(|| "none, a signal".to_owned(), |code| code.to_string());
        let text = format!(
            "$ {}\nexit code: {code}\n----- stdout -----\n{}----- stderr -----\n{}",
            self.line, self.stdout, self.stderr
        );
        f.write_str(&filtered(&text.replace(&self.root, "[FOLDER]")))
    }
}

/// The text without values that differ between runs, and with visible escape sequences.
pub(crate) fn filtered(text: &str) -> String {
    let digits = |c: char| c.is_ascii_digit();
    let mut text = text
        .replace('\u{1b}', "␛")
        .replace(concat!("moothall ", env!("CARGO_PKG_VERSION")), "moothall [VERSION]")
        .replace(
            concat!("\"build\": \"", env!("CARGO_PKG_VERSION"), "\""),
            "\"build\": \"[VERSION]\"",
        );
    text = replace_runs(
        &text,
        |c| c.is_ascii_hexdigit() || c == '-',
        |run| match (run.len(), run.contains('-')) {
            (64, false) => Some("[HASH]"),
            (36, true) if run.match_indices('-').map(|(at, _)| at).eq([8, 13, 18, 23]) => {
                Some("[RUN]")
            }
            // The prefix of an id that a test did not choose.
            (13, true) if run.find('-') == Some(8) && !run.starts_with("019a85c") => {
                Some("[SHORT]")
            }
            _ => None,
        },
    );
    text = replace_runs(
        &text,
        |c| digits(c) || "TZ:.-".contains(c),
        |run| {
            let is_time = run.starts_with("20") && run.ends_with('Z') && run.contains('T');
            (is_time && matches!(run.len(), 20 | 27)).then_some("[TIME]")
        },
    );
    // The command depends on what is installed on the machine that runs the tests.
    text = replace_after(&text, "; to use a microVM, run `", |c| c != '`', "[COMMAND]");
    for (before, shown) in [
        ("127.0.0.1:", "[PORT]"),
        ("\"latency_ms\": ", "[MS]"),
        ("\"latency_ms\":", "[MS]"),
        ("\"delay_ms\":", "[MS]"),
        ("delay_ms=", "[MS]"),
        ("\"duration_ms\":", "[MS]"),
        ("\"created_at_ms\": ", "[MS]"),
        ("\"updated_at_ms\": ", "[MS]"),
    ] {
        text = replace_after(&text, before, digits, shown);
    }
    let line = |line: &str| {
        let (words, reset) = match line.trim_end().strip_suffix("␛[0m") {
            Some(words) => (words, "␛[0m"),
            None => (line.trim_end(), ""),
        };
        let Some((rest, unit)) = words.rsplit_once(' ') else { return line.to_owned() };
        let Some((rest, _time)) = rest.rsplit_once(' ') else { return line.to_owned() };
        match unit {
            "s" if rest.contains(" tokens · ") => format!("{rest} [SECONDS] s{reset}"),
            "ms" if rest.contains(" tokens, ") => format!("{rest} [MS] ms{reset}"),
            _ => line.to_owned(),
        }
    };
    let lines: Vec<&str> = text.lines().collect();
    without_version_warnings(&lines).map(line).collect::<Vec<_>>().join("\n")
}

/// The lines without warnings about the version of this machine's container runtime.
fn without_version_warnings<'a>(lines: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let mut in_list = false;
    lines.iter().copied().filter(move |line| {
        in_list |= line.trim_start().starts_with("\"isolation_warnings\": [");
        let is_shown = !in_list && !line.contains(" is older than ");
        in_list &= !line.trim().starts_with(']');
        is_shown
    })
}

/// Replaces some of the longest sequences of matching characters.
fn replace_runs(
    text: &str,
    belongs: impl Fn(char) -> bool,
    instead: impl Fn(&str) -> Option<&'static str>,
) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(&belongs) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !belongs(c)).unwrap_or(from.len());
        let (run, after) = from.split_at(end);
        replaced.push_str(before);
        replaced.push_str(instead(run).unwrap_or(run));
        rest = after;
    }
    replaced + rest
}

/// Replaces the text after `marker`.
fn replace_after(
    text: &str,
    marker: &str,
    belongs: impl Fn(char) -> bool,
    instead: &str,
) -> String {
    let mut pieces = text.split(marker);
    let mut replaced = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(&belongs);
        replaced.push_str(marker);
        replaced.push_str(if rest.len() < piece.len() { instead } else { "" });
        replaced.push_str(rest);
    }
    replaced
}

#[test]
fn snapshot_filters_hide_only_values_that_differ_between_runs() {
    let hash = "0f".repeat(32);
    let text = format!(
        "run 01a1dd22-30af-720e-bd62-e1beb0920949 of {hash}.json at http://127.0.0.1:4711/v1\n\
         2026-11-15T02:56:08.518333Z  WARN tries=1 delay_ms=740\n\
         {{\"latency_ms\": 12, \"tokens\": 12}}\n\
         demo · 82 tokens · $0.00 · 0.1 s\n\
         demo · 82 tokens · $0.00 · 0.1 s\u{1b}[0m\n\
         ok: 82 tokens, $0.00, 17 ms\n\
         runc 1.1.5 is older than 1.2.8: update it, unless your distribution fixed CVE-1\n\
         \"isolation_warnings\": [\n\"runc 1.1.5\"\n],\n\
         run 01a1dd22-30af started 2026-11-15T02:56:08Z\n\
         as of 2026-11-15, cafe-1 and 12 s"
    );
    assert_eq!(
        filtered(&text),
        "run [RUN] of [HASH].json at http://127.0.0.1:[PORT]/v1\n\
         [TIME]  WARN tries=1 delay_ms=[MS]\n\
         {\"latency_ms\": [MS], \"tokens\": 12}\n\
         demo · 82 tokens · $0.00 · [SECONDS] s\n\
         demo · 82 tokens · $0.00 · [SECONDS] s␛[0m\n\
         ok: 82 tokens, $0.00, [MS] ms\n\
         run [SHORT] started [TIME]\n\
         as of 2026-11-15, cafe-1 and 12 s"
    );
}

/// With the built-in `kill` of the shell, because a machine may lack the program.
pub(crate) fn signal(child: &Child, name: &str) {
    let process = child.id().to_string();
    let sent = Command::new("sh").args(["-c", "kill -$1 \"$0\"", &process, name]).status().unwrap();
    assert!(sent.success());
}

/// Checks that a run was paused by one Ctrl-C, and that the last line says how to continue it.
#[track_caller]
pub(crate) fn check_paused(world: &World, ran: &Ran) {
    assert_eq!(ran.code, Some(130), "{ran}");
    let last = format!("\nPaused. Continue with `moothall resume {}`.\n", &world.only_run()[..13]);
    assert!(ran.stderr.ends_with(&last), "{ran}");
    let (_, after) = ran.stderr.split_once("Ctrl-C again exits immediately\n").unwrap();
    for unwanted in ["WARN", "error:", "sandbox", "paused"] {
        assert!(!after.contains(unwanted), "{unwanted} in {ran}");
    }
}

/// Sends a signal to a child once a second until it exits: the first Ctrl-C pauses a run, the
/// second stops it.
pub(crate) fn signal_until_exit(mut child: Child, signal: &str) -> Output {
    for _ in 0..60 {
        self::signal(&child, signal);
        for _ in 0..20 {
            if child.try_wait().unwrap().is_some() {
                return child.wait_with_output().unwrap();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    panic!("the process does not exit")
}
