//! A rolling deployment of two builds that differ: a prompt of debates and the stored form of a
//! request. The second build is this program with two texts replaced by others of equal length,
//! which costs no second compilation and changes its name, the hash of its bytes.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use moothall_core::{RunEventBody, RunId, StoredSpec};
use moothall_store::{RunState, Store};

use crate::chaos::Left;
use crate::real_cluster::invocations;
use crate::real_restate::cluster::{CONSULT, Cluster, PATIENCE, Plan, SMALL, of_one_machine, runs};
use crate::world::World;

const SIZE: [&str; 5] = ["--moves", "3", "--rounds", "4", "--yes"];

/// A text of a prompt and a key of a stored request, with their replacements.
const CHANGES: [(&str, &str); 2] = [
    ("You argue against the move in a debate", "You speak against the move in a debate"),
    ("parallel_moves", "parallel_waves"),
];

/// Writes the second build.
fn next_build(folder: &Path) -> PathBuf {
    let mut program = fs_err::read(env!("CARGO_BIN_EXE_moothall")).unwrap();
    for (before, after) in CHANGES {
        assert_eq!(before.len(), after.len());
        let windows = program.windows(before.len()).enumerate();
        let starts: Vec<usize> =
            windows.filter(|(_, part)| *part == before.as_bytes()).map(|(at, _)| at).collect();
        assert!(!starts.is_empty(), "`{before}` is not in the program");
        for start in starts {
            program[start..start + after.len()].copy_from_slice(after.as_bytes());
        }
    }
    let path = folder.join("moothall-next");
    fs_err::write(&path, program).unwrap();
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A command of another build, in the environment of the world.
fn command_of(program: &Path, world: &World, arguments: &[&str]) -> Command {
    let usual = world.command(arguments);
    let mut command = Command::new(program);
    command.args(usual.get_args()).current_dir(usual.get_current_dir().unwrap()).env_clear();
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A worker that is killed at the end of the test, and its address.
struct Worker(Child, String);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Worker {
    fn start(program: &Path, cluster: &Cluster, listen: &str) -> Self {
        let admin = cluster.admin();
        // Slow enough that debates last until the next build is there.
        let arguments = ["worker", "--listen", listen, "--register", &admin, "--pace", "0.4"];
        let mut command = command_of(program, &cluster.world, &arguments);
        let mut worker = command.stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(worker.stdout.take().unwrap()).read_line(&mut address).unwrap();
        assert!(address.starts_with("http://"), "the worker did not start");
        Self(worker, address.trim_end().to_owned())
    }
}

/// Waits until a debate of the run has reached its second round.
async fn until_debating(store: &dyn Store, run: &RunId) {
    let began = Instant::now();
    loop {
        let events = store.events(run, 0, 10_000).await.unwrap();
        let is_debating = events
            .iter()
            .any(|stored| matches!(stored.event.body, RunEventBody::SandboxRound { round: 2, .. }));
        if is_debating {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "no debate has started");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_finished(store: &dyn Store, run: &RunId) {
    let began = Instant::now();
    while store.run(run).await.unwrap().unwrap().state != RunState::Finished {
        assert!(began.elapsed() < PATIENCE, "{run} does not finish");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn debates_in_progress_finish_on_their_build_when_prompts_and_stored_forms_change() {
    // `.ci/long` starts 12 runs before the deployment and 8 after it.
    let old_count: usize = std::env::var("MOOTHALL_TEST_ROLLING").map_or(3, |n| n.parse().unwrap());
    let late_count = if old_count > 3 { old_count * 2 / 3 } else { 1 };
    let cluster = Cluster::new(Plan { workers: 0, ..SMALL });
    let old_program = PathBuf::from(env!("CARGO_BIN_EXE_moothall"));
    let next_program = next_build(cluster.world.root());
    let mut old = Worker::start(&old_program, &cluster, "127.0.0.1:0");
    let following: Vec<_> = (0..old_count).map(|_| cluster.consult(&SIZE)).collect();
    let store = cluster.store().await.unwrap();
    let began = Instant::now();
    while runs(&*store).await.len() < old_count {
        assert!(began.elapsed() < PATIENCE, "the runs do not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let old_runs: Vec<RunId> = runs(&*store).await.into_iter().map(|row| row.run_id).collect();
    for run in &old_runs {
        until_debating(&*store, run).await;
    }

    // The next build arrives while they debate, and a worker of the old one dies.
    let in_progress =
        runs(&*store).await.iter().filter(|row| row.state == RunState::Running).count();
    assert!(in_progress * 6 >= old_count * 5, "only {in_progress} of {old_count} still debate");
    let next = Worker::start(&next_program, &cluster, "127.0.0.1:0");
    assert_ne!(old.1, next.1);
    let address = old.1.clone();
    drop(old);
    old = Worker::start(&old_program, &cluster, address.strip_prefix("http://").unwrap());
    let engine = cluster.engine();
    let arguments = [&CONSULT[..], &SIZE, &["--runner", &engine]].concat();
    for _ in 0..late_count {
        let late = command_of(&next_program, &cluster.world, &arguments).output().unwrap();
        assert!(late.status.success(), "{}", String::from_utf8_lossy(&late.stderr));
    }
    for run in &old_runs {
        until_finished(&*store, run).await;
    }
    for process in following {
        process.wait();
    }

    // The old runs end as if nothing had been deployed.
    let (_, whole) = of_one_machine(&SIZE).await;
    for run in &old_runs {
        let left = Left::of(moothall_engine::RunRecord::read(&*store, run).await.unwrap());
        assert_eq!(left.receipt, whole.receipt);
        assert_eq!(left.events, whole.events);
    }
    // Only the next build can read its run, and derives the same result from it.
    let late = runs(&*store).await.into_iter().find(|row| !old_runs.contains(&row.run_id)).unwrap();
    assert_eq!(late.state, RunState::Finished);
    assert!(matches!(late.spec, StoredSpec::Unreadable(_)), "the stored form did not change");
    let replay = ["replay", late.run_id.as_str()];
    assert_eq!(cluster.world.run(&replay).code, Some(4));
    let replayed = command_of(&next_program, &cluster.world, &replay).output().unwrap();
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
    let changed = store.journal(&late.run_id).await.unwrap();
    let before = store.journal(&old_runs[0]).await.unwrap();
    let differs = |id| {
        changed.get(id).map(|entry| entry.request_sha256)
            != before.get(id).map(|entry| entry.request_sha256)
    };
    assert!(before.keys().any(differs), "the prompts did not change");

    // Each run and its three debates were driven by one build.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let all = invocations(&cluster.admin()).await;
    let on = |run: &RunId| -> BTreeSet<&str> {
        let of_run = all.iter().filter(|(of, ..)| of == run.as_str());
        of_run.map(|(_, _, endpoint)| endpoint.as_str()).collect()
    };
    for run in &old_runs {
        assert_eq!(on(run), BTreeSet::from([old.1.as_str()]));
    }
    let late_runs = runs(&*store).await.into_iter().filter(|row| !old_runs.contains(&row.run_id));
    for late in late_runs {
        assert_eq!(late.state, RunState::Finished);
        assert_eq!(on(&late.run_id), BTreeSet::from([next.1.as_str()]));
    }
    assert_eq!(all.len(), (old_count + late_count) * 4);
}
