use std::sync::Arc;
use std::sync::atomic::Ordering;

use moothall_core::sandbox::{IsolationClass, SandboxLabels};

use super::*;
use crate::fake_engine::{FakeEngine, idle, spec, until};
use crate::{EngineName, MemoryBudget, ProbeReport, SandboxEngine};

/// The runner of an image with this version.
fn runner(
    cache: &RunnerCache,
    engine: &Arc<FakeEngine>,
    image: &str,
    version: &str,
) -> SandboxRunner {
    let report = ProbeReport {
        engine: EngineName::Microvm,
        version: "1".to_owned(),
        class: IsolationClass::EmulatedVm,
        self_tests: Vec::new(),
        held_by: Default::default(),
        start_ms: 1,
        run_ms: 1,
    };
    let engine: Arc<dyn SandboxEngine> = Arc::clone(engine) as Arc<dyn SandboxEngine>;
    let options = PoolOptions { idle: 1, memory: MemoryBudget::new(1 << 30) };
    let key = Sha256Hex::of(format!("{image} {version}").as_bytes());
    cache.get_or_insert(key, image, ProbedEngine { engine, report }, options)
}

#[tokio::test]
async fn a_sandbox_stays_ready_after_the_request_that_started_it() {
    let engine = Arc::new(FakeEngine::new(idle));
    let cache = RunnerCache::default();
    let first = runner(&cache, &engine, "python", "1");
    first.prewarm(&spec());
    until(|| first.idle_count(&spec()) == 1).await;
    first.shut_down().await;

    let second = runner(&cache, &engine, "python", "1");
    assert_eq!(second.idle_count(&spec()), 1);
    let lease = second.lease(&spec(), &SandboxLabels::default()).await.unwrap();
    assert_eq!(lease.name(), "fake-1");
    lease.end().await;
    until(|| second.idle_count(&spec()) == 1).await;

    cache.shut_down().await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_rebuilt_image_gets_a_new_runner_and_the_old_one_is_shut_down() {
    let engine = Arc::new(FakeEngine::new(idle));
    let cache = RunnerCache::default();
    let old = runner(&cache, &engine, "python", "1");
    old.prewarm(&spec());
    until(|| old.idle_count(&spec()) == 1).await;
    let new = runner(&cache, &engine, "python", "2");
    assert_eq!(new.idle_count(&spec()), 0);
    until(|| engine.alive.load(Ordering::SeqCst) == 0).await;
    cache.shut_down().await;
}

#[tokio::test]
async fn the_least_recently_requested_runner_is_shut_down() {
    let engine = Arc::new(FakeEngine::new(idle));
    let cache = RunnerCache::default();
    let oldest = runner(&cache, &engine, "0", "1");
    oldest.prewarm(&spec());
    until(|| oldest.idle_count(&spec()) == 1).await;
    for number in 1..=MAX_RUNNERS {
        runner(&cache, &engine, &number.to_string(), "1");
    }
    until(|| engine.alive.load(Ordering::SeqCst) == 0).await;
    cache.shut_down().await;
}

#[tokio::test]
async fn a_runner_that_is_requested_after_shutdown_belongs_to_its_user() {
    let engine = Arc::new(FakeEngine::new(idle));
    let cache = RunnerCache::default();
    cache.shut_down().await;
    let late = runner(&cache, &engine, "python", "1");
    late.prewarm(&spec());
    until(|| late.idle_count(&spec()) == 1).await;
    late.shut_down().await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
}
