use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::fake_engine::{FakeAgent, FakeEngine, idle, spec, until};

fn pool(engine: &Arc<FakeEngine>, idle: usize, shares: u64) -> SandboxPool {
    let engine: Arc<dyn SandboxEngine> = Arc::clone(engine) as Arc<dyn SandboxEngine>;
    SandboxPool::new(engine, PoolOptions { idle, memory: MemoryBudget::new(shares * (100 << 20)) })
}

#[tokio::test]
async fn the_pool_hands_out_unused_sandboxes_and_refills_itself() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 2, 10);
    let labels = SandboxLabels::default();
    let first = pool.take(&spec(), &labels).await.unwrap();
    until(|| pool.idle_count(&spec()) == 2).await;
    let second = pool.take(&spec(), &labels).await.unwrap();
    assert_ne!(first.sandbox.end.name(), second.sandbox.end.name());
    until(|| pool.idle_count(&spec()) == 2).await;
    assert_eq!(engine.started.load(Ordering::SeqCst), 4);
    drop((first, second));
    // Used sandboxes are not returned.
    assert_eq!((pool.idle_count(&spec()), engine.alive.load(Ordering::SeqCst)), (2, 2));
    pool.drain().await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_pooled_sandbox_gets_the_labels_of_its_user() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 1, 10);
    pool.prewarm(&spec());
    until(|| pool.idle_count(&spec()) == 1).await;
    let labels = SandboxLabels([("run".to_owned(), "r".to_owned())].into());
    let held = pool.take(&spec(), &labels).await.unwrap();
    assert_eq!(*engine.labels.lock().unwrap(), [labels]);
    drop(held);
}

#[tokio::test]
async fn a_request_beyond_the_memory_limit_waits_until_a_sandbox_ends() {
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

/// Regression: a start that took more than two seconds was interrupted, and the process ended before
/// everything was removed.
#[tokio::test(start_paused = true)]
async fn a_closed_pool_ends_sandboxes_whose_start_took_seconds() {
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let engine = Arc::new(FakeEngine::new(move |agent| {
        let count = Arc::clone(&count);
        async move {
            tokio::time::sleep(Duration::from_secs(4)).await;
            count.fetch_add(1, Ordering::SeqCst);
            idle(agent).await;
        }
    }));
    let pool = pool(&engine, 2, 10);
    pool.prewarm(&spec());
    pool.drain().await;
    assert_eq!((started.load(Ordering::SeqCst), engine.alive.load(Ordering::SeqCst)), (2, 0));
}

/// Regression: an interrupted command waits only a moment, and idle sandboxes were left running.
#[tokio::test(start_paused = true)]
async fn a_closed_pool_ends_idle_sandboxes_before_those_that_are_starting() {
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let engine = Arc::new(FakeEngine::new(move |agent| {
        let is_slow = count.fetch_add(1, Ordering::SeqCst) > 0;
        async move {
            if is_slow {
                tokio::time::sleep(Duration::from_secs(4)).await;
            }
            idle(agent).await;
        }
    }));
    let pool = pool(&engine, 1, 10);
    pool.prewarm(&spec());
    until(|| pool.idle_count(&spec()) == 1).await;
    let other = SandboxSpec { image: "data".to_owned(), ..spec() };
    pool.prewarm(&other);
    until(|| started.load(Ordering::SeqCst) == 2).await;
    let mut draining = pin!(pool.drain());
    assert!(timeout(Duration::from_secs(1), &mut draining).await.is_err());
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
}

/// Regression: sandboxes being started for the pool held all the memory, and a request waited for
/// memory that was never released.
#[tokio::test]
async fn a_request_waiting_for_memory_takes_a_sandbox_started_for_the_pool() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 1, 1);
    pool.prewarm(&spec());
    assert_eq!(pool.idle_count(&spec()), 0);
    let held = pool.take(&spec(), &SandboxLabels::default()).await.unwrap();
    assert_eq!(engine.started.load(Ordering::SeqCst), 1);
    drop(held);
}

#[tokio::test]
async fn a_starting_sandbox_of_another_spec_is_evicted_for_a_request() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 1, 1);
    pool.prewarm(&spec());
    let other = SandboxSpec { image: "data".to_owned(), ..spec() };
    let held = pool.take(&other, &SandboxLabels::default()).await.unwrap();
    assert_eq!((pool.idle_count(&spec()), engine.started.load(Ordering::SeqCst)), (0, 2));
    drop(held);
}

#[tokio::test]
async fn an_idle_sandbox_of_another_spec_is_evicted_for_a_request() {
    let engine = Arc::new(FakeEngine::new(idle));
    let pool = pool(&engine, 1, 1);
    pool.prewarm(&spec());
    until(|| pool.idle_count(&spec()) == 1).await;
    let other = SandboxSpec { image: "data".to_owned(), ..spec() };
    let held = pool.take(&other, &SandboxLabels::default()).await.unwrap();
    assert_eq!(pool.idle_count(&spec()), 0);
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
async fn a_failed_refill_of_the_pool_releases_its_memory() {
    let engine = Arc::new(FakeEngine::new(idle));
    engine.failures.store(1, Ordering::SeqCst);
    let pool = pool(&engine, 1, 1);
    pool.prewarm(&spec());
    until(|| engine.started.load(Ordering::SeqCst) == 1).await;
    let held = pool.take(&spec(), &SandboxLabels::default()).await.unwrap();
    drop(held);
}

#[tokio::test]
async fn pools_share_memory_and_evict_each_others_idle_sandboxes() {
    let (one, other) = (Arc::new(FakeEngine::new(idle)), Arc::new(FakeEngine::new(idle)));
    let memory = MemoryBudget::new(2 * (100 << 20));
    let pool = |engine: &Arc<FakeEngine>, idle| {
        let engine: Arc<dyn SandboxEngine> = Arc::clone(engine) as Arc<dyn SandboxEngine>;
        SandboxPool::new(engine, PoolOptions { idle, memory: memory.clone() })
    };
    let (first, second) = (pool(&one, 2), pool(&other, 0));
    first.prewarm(&spec());
    until(|| first.idle_count(&spec()) == 2).await;
    let held = second.take(&spec(), &SandboxLabels::default()).await.unwrap();
    let alive = || one.alive.load(Ordering::SeqCst) + other.alive.load(Ordering::SeqCst);
    assert_eq!((first.idle_count(&spec()), alive()), (1, 2));
    drop(held);
}

#[tokio::test]
async fn an_idle_sandbox_that_died_is_replaced() {
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let engine = Arc::new(FakeEngine::new(move |mut agent: FakeAgent| {
        let dies = is_first.swap(false, Ordering::SeqCst);
        async move {
            agent.ready().await;
            while !dies && agent.receive().await.is_some() {}
        }
    }));
    let pool = pool(&engine, 1, 10);
    pool.prewarm(&spec());
    until(|| pool.idle_count(&spec()) == 1).await;
    let taken = pool.take(&spec(), &SandboxLabels::default()).await.unwrap();
    assert_ne!(taken.sandbox.end.name(), "fake-1");
    drop(taken);
}
