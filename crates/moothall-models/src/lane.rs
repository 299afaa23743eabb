//! One lane per provider and model: how many calls at once, how many requests and tokens a minute,
//! and slower when asked.
//!
//! The quotas are governor's. The number of calls at once is ours, because it must move: a 429 or
//! 529 halves it, once for all calls that were under way together; every round of successes gives
//! one back. A `Retry-After` stops the whole lane, not only the call that got it.

use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::catalog::Limits;

const MINUTE_NANOS: u64 = 60_000_000_000;

/// The longest pause that we sit out ourselves. A provider that asks for more gets its failure
/// passed on, so that whoever drives the run can let it sleep; a lane that stood still for all of
/// it would hold up everyone else in silence.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// A pause beyond a day is a mistake or a trap.
const LONGEST_BELIEVED_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// What all calls to one model share.
#[derive(Debug)]
pub(crate) struct Lane {
    slots: Semaphore,
    pace: Mutex<Pace>,
    requests: Option<DefaultDirectRateLimiter>,
    tokens: Option<TokenQuota>,
    clock: DefaultClock,
    /// Held while waiting for a quota.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct TokenQuota {
    limiter: DefaultDirectRateLimiter,
    /// The most that can be taken in one piece.
    burst: NonZeroU32,
    limit: NonZeroU32,
}

#[derive(Debug)]
struct Pace {
    /// Calls that may be under way at once.
    width: u32,
    /// What the width recovers to.
    full: u32,
    /// Slots to take away that were in use when the width shrank.
    owed: u32,
    /// Successes since the width last changed.
    successes: u32,
    /// Counts slow-downs, so that calls which were under way together cause only one.
    generation: u64,
    stopped_until: Option<Instant>,
}

impl Lane {
    /// A lane at full width.
    pub(crate) fn new(limits: Limits) -> Self {
        let full = limits.concurrent.get();
        Self {
            slots: Semaphore::new(full as usize),
            pace: Mutex::new(Pace {
                width: full,
                full,
                owed: 0,
                successes: 0,
                generation: 0,
                stopped_until: None,
            }),
            requests: limits
                .requests_per_minute
                .map(|limit| RateLimiter::direct(quota(limit, 10).0)),
            tokens: limits.tokens_per_minute.map(|limit| {
                let (quota, burst) = quota(limit, 2);
                TokenQuota { limiter: RateLimiter::direct(quota), burst, limit }
            }),
            clock: DefaultClock::default(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Waits until one more call may start. `tokens` says about how many tokens it has; counting
    /// them takes a while, so it is asked only where they are limited.
    ///
    /// A pause that is too long to sit out is the error: nobody waits an hour in silence.
    pub(crate) async fn enter(
        &self,
        tokens: impl FnOnce() -> u64,
    ) -> Result<LanePermit<'_>, Duration> {
        let slot = self.slots.acquire().await.ok();
        // A permit from here on, so that a caller who gives up while it waits pays back a slot that
        // is owed.
        let mut permit = LanePermit { lane: self, slot, generation: 0 };
        self.sit_out_pause().await?;
        if self.requests.is_some() || self.tokens.is_some() {
            self.wait_for_quotas(tokens).await;
            // Once more: a pause may have begun while we waited.
            self.sit_out_pause().await?;
        }
        permit.generation = self.pace().generation;
        Ok(permit)
    }

    /// In the order of asking: a large call would otherwise never find the bucket full, because
    /// small ones drain it.
    async fn wait_for_quotas(&self, tokens: impl FnOnce() -> u64) {
        let _turn = self.turn.lock().await;
        if let Some(requests) = &self.requests {
            while let Err(not_yet) = requests.check() {
                tokio::time::sleep(not_yet.wait_time_from(self.clock.now())).await;
            }
        }
        if let Some(TokenQuota { limiter, burst, limit }) = &self.tokens {
            // A call larger than the bucket is paid for in several bucketfuls, one larger than a
            // minute's allowance with a whole minute's: it must be possible to make it at all.
            let mut left = tokens().min(u64::from(limit.get()));
            while let Some(part) =
                u32::try_from(left.min(u64::from(burst.get()))).ok().and_then(NonZeroU32::new)
            {
                while let Ok(Err(not_yet)) = limiter.check_n(part) {
                    tokio::time::sleep(not_yet.wait_time_from(self.clock.now())).await;
                }
                left -= u64::from(part.get());
            }
        }
    }

    async fn sit_out_pause(&self) -> Result<(), Duration> {
        loop {
            let now = Instant::now();
            let stopped = self.pace().stopped_until.filter(|until| *until > now);
            match stopped {
                Some(until) if until - now > LONGEST_PAUSE => return Err(until - now),
                Some(until) => tokio::time::sleep_until(until).await,
                None => return Ok(()),
            }
        }
    }

    /// Calls that may be under way at once at the moment.
    #[cfg(test)]
    fn width(&self) -> u32 {
        self.pace().width
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        // Every change is a few assignments, so a panic elsewhere cannot leave them half done.
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A quota that no minute exceeds. A bucket of `burst` that refills at `rate` lets `burst + rate`
/// through in its first minute, so the two must add up to the limit.
fn quota(limit: NonZeroU32, burst_share: u32) -> (Quota, NonZeroU32) {
    let burst = NonZeroU32::new(limit.get() / burst_share).unwrap_or(NonZeroU32::MIN);
    let refill = (limit.get() - burst.get()).max(1);
    // The period is rounded up: a nanosecond too short adds up to a call too many.
    let period = Duration::from_nanos(MINUTE_NANOS.div_ceil(u64::from(refill)));
    let quota = Quota::with_period(period)
        .unwrap_or_else(|| Quota::per_minute(NonZeroU32::MIN))
        .allow_burst(burst);
    (quota, burst)
}

/// The right to have one call under way.
#[derive(Debug)]
#[must_use = "the slot is free again when the permit is dropped"]
pub(crate) struct LanePermit<'a> {
    lane: &'a Lane,
    slot: Option<SemaphorePermit<'a>>,
    generation: u64,
}

impl LanePermit<'_> {
    /// The call went well.
    pub(crate) fn succeeded(self) {
        let mut pace = self.lane.pace();
        pace.successes += 1;
        if pace.width < pace.full && pace.successes >= pace.width {
            pace.successes = 0;
            pace.width += 1;
            if pace.owed > 0 {
                pace.owed -= 1;
            } else {
                self.lane.slots.add_permits(1);
            }
        }
    }

    /// The provider asked for less, and perhaps for a pause.
    pub(crate) fn slow_down(self, pause: Option<Duration>) {
        let mut pace = self.lane.pace();
        if let Some(pause) = pause {
            let until = Instant::now() + pause.min(LONGEST_BELIEVED_PAUSE);
            pace.stopped_until = Some(pace.stopped_until.map_or(until, |other| other.max(until)));
        }
        if self.generation == pace.generation {
            pace.generation += 1;
            pace.successes = 0;
            let narrower = (pace.width / 2).max(1);
            let fewer = (pace.width - narrower) as usize;
            pace.width = narrower;
            let taken = self.lane.slots.forget_permits(fewer);
            pace.owed += u32::try_from(fewer - taken).unwrap_or(0);
        }
    }
}

impl Drop for LanePermit<'_> {
    fn drop(&mut self) {
        let mut pace = self.lane.pace();
        if pace.owed > 0 {
            pace.owed -= 1;
            if let Some(slot) = self.slot.take() {
                slot.forget();
            }
        }
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
