use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use governor::clock::FakeRelativeClock;

use super::*;

const MINUTE_NANOS: u64 = 60_000_000_000;

fn limiter(concurrent: u32) -> ModelLimiter {
    ModelLimiter::new(ProviderLimits {
        requests_per_minute: None,
        tokens_per_minute: None,
        concurrent: NonZeroU32::new(concurrent).unwrap(),
    })
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A permit that is available without waiting.
fn enter_now(limiter: &ModelLimiter) -> Option<ModelPermit<'_>> {
    match poll(pin!(limiter.enter(RunKey::of("run"), || 1))) {
        Poll::Ready(permit) => Some(permit.unwrap()),
        Poll::Pending => None,
    }
}

fn fill(limiter: &ModelLimiter) -> Vec<ModelPermit<'_>> {
    std::iter::from_fn(|| enter_now(limiter)).collect()
}

#[test]
fn concurrent_calls_do_not_exceed_the_limit() {
    let limiter = limiter(3);
    let mut permits = fill(&limiter);
    assert_eq!(permits.len(), 3);
    permits.pop();
    assert_eq!(fill(&limiter).len(), 1);
}

#[test]
fn rate_limited_calls_of_one_round_halve_the_limit_once() {
    let limiter = limiter(8);
    let mut permits = fill(&limiter);
    for _ in 0..5 {
        permits.pop().unwrap().slow_down(None);
        assert_eq!(limiter.width(), 4);
    }
    // A call that started after the change counts again.
    let later = enter_now(&limiter).unwrap();
    later.slow_down(None);
    assert_eq!(limiter.width(), 2);
}

#[test]
fn the_width_never_falls_below_one() {
    let limiter = limiter(2);
    for _ in 0..5 {
        enter_now(&limiter).unwrap().slow_down(None);
        assert_eq!(limiter.width(), 1);
    }
    assert_eq!(fill(&limiter).len(), 1);
}

#[test]
fn slots_over_a_lowered_limit_are_removed_as_calls_return() {
    let limiter = limiter(8);
    let mut permits = fill(&limiter);
    permits.pop().unwrap().slow_down(None);
    for active in (4..=7).rev() {
        assert_eq!(permits.len(), active);
        assert!(enter_now(&limiter).is_none(), "{active} calls under way, width 4");
        permits.pop();
    }
    assert_eq!(fill(&limiter).len(), 1);
    permits.clear();
    assert_eq!(fill(&limiter).len(), 4);
}

#[test]
fn each_round_of_successes_restores_one_slot_up_to_the_limit() {
    let limiter = limiter(4);
    enter_now(&limiter).unwrap().slow_down(None);
    let mut widths = Vec::new();
    for _ in 0..12 {
        enter_now(&limiter).unwrap().succeeded();
        widths.push(limiter.width());
    }
    assert_eq!(widths, [2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]);
    assert_eq!(fill(&limiter).len(), 4);
}

#[test]
fn a_slot_still_to_be_removed_is_kept_when_the_limit_grows() {
    let limiter = limiter(4);
    let mut permits = fill(&limiter);
    permits.pop().unwrap().slow_down(None);
    // Limit 2, three in progress: two successes raise it to 3.
    permits.pop().unwrap().succeeded();
    permits.pop().unwrap().succeeded();
    assert_eq!(limiter.width(), 3);
    drop(permits);
    assert_eq!(fill(&limiter).len(), 3);
}

#[test]
fn a_failure_unrelated_to_rate_limits_keeps_the_limit() {
    let limiter = limiter(4);
    fill(&limiter).clear();
    assert_eq!(limiter.width(), 4);
    assert_eq!(fill(&limiter).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_all_calls_of_the_limiter_and_the_longest_wins() {
    let limiter = limiter(4);
    let began = Instant::now();
    let (first, second, third) = (
        limiter.enter(RunKey::of("run"), || 1).await.unwrap(),
        limiter.enter(RunKey::of("run"), || 1).await.unwrap(),
        limiter.enter(RunKey::of("run"), || 1).await.unwrap(),
    );
    first.slow_down(Some(Duration::from_secs(10)));
    second.slow_down(Some(Duration::from_secs(30)));
    third.slow_down(Some(Duration::from_secs(20)));
    let (one, other) = tokio::join!(
        limiter.enter(RunKey::of("run"), || 1),
        limiter.enter(RunKey::of("run"), || 1)
    );
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    drop((one, other));
    drop(limiter.enter(RunKey::of("run"), || 1).await.unwrap());
    assert_eq!(began.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_begins_while_a_call_waits_for_its_quota_stops_that_call_too() {
    // Regression: the pause was checked before the quota but not after, so a call that waited for
    // its quota ignored it.
    let limiter = ModelLimiter::new(ProviderLimits {
        requests_per_minute: NonZeroU32::new(10_000),
        tokens_per_minute: None,
        concurrent: NonZeroU32::new(2).unwrap(),
    });
    let active = limiter.enter(RunKey::of("run"), || 1).await.unwrap();
    // The next request is allowed after 7 ms of real time, used by governor; the pause uses tokio's
    // virtual time.
    while limiter.requests.as_ref().unwrap().check().is_ok() {}
    let began = Instant::now();
    let mut waiting = pin!(limiter.enter(RunKey::of("run"), || 1));
    assert!(futures_poll_once(waiting.as_mut()).await.is_none());
    active.slow_down(Some(Duration::from_secs(300)));
    drop(waiting.await);
    assert!(began.elapsed() >= Duration::from_secs(300), "{:?}", began.elapsed());
}

/// Polls once with the waker of the test's task.
async fn futures_poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_too_long_pause_fails_all_calls_immediately() {
    // Regression: a `Retry-After` of one hour made every other call of the limiter hang.
    let limiter = limiter(2);
    let began = Instant::now();
    let hour = Duration::from_secs(3600);
    limiter.enter(RunKey::of("run"), || 1).await.unwrap().slow_down(Some(hour));
    assert_eq!(limiter.enter(RunKey::of("run"), || 1).await.unwrap_err(), hour);
    assert_eq!(limiter.enter(RunKey::of("run"), || 1).await.unwrap_err(), hour);
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Once the remaining pause is short enough, calls wait for it.
    tokio::time::sleep(hour - MAX_PAUSE).await;
    drop(limiter.enter(RunKey::of("run"), || 1).await.unwrap());
    assert_eq!(began.elapsed(), hour);
}

#[test]
fn a_call_cancelled_in_the_queue_keeps_no_slot() {
    let limiter = limiter(2);
    let permits = fill(&limiter);
    for _ in 0..10 {
        assert!(enter_now(&limiter).is_none());
    }
    drop(permits);
    assert_eq!(fill(&limiter).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_cancelled_during_a_pause_keeps_no_slot() {
    let limiter = limiter(4);
    limiter.enter(RunKey::of("run"), || 1).await.unwrap().slow_down(Some(Duration::from_secs(10)));
    for _ in 0..10 {
        assert!(futures_poll_once(pin!(limiter.enter(RunKey::of("run"), || 1))).await.is_none());
    }
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(fill(&limiter).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_cancelled_during_a_pause_returns_its_surplus_slot() {
    // Regression: the slot was returned although the limit had been lowered, so too many calls ran.
    let limiter = limiter(8);
    let mut permits = fill(&limiter);
    let late = permits.pop().unwrap();
    permits.pop().unwrap().slow_down(None);
    drop(permits);
    let newer = limiter.enter(RunKey::of("run"), || 1).await.unwrap();
    late.slow_down(Some(Duration::from_secs(10)));
    assert_eq!(limiter.width(), 4);
    let mut waiting: Vec<_> =
        (0..3).map(|_| Box::pin(limiter.enter(RunKey::of("run"), || 1))).collect();
    for waiting in &mut waiting {
        assert!(futures_poll_once(waiting.as_mut()).await.is_none());
    }
    // All four slots are taken when the limit drops to two: one by the newer call, three by waiting
    // calls.
    newer.slow_down(None);
    assert_eq!(limiter.width(), 2);
    waiting.clear();
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(fill(&limiter).len(), 2);
}

/// Deterministic pseudo-random bits.
fn scrambled(seed: u64) -> u64 {
    let bits = (seed ^ (seed >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^ (bits >> 29)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_calls_with_any_outcome_lose_no_slot() {
    const FULL: u32 = 5;
    let limiter = Arc::new(limiter(FULL));
    let (active, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let calls: Vec<_> = (0..64_u64)
        .map(|caller| {
            let (limiter, active, most) =
                (Arc::clone(&limiter), Arc::clone(&active), Arc::clone(&most));
            tokio::spawn(async move {
                for turn in 0..200 {
                    let bits = scrambled(caller * 1000 + turn + 1);
                    if bits.is_multiple_of(16) {
                        let given_up =
                            futures_poll_once(pin!(limiter.enter(RunKey::of("run"), || 1))).await;
                        drop(given_up);
                        continue;
                    }
                    let permit = limiter.enter(RunKey::of("run"), || 1).await.unwrap();
                    let now = active.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    active.fetch_sub(1, Ordering::SeqCst);
                    match (bits >> 8) % 8 {
                        0 => permit.slow_down(None),
                        1 => drop(permit),
                        _ => permit.succeeded(),
                    }
                }
            })
        })
        .collect();
    for call in calls {
        let waited = tokio::time::timeout(Duration::from_secs(30), call).await;
        waited.expect("a call never ends").unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= FULL);
    assert!((1..=FULL).contains(&limiter.width()));
    assert_eq!(fill(&limiter).len(), limiter.width() as usize);
}

/// The times, in nanoseconds, at which greedy calls of `size` are allowed: two minutes, a long
/// pause, two more minutes.
fn greedy_calls(limit: u32, burst_share: u32, size: NonZeroU32) -> Vec<u64> {
    let clock = FakeRelativeClock::default();
    let quota = governor_quota(MinuteQuota::new(NonZeroU32::new(limit).unwrap(), burst_share));
    let limiter = RateLimiter::direct_with_clock(quota, clock.clone());
    let mut calls = Vec::new();
    for rest in [0, 200] {
        clock.advance(Duration::from_secs(rest));
        let until = clock.now().as_u64() + 2 * MINUTE_NANOS;
        while clock.now().as_u64() < until {
            match limiter.check_n(size).unwrap() {
                Ok(()) => calls.push(clock.now().as_u64()),
                Err(not_yet) => clock.advance(not_yet.wait_time_from(clock.now())),
            }
        }
    }
    calls
}

#[track_caller]
fn check_quota(limit: u32, burst_share: u32, size: u32) {
    let calls = greedy_calls(limit, burst_share, NonZeroU32::new(size).unwrap());
    let fit = (limit / size) as usize;
    // No minute, wherever it starts, has more than `fit` calls: `fit + 1` consecutive calls take at
    // least a minute.
    for window in calls.windows(fit + 1) {
        let took = window[fit] - window[0];
        assert!(took >= MINUTE_NANOS, "{limit}: {} calls in {took} ns", fit + 1);
    }
    // The quota is still useful: four greedy minutes allow at least half of the limit.
    assert!(calls.len() * 2 >= fit * 4, "{limit}: only {} calls in four minutes", calls.len());
}

#[test]
fn no_minute_exceeds_a_limit_of_requests() {
    for limit in [1, 2, 3, 7, 10, 60, 1000, 10_000] {
        check_quota(limit, 10, 1);
    }
}

#[test]
fn no_minute_exceeds_a_limit_of_tokens() {
    for limit in [1, 2, 3, 7, 10, 60, 1000, 10_000] {
        check_quota(limit, 2, 1);
    }
    check_quota(10_000, 2, 400);
    check_quota(100_000, 2, 5000);
    check_quota(30_000, 2, 15_000);
}

#[test]
fn a_quota_of_any_size_can_be_made() {
    for limit in [1, 9, 10, 11, u32::MAX - 1, u32::MAX] {
        for share in [2, 10] {
            let quota = MinuteQuota::new(NonZeroU32::new(limit).unwrap(), share);
            let (burst, quota) = (quota.burst, governor_quota(quota));
            assert_eq!(quota.burst_size(), burst);
            assert!(burst.get() <= limit);
            let minute =
                quota.replenish_interval().as_nanos() * u128::from((limit - burst.get()).max(1));
            assert!(minute >= u128::from(MINUTE_NANOS), "{limit}");
        }
    }
}

#[tokio::test]
async fn a_call_larger_than_the_token_bucket_waits_for_several_refills() {
    let limiter = ModelLimiter::new(ProviderLimits {
        requests_per_minute: None,
        // 12,000 per minute: a bucket of 6,000 that refills at 100 per second.
        tokens_per_minute: NonZeroU32::new(12_000),
        concurrent: NonZeroU32::MIN,
    });
    let began = std::time::Instant::now();
    drop(limiter.enter(RunKey::of("run"), || 6_050).await.unwrap());
    assert!(began.elapsed() >= Duration::from_millis(450), "{:?}", began.elapsed());
    // The bucket is empty, so the next call waits too; a call of any size is possible.
    assert!(futures_poll_once(pin!(limiter.enter(RunKey::of("run"), || u64::MAX))).await.is_none());
}
