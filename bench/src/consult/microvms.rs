//! Measures the cost of running debates in microVMs: the same run with guests from a filled pool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use moothall_core::EffectResult;
use moothall_core::sandbox::IsolationClass;
use moothall_engine::{DebateSandboxes, GuestFailurePolicy, GuestPool, IsolationMode};
use moothall_sandbox::jail::JailCommand;
use moothall_sandbox::{
    EngineName, HostOptions, MemoryBudget, PoolOptions, SandboxHost, SandboxPolicy, SharedKernel,
};

use super::{LATENCY, Script, measured};
use crate::{sandbox, say};

/// One sandbox per move.
const POOL_SIZE: usize = 15;

/// Memory for all sandboxes together; a pool for fifteen debates takes less than 4 GiB.
const MEMORY_BYTES: u64 = 6 << 30;

/// Time limit for filling the pool.
const POOL_FILL_TIMEOUT: Duration = Duration::from_secs(120);

/// How much longer a run takes with debates in microVMs than with class `none`.
pub(crate) async fn overhead(script: &Script, here: Duration) -> Result<Duration> {
    let target = sandbox::target()?;
    let state = tempfile::tempdir()?;
    let guest =
        fs_err::read(target.join("guest/moothall-guest")).context("run `cargo xtask guest`")?;
    let host = SandboxHost::open(HostOptions {
        images: sandbox::images()?,
        cache: target.join("tmp/sandboxes"),
        state: state.path().to_owned(),
        guest: Box::leak(guest.into_boxed_slice()),
        jail: JailCommand {
            program: std::env::current_exe()?,
            args: vec![sandbox::JAIL.to_owned()],
        },
    })?;
    let policy = SandboxPolicy {
        engine: Some(EngineName::Microvm),
        minimum: IsolationClass::EmulatedVm,
        shared_kernel: SharedKernel::Refused,
    };
    let options = PoolOptions { idle: POOL_SIZE, memory: MemoryBudget::new(MEMORY_BYTES) };
    let sandboxes = DebateSandboxes::open(&host, &policy, options).await?;
    sandboxes.prewarm();
    let start = Instant::now();
    while sandboxes.idle_count() < POOL_SIZE {
        ensure!(start.elapsed() < POOL_FILL_TIMEOUT, "the pool does not fill");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let filled = start.elapsed();
    let guest_pool = Arc::new(GuestPool::new(sandboxes.clone()));
    let isolation = IsolationMode::Guests { guest_pool, on_failure: GuestFailurePolicy::Fail };
    let run = measured(script, LATENCY, isolation).await?;
    sandboxes.shut_down().await;
    let classes = run.record.journal.values().filter_map(|entry| match &entry.result {
        EffectResult::ChildEnded(end) => Some(end.isolation.class),
        _ => None,
    });
    let class = classes.min().context("no debate")?;
    ensure!(class >= IsolationClass::EmulatedVm, "a debate was in class {class}");
    let more = run.wall.saturating_sub(here);
    say(&format!(
        "rooms: {POOL_SIZE} microVMs ({class}) were ready after {} ms; with them the run took {} ms, {} ms more",
        filled.as_millis(),
        run.wall.as_millis(),
        more.as_millis()
    ));
    Ok(more)
}
