//! The process that gets killed.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use moothall_core::sandbox::{ExecuteRequest, SandboxLabels};
use moothall_sandbox::{
    EngineName, HostOptions, MemoryBudget, PoolOptions, ProbeReport, ProbedEngine, SandboxHost,
    SandboxRunner,
};

use super::{Dice, FOLDER, SEED};
use crate::support;

pub(crate) const NAME: &str = "real_leak::victim::victim";

const ENGINES: [EngineName; 3] = [EngineName::Microvm, EngineName::Runsc, EngineName::Runc];

/// Number of concurrent executions.
const AT_ONCE: u64 = 3;

/// Programs that end by themselves and do things that could leave something on the host.
const PROGRAMS: [&str; 5] = [
    "print(1)",
    "import time; time.sleep(0.2)",
    "open('/tmp/large', 'wb').write(b'x' * (8 << 20))",
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)",
    "import tempfile; print(tempfile.mkdtemp(), 'x' * 100_000)",
];

pub(crate) fn cache(folder: &Path) -> PathBuf {
    folder.join("cache")
}

pub(crate) fn state(folder: &Path) -> PathBuf {
    folder.join("state")
}

/// Runs programs until its standard input ends, then exits normally.
#[test]
#[ignore = "started by another test"]
fn victim() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.store(true, Ordering::Relaxed);
        }
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(live(&folder, seed, stop));
}

pub(crate) fn host(folder: &Path) -> SandboxHost {
    let options = HostOptions {
        images: support::images(),
        cache: cache(folder),
        state: state(folder),
        guest: support::guest(),
        jail: support::jail(),
    };
    SandboxHost::open(options).unwrap()
}

async fn live(folder: &Path, seed: u64, stop: Arc<AtomicBool>) {
    let host = host(folder);
    let mut all = Vec::new();
    for name in ENGINES {
        all.push(sandboxes(&host, name).await);
    }
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..AT_ONCE {
        let (all, stop) = (all.clone(), Arc::clone(&stop));
        workers.spawn(async move {
            let mut dice = Dice(seed.wrapping_add(worker));
            let mut choose = |count: usize| usize::try_from(dice.below(count as u64)).unwrap();
            while !stop.load(Ordering::Relaxed) {
                let sandboxes = &all[choose(all.len())];
                execute(sandboxes, PROGRAMS[choose(PROGRAMS.len())]).await;
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
    for sandboxes in all {
        sandboxes.shut_down().await;
    }
}

async fn sandboxes(host: &SandboxHost, name: EngineName) -> SandboxRunner {
    let engine = host.engine(name).await.unwrap();
    let report = ProbeReport {
        engine: name,
        version: engine.version().to_owned(),
        class: engine.class(),
        self_tests: Vec::new(),
        held_by: engine.enforced_limits(),
        start_ms: 0,
        run_ms: 0,
    };
    let options = PoolOptions { idle: 1, memory: MemoryBudget::new(2 << 30) };
    SandboxRunner::new(ProbedEngine { engine, report }, options)
}

async fn execute(sandboxes: &SandboxRunner, program: &str) {
    let request = ExecuteRequest::python("python", "main.py".parse().unwrap(), program);
    let labels = SandboxLabels(BTreeMap::from([("run".to_owned(), "leak".to_owned())]));
    let name = sandboxes.engine().name();
    match sandboxes.execute(&labels, &request, &BTreeMap::new(), None).await {
        Ok(executed) if executed.execution.exit.is_zero() => println!("\ndone {name}"),
        Ok(executed) => {
            let execution = executed.execution;
            println!("\nfailed on {name}: {} {}", execution.exit, execution.stderr.text);
        }
        Err(error) => println!("\nfailed on {name}: {error:?}"),
    }
}
