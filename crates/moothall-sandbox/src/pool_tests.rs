use std::sync::atomic::Ordering;

use super::*;
use crate::fake_engine::{FakeAgent, FakeEngine, spec};

async fn idle(mut agent: FakeAgent) {
    agent.ready().await;
    while agent.hear().await.is_some() {}
}

fn pool(engine: &Arc<FakeEngine>, idle: usize, shares: u64) -> SandboxPool {
    let engine: Arc<dyn SandboxEngine> = Arc::clone(engine) as Arc<dyn SandboxEngine>;
    SandboxPool::new(engine, PoolOptions { idle, memory: MemoryBudget::new(shares * (100 << 20)) })
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_taken_was_never_used_and_is_replaced_in_the_background() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 2, 10);
    let labels = SandboxLabels::default();
    let first = pool.take(&spec(), &labels).await.unwrap();
    until(|| pool.waiting(&spec()) == 2).await;
    let second = pool.take(&spec(), &labels).await.unwrap();
    assert_ne!(first.vessel.end.name(), second.vessel.end.name());
    until(|| pool.waiting(&spec()) == 2).await;
    assert_eq!(engine.started.load(Ordering::SeqCst), 4);
    drop((first, second));
    // Used sandboxes are not returned.
    assert_eq!((pool.waiting(&spec()), engine.alive.load(Ordering::SeqCst)), (2, 2));
    pool.drain().await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn one_that_waited_is_told_whose_it_is_now() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 1, 10);
    pool.expect(&spec());
    until(|| pool.waiting(&spec()) == 1).await;
    let labels = SandboxLabels([("run".to_owned(), "r".to_owned())].into());
    let held = pool.take(&spec(), &labels).await.unwrap();
    assert_eq!(*engine.labels.lock().unwrap(), [labels]);
    drop(held);
}

#[tokio::test]
async fn who_asks_beyond_the_memory_waits_for_one_to_end() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 0, 1);
    let labels = SandboxLabels::default();
    let first = pool.take(&spec(), &labels).await.unwrap();
    let waiting = tokio::spawn({
        let pool = pool.clone();
        async move { pool.take(&spec(), &SandboxLabels::default()).await.unwrap() }
    });
    tokio::task::yield_now().await;
    assert_eq!(engine.started.load(Ordering::SeqCst), 1);
    drop(first);
    let second = waiting.await.unwrap();
    assert_eq!(engine.started.load(Ordering::SeqCst), 2);
    drop(second);
}

/// Regression: sandboxes being started for the pool held all the memory, and a request waited for
/// memory that was never released.
#[tokio::test]
async fn who_waits_for_memory_takes_what_comes_to_the_shelf() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 1, 1);
    pool.expect(&spec());
    assert_eq!(pool.waiting(&spec()), 0);
    let held = pool.take(&spec(), &SandboxLabels::default()).await.unwrap();
    assert_eq!(engine.started.load(Ordering::SeqCst), 1);
    drop(held);
}

#[tokio::test]
async fn what_comes_for_another_spec_makes_room() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 1, 1);
    pool.expect(&spec());
    let other = SandboxSpec { image: "data".to_owned(), ..spec() };
    let held = pool.take(&other, &SandboxLabels::default()).await.unwrap();
    assert_eq!((pool.waiting(&spec()), engine.started.load(Ordering::SeqCst)), (0, 2));
    drop(held);
}

#[tokio::test]
async fn what_waits_for_another_spec_makes_room() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 1, 1);
    pool.expect(&spec());
    until(|| pool.waiting(&spec()) == 1).await;
    let other = SandboxSpec { image: "data".to_owned(), ..spec() };
    let held = pool.take(&other, &SandboxLabels::default()).await.unwrap();
    assert_eq!(pool.waiting(&spec()), 0);
    drop(held);
}

#[tokio::test]
async fn a_sandbox_larger_than_the_budget_is_refused_and_not_waited_for() {
    let mut engine = FakeEngine::new(idle);
    engine.footprint = 300 << 20;
    let engine = Arc::new(engine);
    let error = pool(&engine, 0, 2).take(&spec(), &SandboxLabels::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "one sandbox needs 300 MiB, but the limit for all sandboxes is 200 MiB; \
         lower `--memory`, or raise `isolation.memory_mib`"
    );
}

#[tokio::test]
async fn a_pool_that_cannot_be_filled_leaves_the_memory_free() {
    let engine = Arc::new(FakeEngine::new(idle));
    engine.failures.store(1, Ordering::SeqCst);
    let pool = pool(&engine, 1, 1);
    pool.expect(&spec());
    until(|| engine.started.load(Ordering::SeqCst) == 1).await;
    let held = pool.take(&spec(), &SandboxLabels::default()).await.unwrap();
    drop(held);
}

#[tokio::test]
async fn pools_share_their_memory_and_idle_sandboxes_of_one_make_way_for_the_other() {
    let (one, other) = (Arc::new(FakeEngine::new(idle)), Arc::new(FakeEngine::new(idle)));
    let memory = MemoryBudget::new(2 * (100 << 20));
    let pool = |engine: &Arc<FakeEngine>, idle| {
        let engine: Arc<dyn SandboxEngine> = Arc::clone(engine) as Arc<dyn SandboxEngine>;
        SandboxPool::new(engine, PoolOptions { idle, memory: memory.clone() })
    };
    let (first, second) = (pool(&one, 2), pool(&other, 0));
    first.expect(&spec());
    until(|| first.waiting(&spec()) == 2).await;
    let held = second.take(&spec(), &SandboxLabels::default()).await.unwrap();
    let alive = || one.alive.load(Ordering::SeqCst) + other.alive.load(Ordering::SeqCst);
    assert_eq!((first.waiting(&spec()), alive()), (1, 2));
    drop(held);
}
