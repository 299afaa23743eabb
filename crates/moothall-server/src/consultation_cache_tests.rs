use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::*;

const OTHER: &str = "02890a5d-ac96-774b-bcce-b302099a8057";
const SLOW: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn state(run: &str, events: u64) -> ConsultationCacheKey {
    ConsultationCacheKey { run_id: run.parse().unwrap(), events, updated_at_ms: 1, approvals: 0 }
}

/// Regression: one global lock was held while a run was read, so a large run blocked the documents
/// of all others.
#[tokio::test]
async fn a_slow_run_does_not_block_reading_other_runs() {
    let cache = Arc::new(PerRunCache::<&str>::default());
    let (began, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let readings = Arc::new(AtomicUsize::new(0));
    let slow = || {
        let (cache, began, go_on) = (Arc::clone(&cache), Arc::clone(&began), Arc::clone(&go_on));
        let readings = Arc::clone(&readings);
        tokio::spawn(async move {
            let read = async || {
                readings.fetch_add(1, Ordering::SeqCst);
                began.notify_one();
                go_on.notified().await;
                Ok("slow")
            };
            cache.get_or_read(state(SLOW, 1), read).await
        })
    };
    let (first, second) = (slow(), slow());
    began.notified().await;
    let other = cache.get_or_read(state(OTHER, 1), async || Ok("other"));
    let other = tokio::time::timeout(Duration::from_secs(5), other).await;
    assert_eq!(*other.expect("it waits for another run").unwrap(), "other");
    go_on.notify_one();
    // Both requests shared one read.
    for one in [first, second] {
        assert_eq!(*one.await.unwrap().unwrap(), "slow");
    }
    assert_eq!(readings.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_cached_consultation_is_reused_until_its_run_changes() {
    let cache = PerRunCache::<u64>::default();
    let read = async |events, value| {
        let value = cache.get_or_read(state(SLOW, events), async || Ok(value)).await;
        *value.unwrap()
    };
    assert_eq!(read(1, 10).await, 10);
    assert_eq!(read(1, 11).await, 10);
    assert_eq!(read(2, 12).await, 12);
    assert_eq!(cache.entries.lock().unwrap().len(), 1);
    let failed =
        cache.get_or_read(state(OTHER, 1), async || Err(ApiProblem::not_found("gone"))).await;
    assert!(failed.is_err());
    assert_eq!(*cache.get_or_read(state(OTHER, 1), async || Ok(5)).await.unwrap(), 5);
}
