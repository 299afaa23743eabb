//! The suite on the real engines. It needs root for the containers, the runtimes, QEMU, the agent's
//! static binary and the image `python`; anything missing is a failure.
//!
//! A test is an engine and a group of cases, not a single case: every test is a process that first
//! loads the template of its microVMs, which takes longer than most cases. All failures of a group
//! are reported together.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_core::sandbox::{ExecuteRequest, GuestPath, SandboxLabels, SandboxLimits};
use moothall_sandbox::{
    EngineName, HostOptions, LeaseOutcome, MemoryBudget, OutputListener, PoolOptions, ProbeReport,
    ProbedEngine, SandboxHost, SandboxRegistry, SandboxRunner, SandboxSpec,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::case::{Case, Seen, case};
use super::witness::{Witness, children_that_stay, remains};
use crate::support;

/// Number of concurrent cases. With more, slow cases would randomly exceed their time limits.
const AT_ONCE: usize = 3;

/// Extra time beyond the limit for collecting files and detecting the end.
const SLACK: Duration = Duration::from_secs(12);

macro_rules! suite {
    ($($module:ident $engine:ident),*) => {
        $(suite!(@ $module $engine [
            processes_and_signals_are_held processes,
            memory_and_time_are_held memory,
            output_and_input_are_held output,
            disk_is_held disk,
            only_files_are_brought_back bring_back,
            the_kernel_is_closed kernel,
            there_is_no_network network,
            the_host_is_not_seen sight,
            ends_are_told_apart endings
        ]);)*
    };
    (@ $module:ident $engine:ident [$($test:ident $group:ident),*]) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let engine = moothall_sandbox::EngineName::$engine;
                    super::run(engine, crate::abuse::$group::CASES).await;
                }
            )*

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn neighbours_do_not_meet() {
                super::neighbours(moothall_sandbox::EngineName::$engine).await;
            }
        }
    };
}

suite!(microvm Microvm, runsc Runsc, runc Runc);

struct World {
    engine: EngineName,
    sandboxes: SandboxRunner,
    state: tempfile::TempDir,
    witness: Witness,
    aims: String,
}

async fn run(engine: EngineName, cases: &'static [Case]) {
    let world = Arc::new(World::open(engine).await);
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut running: JoinSet<Vec<String>> = JoinSet::new();
    for case in cases {
        let (world, slots) = (Arc::clone(&world), Arc::clone(&slots));
        running.spawn(async move {
            let _slot = slots.acquire_owned().await.unwrap();
            let began = Instant::now();
            let mut problems = world.try_case(case).await;
            // Whatever happened, the next execution must work.
            if let Err(problem) = world.canary().await {
                problems.push(format!("the next execution: {problem}"));
            }
            println!("{:>5} ms  {}", began.elapsed().as_millis(), case.name);
            problems.into_iter().map(|problem| format!("{}: {problem}", case.name)).collect()
        });
    }
    let mut problems: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    problems.extend(world.problems_of_the_host().await);
    assert!(problems.is_empty(), "on {engine}:\n{}", problems.join("\n"));
}

/// Runs two sandboxes at the same time and checks that neither can see the other.
async fn neighbours(engine: EngineName) {
    const PROGRAM: Case =
        case("neighbour", include_str!("cases/neighbour.py"), "nothing of the other is found");

    let world = World::open(engine).await;
    let limits = SandboxLimits { cpu_permille: 1000, ..SandboxLimits::default() };
    let request = |part: &str| {
        let mut request = request(PROGRAM.program, limits);
        request.argv.push(part.to_owned());
        request
    };
    let (waits, looks, none) = (request("waits"), request("looks"), BTreeMap::new());
    let (ready, told) = tokio::sync::oneshot::channel();
    let mut listener = Ready(Some(ready));
    let first = world.execute(&waits, &none, Some(&mut listener));
    let second = async {
        told.await.map_err(|_| "the first is not ready".to_owned())?;
        world.execute(&looks, &none, None).await
    };
    let (first, second) = tokio::join!(first, second);
    for (executed, tried) in [(first, 0), (second, 5)] {
        let (executed, left) = executed.unwrap();
        let LeaseOutcome { execution, files, .. } = executed;
        let seen = Seen { engine, execution: &execution, files: &files };
        assert_eq!(PROGRAM.problems(&seen), Vec::<String>::new(), "{}", seen.output_tail());
        seen.tried(tried).unwrap();
        assert_eq!(left, Vec::<String>::new());
    }
}

/// Signals the first output of a program.
struct Ready(Option<tokio::sync::oneshot::Sender<()>>);

impl OutputListener for Ready {
    fn stdout(&mut self, _: &[u8]) {
        if let Some(ready) = self.0.take() {
            let _ = ready.send(());
        }
    }

    fn stderr(&mut self, _: &[u8]) {}
}

impl World {
    async fn open(engine: EngineName) -> Self {
        // A short path, because socket paths are limited.
        let state = tempfile::Builder::new().prefix("mh").tempdir().unwrap();
        let (images, cache) = (support::images(), support::cache());
        let host = SandboxHost::open(HostOptions {
            images: images.clone(),
            cache: cache.clone(),
            state: state.path().to_owned(),
            guest: support::guest(),
            jail: support::jail(),
        })
        .unwrap();
        let found = host
            .engine(engine)
            .await
            .unwrap_or_else(|error| panic!("{engine} cannot be used here: {error}"));
        // No probe result is used: the suite checks the isolation itself.
        let report = ProbeReport {
            engine,
            version: found.version().to_owned(),
            class: found.class(),
            self_tests: Vec::new(),
            held_by: found.enforced_limits(),
            start_ms: 0,
            run_ms: 0,
        };
        let chosen = ProbedEngine { engine: found, report };
        let options = PoolOptions { idle: 0, memory: MemoryBudget::new(4 << 30) };
        let witness = Witness::new();
        let aims = witness.aims(&[&images, &cache, state.path()]);
        Self { engine, sandboxes: SandboxRunner::new(chosen, options), state, witness, aims }
    }

    async fn try_case(&self, case: &Case) -> Vec<String> {
        // A whole CPU: half of an emulated one would double the duration of the suite without
        // testing more.
        let mut limits =
            SandboxLimits { wall_ms: 25_000, cpu_permille: 1000, ..SandboxLimits::default() };
        (case.limits)(&mut limits);
        let mut argv = vec!["python3".to_owned(), "case.py".to_owned(), self.aims.clone()];
        argv.extend(case.args.iter().map(|&word| word.to_owned()));
        let request = ExecuteRequest {
            argv,
            stdin: "x".repeat(case.stdin_bytes),
            ..request(case.program, limits)
        };
        let inputs = BTreeMap::from([(path("given.txt"), b"given".to_vec())]);
        let wall = Duration::from_millis(limits.wall_ms);
        match tokio::time::timeout(wall + SLACK, self.execute(&request, &inputs, None)).await {
            Err(_) => vec!["it was still running long after its time".to_owned()],
            Ok(Err(problem)) => vec![problem],
            Ok(Ok((executed, left))) => {
                let LeaseOutcome { execution, files, .. } = executed;
                let seen = Seen { engine: self.engine, execution: &execution, files: &files };
                println!("{}: {}", case.name, execution.exit);
                let mut problems = case.problems(&seen);
                if !problems.is_empty() {
                    problems.push(seen.output_tail());
                }
                let told = [execution.stdout.text.as_bytes(), execution.stderr.text.as_bytes()]
                    .into_iter()
                    .chain(files.values().map(Vec::as_slice))
                    .any(|bytes| self.witness.is_told_in(bytes));
                if told {
                    problems.push("what came back holds a secret of the host".to_owned());
                }
                problems.extend(left);
                problems
            }
        }
    }

    /// Runs a program, waits for its sandbox to end, and returns what is left of it.
    async fn execute(
        &self,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        listener: Option<&mut dyn OutputListener>,
    ) -> Result<(LeaseOutcome, Vec<String>), String> {
        let spec = SandboxSpec { image: request.image.clone(), limits: request.limits };
        let lease = self
            .sandboxes
            .lease(&spec, &labels())
            .await
            .map_err(|error| format!("no sandbox: {error}"))?;
        let records = SandboxHost::records(self.state.path());
        let record = SandboxRegistry::list(&records)
            .map_err(|error| error.to_string())?
            .into_iter()
            .find(|record| record.name == lease.name())
            .ok_or("it is not on record")?;
        let mut executed = lease
            .execute(request, inputs, listener)
            .await
            .map_err(|error| format!("it did not run: {error}"))?;
        (&mut executed.clean_up).await.map_err(|error| error.to_string())?;
        let left = remains(&record, &records);
        Ok((executed, left))
    }

    async fn canary(&self) -> Result<(), String> {
        let request = request(include_str!("cases/canary.py"), SandboxLimits::default());
        let (executed, left) = self.execute(&request, &BTreeMap::new(), None).await?;
        let execution = executed.execution;
        match execution.exit.is_zero() && execution.stdout.text == "499500\n" && left.is_empty() {
            true => Ok(()),
            false => Err(format!("{} {:?} {left:?}", execution.exit, execution.stderr.text)),
        }
    }

    async fn problems_of_the_host(&self) -> Vec<String> {
        let mut problems = self.witness.problems();
        self.sandboxes.shut_down().await;
        let children = children_that_stay().await;
        if !children.is_empty() {
            problems.push(format!("processes that stay: {children:?}"));
        }
        let records = SandboxRegistry::list(&SandboxHost::records(self.state.path())).unwrap();
        problems.extend(records.iter().map(|record| format!("still on record: {}", record.name)));
        let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
        if mounts.contains(&self.state.path().display().to_string()) {
            problems.push("a mount below the folder of sandboxes stays".to_owned());
        }
        problems.extend(
            entries(&self.state.path().join("oci"))
                .into_iter()
                .filter(|name| name != "bare")
                .map(|name| format!("still in the folder of containers: {name}")),
        );
        problems
    }
}

fn request(program: &str, limits: SandboxLimits) -> ExecuteRequest {
    let attempt = include_str!("cases/attempt.py");
    let mut request = ExecuteRequest::python("python", path("case.py"), program);
    request.sources.insert(path("attempt.py"), attempt.to_owned());
    ExecuteRequest { limits, collect: true, ..request }
}

fn labels() -> SandboxLabels {
    SandboxLabels(BTreeMap::from([("run".to_owned(), "abuse".to_owned())]))
}

fn path(text: &str) -> GuestPath {
    text.parse().unwrap()
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
