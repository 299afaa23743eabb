use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use governor::clock::FakeRelativeClock;

use super::*;

const MINUTE_NANOS: u64 = 60_000_000_000;

fn lane(concurrent: u32) -> ModelLimiter {
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
fn enter_now(lane: &ModelLimiter) -> Option<ModelPermit<'_>> {
    match poll(pin!(lane.enter(RunKey::of("run"), || 1))) {
        Poll::Ready(permit) => Some(permit.unwrap()),
        Poll::Pending => None,
    }
}

fn fill(lane: &ModelLimiter) -> Vec<ModelPermit<'_>> {
    std::iter::from_fn(|| enter_now(lane)).collect()
}

#[test]
fn no_more_calls_than_the_limit_are_under_way() {
    let lane = lane(3);
    let mut permits = fill(&lane);
    assert_eq!(permits.len(), 3);
    permits.pop();
    assert_eq!(fill(&lane).len(), 1);
}

#[test]
fn calls_that_were_under_way_together_halve_the_width_once() {
    let lane = lane(8);
    let mut permits = fill(&lane);
    for _ in 0..5 {
        permits.pop().unwrap().slow_down(None);
        assert_eq!(lane.width(), 4);
    }
    // A call that started after the change counts again.
    let later = enter_now(&lane).unwrap();
    later.slow_down(None);
    assert_eq!(lane.width(), 2);
}

#[test]
fn the_width_never_falls_below_one() {
    let lane = lane(2);
    for _ in 0..5 {
        enter_now(&lane).unwrap().slow_down(None);
        assert_eq!(lane.width(), 1);
    }
    assert_eq!(fill(&lane).len(), 1);
}

#[test]
fn slots_in_use_when_the_width_shrinks_are_taken_back_as_calls_return() {
    let lane = lane(8);
    let mut permits = fill(&lane);
    permits.pop().unwrap().slow_down(None);
    for under_way in (4..=7).rev() {
        assert_eq!(permits.len(), under_way);
        assert!(enter_now(&lane).is_none(), "{under_way} calls under way, width 4");
        permits.pop();
    }
    assert_eq!(fill(&lane).len(), 1);
    permits.clear();
    assert_eq!(fill(&lane).len(), 4);
}

#[test]
fn every_round_of_successes_gives_one_slot_back_until_the_lane_is_full_again() {
    let lane = lane(4);
    enter_now(&lane).unwrap().slow_down(None);
    let mut widths = Vec::new();
    for _ in 0..12 {
        enter_now(&lane).unwrap().succeeded();
        widths.push(lane.width());
    }
    assert_eq!(widths, [2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]);
    assert_eq!(fill(&lane).len(), 4);
}

#[test]
fn a_slot_that_is_still_owed_is_forgiven_when_the_width_grows() {
    let lane = lane(4);
    let mut permits = fill(&lane);
    permits.pop().unwrap().slow_down(None);
    // Limit 2, three in progress: two successes raise it to 3.
    permits.pop().unwrap().succeeded();
    permits.pop().unwrap().succeeded();
    assert_eq!(lane.width(), 3);
    drop(permits);
    assert_eq!(fill(&lane).len(), 3);
}

#[test]
fn a_failure_that_says_nothing_about_speed_changes_nothing() {
    let lane = lane(4);
    fill(&lane).clear();
    assert_eq!(lane.width(), 4);
    assert_eq!(fill(&lane).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_the_whole_lane_and_the_longest_one_counts() {
    let lane = lane(4);
    let began = Instant::now();
    let (first, second, third) = (
        lane.enter(RunKey::of("run"), || 1).await.unwrap(),
        lane.enter(RunKey::of("run"), || 1).await.unwrap(),
        lane.enter(RunKey::of("run"), || 1).await.unwrap(),
    );
    first.slow_down(Some(Duration::from_secs(10)));
    second.slow_down(Some(Duration::from_secs(30)));
    third.slow_down(Some(Duration::from_secs(20)));
    let (one, other) =
        tokio::join!(lane.enter(RunKey::of("run"), || 1), lane.enter(RunKey::of("run"), || 1));
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    drop((one, other));
    drop(lane.enter(RunKey::of("run"), || 1).await.unwrap());
    assert_eq!(began.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_begins_while_a_call_waits_for_its_quota_stops_that_call_too() {
    // Regression: the pause was checked before the quota but not after, so a call that waited for
    // its quota ignored it.
    let lane = ModelLimiter::new(ProviderLimits {
        requests_per_minute: NonZeroU32::new(10_000),
        tokens_per_minute: None,
        concurrent: NonZeroU32::new(2).unwrap(),
    });
    let under_way = lane.enter(RunKey::of("run"), || 1).await.unwrap();
    // The next request is allowed after 7 ms of real time, used by governor; the pause uses tokio's
    // virtual time.
    while lane.requests.as_ref().unwrap().check().is_ok() {}
    let began = Instant::now();
    let mut waiting = pin!(lane.enter(RunKey::of("run"), || 1));
    assert!(futures_poll_once(waiting.as_mut()).await.is_none());
    under_way.slow_down(Some(Duration::from_secs(300)));
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
async fn a_pause_too_long_to_sit_out_is_told_to_everyone_at_once() {
    // Regression: a `Retry-After` of one hour made every other call of the limiter hang.
    let lane = lane(2);
    let began = Instant::now();
    let hour = Duration::from_secs(3600);
    lane.enter(RunKey::of("run"), || 1).await.unwrap().slow_down(Some(hour));
    assert_eq!(lane.enter(RunKey::of("run"), || 1).await.unwrap_err(), hour);
    assert_eq!(lane.enter(RunKey::of("run"), || 1).await.unwrap_err(), hour);
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Once the remaining pause is short enough, calls wait for it.
    tokio::time::sleep(hour - LONGEST_PAUSE).await;
    drop(lane.enter(RunKey::of("run"), || 1).await.unwrap());
    assert_eq!(began.elapsed(), hour);
}

#[test]
fn a_call_that_gives_up_in_the_queue_leaves_no_trace() {
    let lane = lane(2);
    let permits = fill(&lane);
    for _ in 0..10 {
        assert!(enter_now(&lane).is_none());
    }
    drop(permits);
    assert_eq!(fill(&lane).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gives_up_during_a_pause_leaves_no_trace() {
    let lane = lane(4);
    lane.enter(RunKey::of("run"), || 1).await.unwrap().slow_down(Some(Duration::from_secs(10)));
    for _ in 0..10 {
        assert!(futures_poll_once(pin!(lane.enter(RunKey::of("run"), || 1))).await.is_none());
    }
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(fill(&lane).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gives_up_during_a_pause_gives_back_the_slot_that_is_owed() {
    // Regression: the slot was returned although the limit had been lowered, so too many calls ran.
    let lane = lane(8);
    let mut permits = fill(&lane);
    let late = permits.pop().unwrap();
    permits.pop().unwrap().slow_down(None);
    drop(permits);
    let newer = lane.enter(RunKey::of("run"), || 1).await.unwrap();
    late.slow_down(Some(Duration::from_secs(10)));
    assert_eq!(lane.width(), 4);
    let mut waiting: Vec<_> =
        (0..3).map(|_| Box::pin(lane.enter(RunKey::of("run"), || 1))).collect();
    for waiting in &mut waiting {
        assert!(futures_poll_once(waiting.as_mut()).await.is_none());
    }
    // All four slots are taken when the limit drops to two: one by the newer call, three by waiting
    // calls.
    newer.slow_down(None);
    assert_eq!(lane.width(), 2);
    waiting.clear();
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(fill(&lane).len(), 2);
}

/// Deterministic pseudo-random bits.
fn scrambled(seed: u64) -> u64 {
    let bits = (seed ^ (seed >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^ (bits >> 29)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_calls_with_all_endings_never_exceed_the_limit_and_lose_no_slot() {
    const FULL: u32 = 5;
    let lane = Arc::new(lane(FULL));
    let (under_way, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let calls: Vec<_> = (0..64_u64)
        .map(|caller| {
            let (lane, under_way, most) =
                (Arc::clone(&lane), Arc::clone(&under_way), Arc::clone(&most));
            tokio::spawn(async move {
                for turn in 0..200 {
                    let bits = scrambled(caller * 1000 + turn + 1);
                    if bits.is_multiple_of(16) {
                        let given_up =
                            futures_poll_once(pin!(lane.enter(RunKey::of("run"), || 1))).await;
                        drop(given_up);
                        continue;
                    }
                    let permit = lane.enter(RunKey::of("run"), || 1).await.unwrap();
                    let now = under_way.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    under_way.fetch_sub(1, Ordering::SeqCst);
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
    assert!((1..=FULL).contains(&lane.width()));
    assert_eq!(fill(&lane).len(), lane.width() as usize);
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
async fn a_call_larger_than_the_bucket_is_paid_for_in_several_bucketfuls() {
    let lane = ModelLimiter::new(ProviderLimits {
        requests_per_minute: None,
        // 12,000 per minute: a bucket of 6,000 that refills at 100 per second.
        tokens_per_minute: NonZeroU32::new(12_000),
        concurrent: NonZeroU32::MIN,
    });
    let began = std::time::Instant::now();
    drop(lane.enter(RunKey::of("run"), || 6_050).await.unwrap());
    assert!(began.elapsed() >= Duration::from_millis(450), "{:?}", began.elapsed());
    // The bucket is empty, so the next call waits too; a call of any size is possible.
    assert!(futures_poll_once(pin!(lane.enter(RunKey::of("run"), || u64::MAX))).await.is_none());
}
