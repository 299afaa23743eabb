use std::sync::Arc;
use std::sync::atomic::Ordering;

use moothall_core::sandbox::{IsolationClass, SandboxLabels};

use super::*;
use crate::fake_engine::{FakeAgent, FakeEngine, spec};
use crate::{EngineName, MemoryBudget, ProbeReport, SandboxEngine};

async fn wait_for_messages(mut agent: FakeAgent) {
    agent.ready().await;
    while agent.receive().await.is_some() {}
}

fn runner(cache: &RunnerCache, engine: &Arc<FakeEngine>, key: &str) -> SandboxRunner {
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
    cache.get_or_insert(Sha256Hex::of(key.as_bytes()), ProbedEngine { engine, report }, options)
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_sandbox_stays_ready_after_the_request_that_started_it() {
    let engine = Arc::new(FakeEngine::new(wait_for_messages));
    let cache = RunnerCache::default();
    let first = runner(&cache, &engine, "python");
    first.prewarm(&spec());
    until(|| first.idle_count(&spec()) == 1).await;
    first.shut_down().await;

    let second = runner(&cache, &engine, "python");
    assert_eq!(second.idle_count(&spec()), 1);
    let lease = second.lease(&spec(), &SandboxLabels::default()).await.unwrap();
    assert_eq!(lease.name(), "fake-1");
    lease.end().await;
    until(|| second.idle_count(&spec()) == 1).await;

    cache.shut_down().await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn runners_with_different_keys_share_nothing() {
    let engine = Arc::new(FakeEngine::new(wait_for_messages));
    let cache = RunnerCache::default();
    let python = runner(&cache, &engine, "python");
    python.prewarm(&spec());
    until(|| python.idle_count(&spec()) == 1).await;
    assert_eq!(runner(&cache, &engine, "python, built again").idle_count(&spec()), 0);
    cache.shut_down().await;
}

#[tokio::test]
async fn the_least_recently_requested_runner_is_shut_down() {
    let engine = Arc::new(FakeEngine::new(wait_for_messages));
    let cache = RunnerCache::default();
    let oldest = runner(&cache, &engine, "0");
    oldest.prewarm(&spec());
    until(|| oldest.idle_count(&spec()) == 1).await;
    for number in 1..=MAX_RUNNERS {
        runner(&cache, &engine, &number.to_string());
    }
    until(|| engine.alive.load(Ordering::SeqCst) == 0).await;
    cache.shut_down().await;
}

#[tokio::test]
async fn a_runner_that_is_requested_after_shutdown_belongs_to_its_user() {
    let engine = Arc::new(FakeEngine::new(wait_for_messages));
    let cache = RunnerCache::default();
    cache.shut_down().await;
    let late = runner(&cache, &engine, "python");
    late.prewarm(&spec());
    until(|| late.idle_count(&spec()) == 1).await;
    late.shut_down().await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
}
