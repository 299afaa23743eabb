//! Checks that sandboxes leave nothing behind, however their process ends.
//!
//! A process runs programs on all engines, several at a time and with pools; it is killed at a
//! random moment, and the next one starts before that. Final stances: nothing may be left on the host.
//! `cargo xtask leak` does the same for longer.

mod leftovers;
mod victim;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use moothall_sandbox::{SandboxHost, SandboxRegistry};

use self::leftovers::Before;

/// Number of executions, number of kills and a seed, for a longer run.
const SIZE: &str = "MOOTHALL_TEST_LEAK";

/// Folder and seed of the process that will be killed.
const FOLDER: &str = "MOOTHALL_TEST_LEAK_FOLDER";
const SEED: &str = "MOOTHALL_TEST_LEAK_SEED";

/// Time limit without progress. It covers building the first template.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// How long dying processes may take to disappear.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A pseudorandom generator with a fixed seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    fn pause(&mut self, most_ms: u64) {
        std::thread::sleep(Duration::from_millis(self.below(most_ms)));
    }
}

#[test]
fn executions_and_killed_owners_leave_nothing_behind() {
    let size = std::env::var(SIZE).unwrap_or_else(|_| "40 8 1".to_owned());
    let size: Vec<u64> = size.split(' ').map(|number| number.parse().unwrap()).collect();
    let [executions, kills, seed] = size[..] else { panic!("three numbers in {SIZE}") };

    // A short path, because runsc creates sockets in it.
    let folder = tempfile::Builder::new().prefix("mhl").tempdir().unwrap();
    let before = Before::look(folder.path());
    let began = Instant::now();
    let mut dice = Dice(seed);
    let mut done = Done::default();
    let mut life = Life::start(folder.path(), dice.below(u64::MAX));
    for kill in 0..kills {
        let left = executions.saturating_sub(done.all());
        let enough = done.all() + dice.below(2 * left / (kills - kill + 1) + 1);
        while done.all() < enough {
            done.count(&life.line());
        }
        dice.pause(300);
        // The next process starts while the previous one is still alive or dying.
        let next = Life::start(folder.path(), dice.below(u64::MAX));
        dice.pause(200);
        life.kill(&mut done);
        life = next;
    }
    while done.all() < executions {
        done.count(&life.line());
    }
    life.end(&mut done);

    let took = began.elapsed();
    let reaped = before.expect_nothing_left(folder.path());
    println!(
        "{} executions ({:?}) in {} sandboxes, {kills} kills, seed {seed}, in {:.0} s; {reaped} \
         sandboxes were left to the last reaper, and nothing after it",
        done.all(),
        done.0,
        before.count(),
        took.as_secs_f64(),
    );
}

/// Reported executions by engine.
#[derive(Default)]
struct Done(BTreeMap<String, u64>);

impl Done {
    fn all(&self) -> u64 {
        self.0.values().sum()
    }

    fn count(&mut self, line: &str) {
        assert!(!line.starts_with("failed"), "{line}");
        if let Some(engine) = line.strip_prefix("done ") {
            *self.0.entry(engine.to_owned()).or_default() += 1;
        }
    }
}

/// A process that executes programs.
struct Life {
    process: Child,
    lines: Receiver<String>,
}

impl Life {
    fn start(folder: &Path, seed: u64) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", victim::NAME, "--ignored", "--nocapture"])
            .env(FOLDER, folder)
            .env(SEED, seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self { process, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(TEST_TIMEOUT).expect("an execution ends in time")
    }

    fn kill(mut self, done: &mut Done) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.lines.iter().for_each(|line| done.count(&line));
    }

    /// Ends a process without killing it.
    fn end(mut self, done: &mut Done) {
        drop(self.process.stdin.take());
        self.lines.iter().for_each(|line| done.count(&line));
        assert!(self.process.wait().unwrap().success());
    }
}

/// Cleans up as the next process does at its start. Returns the number of sandboxes.
fn reap(folder: &Path) -> usize {
    let reaped =
        SandboxRegistry::reap(&SandboxHost::records(&victim::state(folder))).unwrap().len();
    victim::host(folder);
    reaped
}
