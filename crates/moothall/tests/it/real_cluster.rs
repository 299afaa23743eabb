//! `moothall cluster` with real Restate, PostgreSQL and workers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use moothall_testkit::{ProviderBehaviour, ProviderFault};
use serde_json::{Value, json};

use crate::chaos::started;
use crate::fake::Fake;
use crate::real_sandbox;
use crate::serve::{Server, frames, numbered};
use crate::world::{Ran, World};

const PATIENCE: Duration = Duration::from_secs(240);

const CONSULT: [&str; 12] = [
    "consult",
    "HLXI",
    "--verdict",
    "off",
    "--model",
    "demo",
    "--isolation",
    "none",
    "--moves",
    "5",
    "--rounds",
    "1",
];

/// A machine with a cluster that is removed after the test.
struct Machine(World);

impl Drop for Machine {
    fn drop(&mut self) {
        let down = self.0.run(&["cluster", "down", "--purge"]);
        if !std::thread::panicking() {
            assert!(matches!(down.code, Some(0 | 2)), "{down}");
        }
    }
}

impl Machine {
    fn new() -> Self {
        Self::of(World::new())
    }

    fn of(world: World) -> Self {
        // The location used by `tools/restate/install.sh`.
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        let caches =
            std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
        Self(world.with("XDG_CACHE_HOME", caches.to_str().unwrap()))
    }

    /// Starts a cluster; returns it with the value for `--runner`.
    fn with_cluster(more: &[&str]) -> (Self, String) {
        Self::new().and_cluster(more)
    }

    fn and_cluster(self, more: &[&str]) -> (Self, String) {
        let mut machine = self;
        let engine = machine.up(more);
        let environment = machine.environment();
        machine.0.set("MOOTHALL_DATABASE_URL", &environment);
        (machine, engine)
    }

    /// Starts the cluster, and returns the value for `--runner`.
    fn up(&self, more: &[&str]) -> String {
        let up = self.0.run(&[&["cluster", "up"], more].concat());
        assert_eq!(
            up.code,
            Some(0),
            "`bash tools/postgres/install.sh` and `bash tools/restate/install.sh` get what it \
             needs: {up}"
        );
        let (first, second) = up.stdout.trim_end().split_once('\n').unwrap();
        assert_eq!(first, format!(". '{}'", self.file("env").display()));
        second.rsplit_once(" --runner ").unwrap().1.to_owned()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.root().join("home/.local/share/moothall/cluster").join(name)
    }

    /// The URL of the database, as read by a shell from the environment file.
    fn environment(&self) -> String {
        let read = "set -a && . \"$0\" && printf %s \"$MOOTHALL_DATABASE_URL\"";
        let read = Command::new("sh").args(["-c", read]).arg(self.file("env")).output().unwrap();
        String::from_utf8(read.stdout).unwrap()
    }

    fn status(&self) -> (Option<i32>, Vec<Value>) {
        let status = self.0.run(&["cluster", "status", "--json"]);
        (status.code, status.json()["parts"].as_array().unwrap().clone())
    }

    fn consult(&self, engine: &str) -> Ran {
        let ran = self.0.run(&[&CONSULT[..], &["--runner", engine, "--json"]].concat());
        assert_eq!(ran.code, Some(0), "{ran}");
        ran
    }

    fn admin(&self) -> String {
        let (_, parts) = self.status();
        parts[0]["admin"].as_str().unwrap().to_owned()
    }
}

fn pids(parts: &[Value]) -> BTreeMap<String, u64> {
    let pid = |part: &Value| {
        (part["name"].as_str().unwrap().to_owned(), part["pid"].as_u64().unwrap_or_default())
    };
    parts.iter().map(pid).collect()
}

fn states(parts: &[Value]) -> Vec<&str> {
    parts.iter().map(|part| part["state"].as_str().unwrap()).collect()
}

fn kill(pid: u64) {
    let killed = Command::new("sh").args(["-c", "kill -9 \"$0\"", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_cluster_starts_recovers_keeps_its_runs_and_is_removed_completely() {
    let mut machine = Machine::new();
    let none = machine.0.run(&["cluster", "status"]);
    assert_eq!(none.code, Some(2), "{none}");
    assert!(none.stderr.contains("create one with `moothall cluster up`"), "{none}");

    // Nothing is downloaded without `--install`.
    let without = World::new().run(&["cluster", "up"]);
    assert_eq!(without.code, Some(4), "{without}");
    let words =
        "error: the Restate server is not installed\nhint: run `moothall cluster up --install`";
    assert!(without.stderr.starts_with(words), "{without}");

    // The first `up` is killed half-way.
    let mut first = machine.0.command(&["cluster", "up"]).spawn().unwrap();
    until("a part is started", || {
        fs_err::read_to_string(machine.file("restate-1.pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let engine = machine.up(&[]);
    let (code, parts) = machine.status();
    assert_eq!((code, states(&parts)), (Some(0), vec!["up"; 4]), "{parts:#?}");

    // Only the user can read the password, and it is required.
    let address = machine.environment();
    let password = address.split([':', '@']).nth(2).unwrap();
    for name in ["env", "cluster.json"] {
        let mode = fs_err::metadata(machine.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let again = machine.0.run(&["cluster", "up", "-vv"]);
    let shown = machine.0.run(&["cluster", "status"]);
    for told in [&again, &shown] {
        assert_eq!(told.code, Some(0), "{told}");
        assert!(!format!("{}{}", told.stdout, told.stderr).contains(password), "{told}");
    }
    assert_eq!(pids(&machine.status().1), pids(&parts), "a second `up` starts nothing twice");
    let stranger = World::new().with("MOOTHALL_DATABASE_URL", &address.replace(password, "wrong"));
    let refused = stranger.run(&["runs"]);
    assert!(refused.stderr.contains("password authentication failed"), "{refused}");

    machine.0.set("MOOTHALL_DATABASE_URL", &address);
    let ran = machine.consult(&engine);
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();

    // Each kind of part is killed, and restarts at its old address.
    let of = pids(&parts);
    let (workers, servers): (Vec<_>, Vec<_>) =
        of.iter().partition(|(name, _)| name.starts_with("worker-"));
    kill(*workers[0].1);
    servers.iter().for_each(|(_, pid)| kill(**pid));
    until("the parts are seen to be dead", || {
        states(&machine.status().1) == ["down", "down", "down", "up"]
    });
    let ill = machine.0.run(&["cluster", "status"]);
    assert_eq!(ill.code, Some(4), "{ill}");
    assert!(ill.stderr.contains("restart it with `moothall cluster up`"), "{ill}");
    assert_eq!(machine.up(&["--workers", "1"]), engine);
    let (code, parts) = machine.status();
    assert_eq!((code, states(&parts)), (Some(0), vec!["up"; 3]), "{parts:#?}");
    machine.consult(&engine);

    // After `down` and `up` the runs still exist.
    let down = machine.0.run(&["cluster", "down"]);
    assert_eq!((down.code, &*down.stdout), (Some(0), "stopped 3 parts\n"), "{down}");
    let (code, parts) = machine.status();
    assert_eq!((code, states(&parts)), (Some(4), vec!["down"; 3]));
    assert_eq!(machine.0.run(&["cluster", "up", "--nodes", "3"]).code, Some(2));
    assert_eq!(machine.up(&[]), engine);
    let shown = machine.0.run(&["show", &run, "--json"]);
    assert_eq!(shown.json()["state"], "finished", "{shown}");

    let down = machine.0.run(&["cluster", "down", "--purge"]);
    let words = "stopped 3 parts, deleted all data of the cluster\n";
    assert_eq!((down.code, &*down.stdout), (Some(0), words), "{down}");
    assert!(!machine.file("").exists());
}

#[test]
fn a_run_started_by_a_server_on_two_workers_is_followed_to_its_end() {
    let (machine, engine) = Machine::with_cluster(&["--nodes", "3"]);
    let server = Server::start(&machine.0, &["--runner", &engine]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let run = server.consult(json!({ "moves": 5 })).await;
        // The stream ends with the run, which another process executes.
        let text = server.get(&format!("/api/runs/{run}/events")).await.text().await.unwrap();
        let all = frames(&text);
        let numbers = numbered(&all);
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert_eq!(all.last().unwrap().name, "pipeline_complete");
        let view = server.json(&format!("/api/runs/{run}")).await;
        assert_eq!(view["status"]["state"], "complete", "{view:#}");
    });
}

/// Workers that are killed at the end of the test.
struct Workers(Vec<Child>);

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

/// All invocations of the run services according to Restate: run, whether it is finished, and the
/// endpoint.
pub(crate) async fn invocations(admin: &str) -> Vec<(String, bool, String)> {
    let query = "SELECT i.target_service_key AS key, i.status AS status, d.endpoint AS endpoint \
                 FROM sys_invocation i JOIN sys_deployment d ON d.id = i.pinned_deployment_id \
                 WHERE i.target_service_ty = 'workflow' AND i.target_handler_name = 'run'";
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let asked = client.post(format!("{admin}/query")).header("accept", "application/json");
    let asked = asked.header("content-type", "application/json");
    let answer = asked.body(json!({ "query": query }).to_string()).send().await.unwrap();
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let row = |row: &Value| {
        let run = text(row, "key").split('/').next().unwrap().to_owned();
        let endpoint = text(row, "endpoint").trim_end_matches('/').to_owned();
        (run, row["status"] == "completed", endpoint)
    };
    answer["rows"].as_array().unwrap_or_else(|| panic!("{answer:#}")).iter().map(row).collect()
}

#[test]
fn runs_finish_on_their_build_while_new_ones_use_the_new_build() {
    const OLD_RUNS: usize = 20;
    let (machine, engine) = Machine::with_cluster(&[]);
    let admin = machine.admin();
    let old = machine.status().1.last().unwrap()["address"].as_str().unwrap().to_owned();
    let server = Server::start(&machine.0, &["--runner", &engine]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // All runs pause between moves and debates, so all of them are live.
        let wanted = json!({ "rounds": 1, "pause_after_moves": true });
        let mut began = BTreeSet::new();
        for _ in 0..OLD_RUNS {
            began.insert(server.consult(wanted.clone()).await);
        }
        for run in &began {
            server.until_state(run, "paused").await;
        }

        // The same program under another build name.
        let more = ["--register", &admin, "--build", "next"];
        let mut workers = Workers(Vec::new());
        let mut worker = machine
            .0
            .command(&[&["worker", "--listen", "127.0.0.1:0"], &more[..]].concat())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut new = String::new();
        BufReader::new(worker.stdout.take().unwrap()).read_line(&mut new).unwrap();
        workers.0.push(worker);
        let new = new.trim_end().to_owned();
        // A build cannot register the address of another build, whose runs would have no worker.
        let listen = old.strip_prefix("http://").unwrap();
        let more = ["--listen", listen, "--register", &admin];
        let third = machine.0.run(&[&["worker", "--build", "third"], &more[..]].concat());
        assert_eq!(third.code, Some(4), "{third}");
        assert!(third.stderr.contains("another build of the worker is registered at"), "{third}");

        let late = server.consult(json!({ "rounds": 1 })).await;
        for run in &began {
            let resumed = server.post(&format!("/api/runs/{run}/resume"), &json!({})).await;
            assert!(resumed.status().is_success(), "{}", resumed.status());
        }
        for run in began.iter().chain([&late]) {
            assert_eq!(server.over(run).await["status"]["state"], "complete");
        }

        // Three per run: the run itself and its two debates.
        let all = invocations(&admin).await;
        let on = |run: &String| {
            let of_run = all.iter().filter(|(of, ..)| of == run);
            of_run.map(|(_, _, endpoint)| &**endpoint).collect::<Vec<_>>()
        };
        for run in &began {
            assert_eq!(on(run), [&*old; 3]);
        }
        assert_eq!(on(&late), [&*new; 3]);
        assert_eq!(all.len(), (OLD_RUNS + 1) * 3);
    });
}

/// A program, as written by a model, that can be found in the process list while it runs.
fn program(marker: &str, seconds: u32) -> String {
    let inner = format!("import time; time.sleep({seconds}); print('done')");
    let code = format!(
        "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', {inner:?}, '{marker}'])"
    );
    json!({"reasoning": "So.", "code": code, "dependencies": [], "confidence": 0.9}).to_string()
}

/// The number of processes with this word in their command line.
fn processes(marker: &str) -> usize {
    let named = |entry: &fs_err::DirEntry| {
        let line = fs_err::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())
    };
    fs_err::read_dir("/proc").unwrap().filter(|entry| entry.as_ref().is_ok_and(named)).count()
}

#[test]
fn a_program_moves_to_another_worker_and_a_cancelled_one_stops() {
    let world = real_sandbox::world()
        .with("MOOTHALL_LOG__LEVEL", "debug")
        .with("MOOTHALL_LOG__FORMAT", "json")
        .with("MOOTHALL_ISOLATION__ENGINE", "runc");
    let (short, long) = (uuid::Uuid::now_v7().to_string(), uuid::Uuid::now_v7().to_string());
    let fake = Fake::start();
    let calls = Arc::new(AtomicUsize::new(0));
    let answers = [program(&short, 10), program(&long, 600)];
    let count = Arc::clone(&calls);
    fake.respond_with(move |_| {
        let next = count.fetch_add(1, Ordering::SeqCst);
        answers
            .get(next)
            .map_or_else(|| ProviderFault::Unauthorized.into(), ProviderBehaviour::text)
    });
    fake.configure(&world, "");
    let (machine, engine) = Machine::of(world).and_cluster(&["--config", "fake.toml"]);
    let run = |task: &str, more: &[&str]| {
        let usual = ["run", "--config", "fake.toml", "--model", "openai/gpt-4.1-mini"];
        let on = ["--runner", &engine, task];
        let mut command = machine.0.command(&[&usual[..], &on, more].concat());
        command.stderr(Stdio::null()).spawn().unwrap()
    };

    // The worker that runs the program is killed; the model call is not repeated.
    let expect = ["--timeout", "60", "--expect", "regex:^done$", "--json"];
    let first = run("print done", &expect);
    until("the program runs", || processes(&short) > 0);
    let runs_it = |name: &String| {
        let log = fs_err::read_to_string(machine.file(&format!("{name}.log"))).unwrap();
        started(&log).iter().any(|effect| effect.ends_with("/execute"))
    };
    let workers = pids(&machine.status().1);
    let mut workers = workers.iter().filter(|(name, _)| name.starts_with("worker-"));
    let (_, pid) = workers.find(|(name, _)| runs_it(name)).unwrap();
    kill(*pid);
    let first = machine.0.ran(&["run"], first.wait_with_output().unwrap());
    assert_eq!(first.code, Some(0), "{first}");
    assert_eq!(first.json()["verdict"], "pass", "{first}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);

    // Cancelling a run ends its program on any worker.
    let second = run("sleep", &["--timeout", "900"]);
    until("the program runs", || processes(&long) > 0);
    let id = machine.0.run(&["runs", "--json", "--limit", "1"]).json()["runs"][0]["run_id"].clone();
    let cancelled = machine.0.run(&["cancel", id.as_str().unwrap()]);
    assert_eq!(cancelled.code, Some(0), "{cancelled}");
    until("the program is gone", || processes(&long) == 0);
    let second = machine.0.ran(&["run"], second.wait_with_output().unwrap());
    assert_eq!(second.code, Some(130), "{second}");
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    // A program started in the browser is executed in the same way.
    let server = Server::start(&machine.0, &["--runner", &engine]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let primes = json!({
            "workflow": "reflexion", "task": "print the first 5 primes", "expect_regex": "11$",
        });
        let run = server.begin(&primes).await;
        let text = server.get(&format!("/api/runs/{run}/events")).await.text().await.unwrap();
        assert_eq!(frames(&text).last().unwrap().name, "run_finished");
        let view = server.json(&format!("/api/runs/{run}")).await;
        let ends = (&view["status"]["state"], &view["status"]["verdict"]);
        assert_eq!(ends, (&json!("complete"), &json!("pass")), "{view:#}");
    });
}
