use super::*;

#[test]
fn at_most_ten_requests_go_out_in_a_second() {
    const { assert!(PER_SECOND + BURST <= 10) };
    let limiter = EdgarLimiter::new();
    let ready = (0..100).filter(|_| limiter.quota.check().is_ok()).count();
    // All one hundred are polled in far less time than one refill takes.
    assert!((BURST as usize..=BURST as usize + 1).contains(&ready), "{ready}");
}

#[tokio::test]
async fn a_request_that_comes_too_early_waits_for_an_eighth_of_a_second() {
    let limiter = EdgarLimiter::new();
    let started = std::time::Instant::now();
    for _ in 0..4 {
        limiter.wait().await;
    }
    // Two immediately, then one every 125 ms.
    assert!(started.elapsed() >= Duration::from_millis(240));
}

/// A shared limiter of a cluster that records when each permit was held.
#[derive(Debug, Default)]
struct Shared {
    lane: std::sync::Arc<tokio::sync::Mutex<()>>,
    entered: std::sync::Mutex<Vec<(String, u32)>>,
}

impl SharedLimiter for Shared {
    fn enter<'a>(&'a self, lane: &'a str, width: u32) -> moothall_models::EnterFuture<'a> {
        Box::pin(async move {
            let pass = std::sync::Arc::clone(&self.lane).lock_owned().await;
            self.entered.lock().unwrap().push((lane.to_owned(), width));
            Box::new(pass) as moothall_models::Pass
        })
    }

    fn wait_for_quota<'a>(
        &'a self,
        _: &'a str,
        _: u64,
        _: moothall_models::MinuteQuota,
    ) -> moothall_models::QuotaFuture<'a> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn all_processes_of_a_cluster_share_one_limit_of_eight_requests_a_second() {
    let shared = Shared::default();
    let started = std::time::Instant::now();
    for _ in 0..4 {
        wait(Some(&shared)).await;
    }
    assert!(started.elapsed() >= Duration::from_millis(500));
    assert_eq!(*shared.entered.lock().unwrap(), vec![("sec.gov".to_owned(), 1); 4]);
}
