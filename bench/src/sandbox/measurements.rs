//! The measurements of the sandbox benchmark.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use moothall_sandbox::{MemoryBudget, PoolOptions, SandboxEngine, SandboxRunner};
use serde_json::json;
use tokio::task::{JoinSet, spawn_blocking};

use super::bare_container::BareContainer;
use super::bare_machine::{BareMachine, Taken};
use super::setup::{PRINTED, PROGRAM, World, check, labels, request, sandboxes, spec};
use super::times::{Pairs, Times};
use crate::servers::{Server, committed_ms};

/// Memory limit for all sandboxes together when many are requested concurrently.
const BUDGET: u64 = 2 << 30;

/// Number of idle sandboxes in a pool.
const POOL_IDLE: usize = 2;

/// How long a sandbox is idle before its result is measured: a new one still loads its interpreter
/// and other sandboxes still start.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// The number of samples of each measurement.
pub(crate) struct Plan {
    pub(crate) runc: u32,
    pub(crate) runsc: u32,
    pub(crate) boots: u32,
    pub(crate) clones: u32,
    pub(crate) microvm_hand_overs: u32,
    pub(crate) runsc_hand_overs: u32,
    /// How many of the leased sandboxes run a program.
    pub(crate) pooled_results: u32,
    pub(crate) second_process: u32,
    pub(crate) servers: u32,
    /// Programs of each server after the first one.
    pub(crate) server_programs: u32,
    pub(crate) microvm_at_once: u32,
    pub(crate) runsc_at_once: u32,
    pub(crate) runc_at_once: u32,
}

impl Plan {
    pub(crate) const FULL: Self = Self {
        runc: 100,
        runsc: 40,
        boots: 15,
        clones: 50,
        microvm_hand_overs: 200,
        runsc_hand_overs: 100,
        pooled_results: 40,
        second_process: 20,
        servers: 5,
        server_programs: 10,
        microvm_at_once: 100,
        runsc_at_once: 100,
        runc_at_once: 100,
    };
    pub(crate) const SMOKE: Self = Self {
        runc: 1,
        runsc: 1,
        boots: 1,
        clones: 1,
        microvm_hand_overs: 2,
        runsc_hand_overs: 2,
        pooled_results: 1,
        second_process: 1,
        servers: 1,
        server_programs: 1,
        microvm_at_once: 2,
        runsc_at_once: 2,
        runc_at_once: 4,
    };
}

/// Measures new containers, bare and ours.
pub(crate) async fn containers(
    world: &World,
    engine: &Arc<dyn SandboxEngine>,
    times: u32,
) -> Result<Pairs> {
    let mut bare = BareContainer::like(engine, world).await?;
    let sandboxes = sandboxes(Arc::clone(engine), without_pool());
    let mut pairs = Pairs::default();
    for turn in 0..=times {
        let (without, with);
        (bare, without) = spawn_blocking(move || bare.run().map(|taken| (bare, taken))).await??;
        with = execute(&sandboxes).await?.result;
        // The first pair fills caches and is not counted.
        if turn > 0 {
            pairs.add(without, with);
        }
    }
    Ok(pairs)
}

#[derive(Default)]
pub(crate) struct Machines {
    pub(crate) boot_answer: Pairs,
    pub(crate) boot_result: Pairs,
    pub(crate) clone_answer: Pairs,
    pub(crate) clone_result: Pairs,
}

/// Measures new microVMs, booted and cloned, bare and ours.
pub(crate) async fn machines(world: &World, plan: &Plan) -> Result<Machines> {
    let bare = Arc::new(BareMachine::like(world).await?);
    let booted = sandboxes(world.booted(), without_pool());
    let cloned = sandboxes(world.cloned(), without_pool());
    let mut machines = Machines::default();
    let clones_each = plan.clones.div_ceil(plan.boots);
    for _ in 0..plan.boots {
        let without = spawn_blocking({
            let bare = Arc::clone(&bare);
            move || bare.boot()
        });
        let (without, with) = (without.await??, execute(&booted).await?);
        machines.boot_answer.add(without.answer, with.answer);
        machines.boot_result.add(without.result, with.result);
        for _ in 0..clones_each {
            let without = spawn_blocking({
                let bare = Arc::clone(&bare);
                move || bare.clone_template()
            });
            let (without, with) = (without.await??, execute(&cloned).await?);
            machines.clone_answer.add(without.answer, with.answer);
            machines.clone_result.add(without.result, with.result);
        }
    }
    Ok(machines)
}

#[derive(Default)]
pub(crate) struct Pooled {
    pub(crate) hand_over: Times,
    pub(crate) result: Times,
}

/// Measures leases of idle sandboxes from a pool.
pub(crate) async fn pooled(
    world: &World,
    engine: Arc<dyn SandboxEngine>,
    hand_overs: u32,
    results: u32,
) -> Result<Pooled> {
    let sandboxes =
        sandboxes(engine, PoolOptions { idle: POOL_IDLE, memory: MemoryBudget::new(BUDGET) });
    let (spec, labels, request, inputs) = (spec(), labels(), request()?, BTreeMap::new());
    sandboxes.prewarm(&spec);
    let mut pooled = Pooled::default();
    for turn in 0..hand_overs {
        let patience = Instant::now() + Duration::from_secs(60);
        while sandboxes.idle_count(&spec) == 0 {
            if Instant::now() > patience {
                bail!("the pool is not filled");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if turn < results {
            tokio::time::sleep(SETTLE_TIME).await;
        }
        let started = Instant::now();
        let lease = sandboxes.lease(&spec, &labels).await?;
        pooled.hand_over.add(started.elapsed());
        if turn < results {
            let executed = lease.execute(&request, &inputs, None).await?;
            pooled.result.add(started.elapsed());
            check(&executed.execution)?;
            executed.clean_up.await?;
        }
    }
    sandboxes.shut_down().await;
    world.settle().await?;
    Ok(pooled)
}

/// Measures many executions that are requested concurrently.
pub(crate) async fn at_once(
    world: &World,
    engine: Arc<dyn SandboxEngine>,
    count: u32,
) -> Result<Duration> {
    let sandboxes =
        sandboxes(engine, PoolOptions { idle: POOL_IDLE, memory: MemoryBudget::new(BUDGET) });
    let started = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..count {
        let (sandboxes, request) = (sandboxes.clone(), request()?);
        all.spawn(async move {
            let executed = sandboxes.execute(&labels(), &request, &BTreeMap::new(), None).await?;
            check(&executed.execution)
        });
    }
    while let Some(done) = all.join_next().await {
        done??;
    }
    let took = started.elapsed();
    sandboxes.shut_down().await;
    world.settle().await?;
    Ok(took)
}

/// Measures a whole command that uses a template created by another process.
pub(crate) async fn second_process(world: &World, moothall: &Path, times: u32) -> Result<Times> {
    let data = world.folder.path().join("data");
    fs_err::create_dir_all(&data)?;
    fs_err::os::unix::fs::symlink(&world.images, data.join("images"))?;
    fs_err::os::unix::fs::symlink(&world.cache, data.join("cache"))?;
    let program = world.folder.path().join("hello.py");
    fs_err::write(&program, PROGRAM)?;
    let mut measured = Times::default();
    for turn in 0..=times {
        let started = Instant::now();
        let output = tokio::process::Command::new(moothall)
            .arg("exec")
            .arg(&program)
            .args(["--isolation", "microvm"])
            .env("MOOTHALL_DATA_DIR", &data)
            .current_dir(world.folder.path())
            .stdin(Stdio::null())
            .output()
            .await
            .with_context(|| format!("cannot run `{}`", moothall.display()))?;
        let elapsed = started.elapsed();
        if !output.status.success() || output.stdout != PRINTED.as_bytes() {
            bail!("moothall exec: {output:?}");
        }
        // The first command probes the engine and stores the result for the others, so it is not
        // counted.
        if turn > 0 {
            measured.add(elapsed);
        }
    }
    Ok(measured)
}

/// Execution times of programs in `moothall serve`, from the generated program to its result.
#[derive(Default)]
pub(crate) struct ServerTimes {
    /// The first program of a server, which starts its sandbox.
    pub(crate) cold: Times,
    /// Later programs, for which a sandbox is ready.
    pub(crate) warm: Times,
}

/// Measures programs in sandboxes of servers.
pub(crate) async fn through_server(
    world: &World,
    moothall: &Path,
    engine: &str,
    servers: u32,
    programs: u32,
) -> Result<ServerTimes> {
    let folder = world.folder.path();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let data = folder.join("data");
    let environment = [
        ("MOOTHALL_DATA_DIR", data.as_path()),
        ("MOOTHALL_ISOLATION__ENGINE", Path::new(engine)),
        ("PATH", Path::new(&path)),
    ];
    let mut times = ServerTimes::default();
    for _ in 0..servers {
        let server = Server::start(moothall, folder, "0", &environment)?;
        for turn in 0..=programs {
            let request = json!({"workflow": "reflexion", "task": "print the first 5 primes"});
            let events = server.ended(&server.begin(request).await?).await?;
            let at = |kind: &str| {
                let event = events.iter().find(|event| event["type"] == kind);
                let at = event.and_then(|event| event["at"].as_str());
                committed_ms(at.with_context(|| format!("no `{kind}` event"))?)
            };
            let took = at("executed")?.saturating_sub(at("code_generated")?);
            let times = if turn == 0 { &mut times.cold } else { &mut times.warm };
            times.add(Duration::from_millis(took));
            tokio::time::sleep(SETTLE_TIME).await;
        }
    }
    Ok(times)
}

/// Runs one execution and waits for its cleanup, so it does not disturb the next one.
async fn execute(sandboxes: &SandboxRunner) -> Result<Taken> {
    let (request, inputs) = (request()?, BTreeMap::new());
    let started = Instant::now();
    let lease = sandboxes.lease(&spec(), &labels()).await?;
    let answer = started.elapsed();
    let executed = lease.execute(&request, &inputs, None).await?;
    let result = started.elapsed();
    check(&executed.execution)?;
    executed.clean_up.await?;
    Ok(Taken { answer, result })
}

fn without_pool() -> PoolOptions {
    PoolOptions { idle: 0, memory: MemoryBudget::new(BUDGET) }
}
